// SPDX-License-Identifier: Apache-2.0
/*
 * guests.c - which blocks of random steps become guests of the parent: it never needs more for them
 * than without, the peak gets lower by what is worth it, and none of it cannot be undone.
 */
#include "kit/tidy.h"

#include "step/guests.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 400, ROUNDS = 300 };

/* What a step did, and when each block was there: from its own number to before another. */
struct model {
    struct record_entry record[MOST];
    uint32_t end[MOST];
    uint32_t count, releases;
};

static uint64_t seed;

static uint32_t chance(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

static void come(struct model *model, size_t bytes, bool survives, uint32_t above) {
    model->end[model->count] = MOST;
    model->record[model->count++] = (struct record_entry){
        .bytes = bytes, .passed = model->releases, .rank = PLAN_NEVER, .align_log2 = 6,
        .above = above / RANGE_GRANULE, .survived = survives};
}

static void go(struct model *model, uint32_t number) {
    model->end[number] = model->count;
    model->record[number].rank = model->releases++;
}

static struct draft *draft_of(const struct model *model, bool confirmed) {
    struct draft *draft = draft_from_record(
        model->record, model->count, draft_hash(model->record, model->count), NULL,
        DRAFT_TENURE_ONCE);
    assert_non_null(draft);
    draft->confirmed = confirmed;
    return draft;
}

static size_t bytes_of(const struct draft *draft, uint32_t number) {
    return draft->slots[number].needed * RANGE_GRANULE;
}

/* Most that is placed at once. */
static size_t peak_of(const struct model *model, const struct draft *draft) {
    size_t peak = 0;
    for (uint32_t at = 0; at < model->count; at++) {
        size_t load = 0;
        for (uint32_t i = 0; i <= at; i++)
            load += draft->slots[i].room && model->end[i] > at ? bytes_of(draft, i) : 0;
        peak = load > peak ? load : peak;
    }
    return peak;
}

/* Most that the parent has in large blocks at once, with or without guests. */
static size_t most_above(const struct model *model, const struct draft *draft, bool guests) {
    size_t most = 0;
    for (uint32_t at = 0; at < model->count; at++) {
        size_t used = model->record[at].above * RANGE_GRANULE;
        for (uint32_t i = 0; i <= at; i++) {
            bool is_guest = guests && draft->slots[i].guest && model->end[i] > at;
            bool is_born = draft->slots[i].tenured && bytes_of(draft, i) > EBB_SMALL_MAX_BYTES;
            used += is_guest || is_born ? bytes_of(draft, i) : 0;
        }
        most = used > most ? used : most;
    }
    return most;
}

static size_t bytes_of_guests(const struct draft *draft) {
    size_t bytes = 0;
    uint32_t guests = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_slot *slot = &draft->slots[i];
        if (!slot->guest)
            continue;
        assert_true(!slot->room && slot->needed && !slot->survived && !slot->tenured);
        bytes += bytes_of(draft, i);
        guests++;
    }
    assert_int_equal(guests, draft->guests);
    assert_true(guests <= GUESTS_MOST);
    return bytes;
}

/* Gradients of the step before, 10 of 64 KiB, go as this one begins; layers come and go again like
 * a stack, and gradients with them from the last layer but `late` on. */
static void train(struct model *model, uint32_t layers, uint32_t late) {
    const size_t bytes = 64 << 10;
    uint32_t above = 10 * (uint32_t)bytes + 5000;
    *model = (struct model){.count = 0};
    come(model, 100, false, above);
    above -= 10 * (uint32_t)bytes;
    for (uint32_t i = 0; i < layers; i++)
        come(model, bytes, false, above);
    for (uint32_t i = layers; i > 0; i--) {
        if (i <= layers - late && i > layers - late - 10)
            come(model, bytes, true, above);
        go(model, i);
    }
    come(model, 100, false, above);
}

static void layers_lie_where_gradients_are_not_yet(void **state) {
    (void)state;
    struct model model;
    train(&model, 40, 12);
    struct draft *draft = draft_of(&model, true);
    size_t peak = peak_of(&model, draft), most = most_above(&model, draft, false);
    guests_choose(draft, UINT64_MAX);
    assert_int_equal(draft->guests, 10);
    assert_int_equal(bytes_of_guests(draft), 10 * (64 << 10));
    assert_int_equal(peak_of(&model, draft), peak - 10 * (64 << 10));
    assert_int_equal(most_above(&model, draft, true), most);
    draft_drop(draft);
}

