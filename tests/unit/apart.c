// SPDX-License-Identifier: Apache-2.0
/*
 * apart.c - plans of steps with keys, in which what stays to the end has places of its own, if the
 * plan is hardly higher for that.
 */
#include "kit/passes.h"
#include "kit/tidy.h"

#include "step/draft.h"

enum { MOST = 100, TRIPS = 12, INNER = 10 };

static const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = 5000};

static uint64_t seed;

static uint32_t chance(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

static struct draft *draft_of(const struct record_entry *record, uint32_t count) {
    struct draft *draft =
        draft_from_record(record, count, draft_hash(record, count), NULL, DRAFT_TENURE_ONCE);
    assert_non_null(draft);
    return draft;
}

/* Few stay to the end, and so small ones that there are plans of either kind. */
static struct draft *draft_at_random(bool keyed, size_t staying) {
    struct record_entry record[MOST];
    uint32_t releases = 0;
    for (uint32_t i = 0; i < MOST; i++) {
        bool stays = chance(8) == 0;
        uint32_t key = 1 + chance(9);
        record[i] = (struct record_entry){.bytes = 1 + chance(stays ? (uint32_t)staying : 50000),
                                          .key = keyed ? key : 0, .align_log2 = 6,
                                          .passed = releases, .rank = PLAN_NEVER,
                                          .grew = stays};
        for (uint32_t k = i < 5 ? 0 : i - 5; k <= i; k++) {
            if (record[k].grew || record[k].rank != PLAN_NEVER || chance(3))
                continue;
            record[k].rank = releases++;
            record[k].until = i + 1;
        }
    }
    return draft_of(record, MOST);
}

static bool are_apart(const struct plan_slot *a, const struct plan_slot *b) {
    return a->offset + a->room <= b->offset || b->offset + b->room <= a->offset;
}

static bool all_are_apart(const struct draft *draft, const struct plan *plan) {
    for (uint32_t i = 0; i < draft->count; i++)
        for (uint32_t k = 0; k < draft->count && draft->slots[i].rank == PLAN_NEVER; k++)
            if (k != i && !are_apart(&plan->slots[i], &plan->slots[k]))
                return false;
    return true;
}

static void what_stays_lies_apart_if_that_is_hardly_higher(void **state) {
    unsigned apart = 0, rounds = 200;
    for (seed = 0; rounds; rounds--) {
        uint64_t round = seed;
        size_t staying = rounds & 1 ? 4000 : 50000;
        struct draft *loose = draft_at_random(false, staying);
        seed = round;
        struct draft *keyed = draft_at_random(true, staying);
        struct plan *before = draft_plan(loose, &effort, UINT64_MAX);
        struct plan *plan = draft_plan(keyed, &effort, UINT64_MAX);
        assert_false(before->apart);
        assert_int_equal(plan->max_live_bytes, before->max_live_bytes);
        if (plan->apart)
            assert_true(all_are_apart(keyed, plan));
        assert_true(plan->height_bytes <= before->height_bytes / 8 * 9 + 4 * KIB);
        apart += plan->apart;
        plan_drop(plan);
        plan_drop(before);
        draft_drop(keyed);
        draft_drop(loose);
    }
    assert_in_range(apart, 50, 199);
}

static void a_plan_is_no_higher_for_it_than_is_allowed(void **state) {
    struct record_entry record[] = {
        {.bytes = 64 * KIB, .rank = 0, .key = 1, .until = 1, .align_log2 = 6},
        {.bytes = 4 * KIB, .passed = 1, .rank = PLAN_NEVER, .key = 2, .align_log2 = 6},
    };
    struct draft *draft = draft_of(record, 2);
    struct plan *plan = draft_plan(draft, &effort, 68 * KIB);
    assert_true(plan->apart && plan->height_bytes == 68 * KIB);
    plan_drop(plan);
    plan = draft_plan(draft, &effort, 68 * KIB - 1);
    assert_true(!plan->apart && plan->height_bytes == 64 * KIB);
    plan_drop(plan);
    draft_refit(draft, 1, 8 * KIB + 1);
    plan = draft_plan(draft, &effort, UINT64_MAX);
    assert_true(!plan->apart && plan->height_bytes == 64 * KIB);
    plan_drop(plan);
    draft_drop(draft);
}

/* What a trip made goes at its end, but for a result. */
static void take_items(ebb_site *site, unsigned outer) {
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < outer; i++) {
        void *input = ebb_step_alloc(step, 64 * KIB, 64, 1), *kept[INNER][2];
        unsigned inner = 2 + chance(INNER - 1);
        for (unsigned k = 0; k < inner; k++) {
            void *hidden = ebb_step_alloc(step, 32 * KIB, 64, 11);
            kept[k][0] = ebb_step_alloc(step, 8 * KIB, 64, 12);
            kept[k][1] = ebb_step_alloc(step, 24 * KIB, 64, 13);
            assert_int_equal(ebb_region_release(step.region, hidden), 0);
        }
        assert_non_null(ebb_step_alloc(step, 4 * KIB, 64, 2));
        for (unsigned k = 0; k < inner; k++) {
            assert_int_equal(ebb_region_release(step.region, kept[k][0]), 0);
            assert_int_equal(ebb_region_release(step.region, kept[k][1]), 0);
        }
        assert_int_equal(ebb_region_release(step.region, input), 0);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

static void results_of_trips_are_not_in_the_way_of_others(void **state) {
    struct stage *stage = *state;
    uint64_t hits = 0, all = 0;
    for (uint64_t run = 0; run < 12; run++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        struct ebb_site_stats before = site_stats(site);
        seed = run;
        for (unsigned i = 0; i < 150; i++) {
            if (i == 50)
                before = site_stats(site);
            take_items(site, 4 + chance(TRIPS - 3));
        }
        struct ebb_site_stats stats = site_stats(site);
        hits += stats.hits - before.hits;
        all += stats.allocations - before.allocations;
        assert_int_equal(ebb_site_destroy(site), 0);
    }
    assert_true(hits * 1000 >= all * 980);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TIDY(what_stays_lies_apart_if_that_is_hardly_higher),
        TIDY(a_plan_is_no_higher_for_it_than_is_allowed),
        STAGED(results_of_trips_are_not_in_the_way_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