static void there_are_none_where_nothing_is_gained(void **state) {
    (void)state;
    struct model model;
    train(&model, 40, 12);
    struct draft *draft = draft_from_record(model.record, model.count, 1, NULL,
                                            DRAFT_TENURE_NONE); /* nothing is born above */
    guests_choose(draft, UINT64_MAX);
    assert_int_equal(draft->guests, 0);
    draft_drop(draft);
    model = (struct model){.count = 0}; /* what survives is there before all else */
    for (uint32_t i = 0; i < 50; i++)
        come(&model, 64 << 10, i < 10, 5000);
    for (uint32_t i = 10; i < 50; i++)
        go(&model, i);
    draft = draft_of(&model, true);
    guests_choose(draft, UINT64_MAX);
    assert_int_equal(draft->guests, 0);
    draft_drop(draft);
    train(&model, 200, 12); /* a twentieth of the peak: only if that is how steps are */
    for (int confirmed = 0; confirmed <= 1; confirmed++) {
        draft = draft_of(&model, confirmed);
        guests_choose(draft, UINT64_MAX);
        assert_int_equal(draft->guests, confirmed ? 10 : 0);
        draft_drop(draft);
    }
}

static void there_are_no_more_than_allowed(void **state) {
    (void)state;
    struct model model;
    train(&model, 40, 12);
    for (uint32_t most = 0; most <= 12; most++) {
        struct draft *draft = draft_of(&model, true);
        guests_choose(draft, (uint64_t)most * (64 << 10) + 15);
        assert_int_equal(draft->guests, most < 10 ? most : 10);
        draft_drop(draft);
    }
}

static void a_record_of_any_step(struct model *model) {
    uint32_t above = 0, count = 20 + chance(MOST - 20);
    *model = (struct model){.count = 0};
    while (model->count < count) {
        uint32_t number = chance(count);
        if (chance(5) == 0)
            above = chance(4) << 20;
        if (chance(2) && number < model->count && model->record[number].rank == PLAN_NEVER) {
            if (!model->record[number].survived)
                go(model, number);
        } else {
            come(model, chance(2) ? chance(3000) : chance(400000), chance(8) == 0, above);
        }
    }
}

static bool is_the_same(const struct draft *a, const struct draft *b) {
    for (uint32_t i = 0; i < a->count; i++) {
        const struct draft_slot *left = &a->slots[i], *right = &b->slots[i];
        if (left->room != right->room || left->passed != right->passed ||
            left->rank != right->rank || left->guest != right->guest ||
            left->align != right->align || left->above != right->above)
            return false;
    }
    return a->count == b->count && a->placed == b->placed && a->guests == b->guests;
}

/* The plan of a draft with guests, and the draft of that plan. */
static void go_round(const struct draft *draft) {
    static const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = 5000};
    struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
    assert_non_null(plan);
    assert_int_equal(plan->guest_count, draft->guests);
    struct draft *again = draft_of_plan(plan);
    assert_true(is_the_same(draft, again));
    assert_int_equal(again->confirmed, draft->confirmed);
    guests_dismiss(again);
    struct plan *without = draft_plan(again, &effort, UINT64_MAX);
    assert_non_null(without);
    assert_true(without->max_live_bytes >= plan->max_live_bytes);
    assert_int_equal(without->guest_count, 0);
    plan_drop(without);
    plan_drop(plan);
    draft_drop(again);
}

static void the_parent_of_any_step_needs_no_more(void **state) {
    (void)state;
    static struct model model;
    unsigned with_guests = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        a_record_of_any_step(&model);
        struct draft *draft = draft_of(&model, chance(2)), *before = draft_of(&model, false);
        size_t peak = peak_of(&model, before), most = most_above(&model, before, false);
        guests_choose(draft, UINT64_MAX);
        size_t lower = peak_of(&model, draft), bytes = bytes_of_guests(draft);
        assert_true(most_above(&model, draft, true) <= most);
        assert_true(lower + bytes >= peak);
        size_t worth = peak / (draft->confirmed ? 64 : 16) / RANGE_GRANULE * RANGE_GRANULE;
        assert_true(!bytes || (peak - lower >= worth && peak - lower >= 64 << 10));
        if (draft->placed)
            go_round(draft);
        with_guests += draft->guests != 0;
        guests_dismiss(draft);
        assert_true(is_the_same(draft, before));
        draft_drop(draft);
        draft_drop(before);
    }
    assert_true(with_guests > ROUNDS / 10);
}

int main(void) {
    seed = fresh_seed();
    fprintf(stderr, "# EBB_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        TIDY(layers_lie_where_gradients_are_not_yet),
        TIDY(there_are_none_where_nothing_is_gained),
        TIDY(there_are_no_more_than_allowed),
        TIDY(the_parent_of_any_step_needs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
