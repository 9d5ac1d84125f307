// SPDX-License-Identifier: Apache-2.0
/*
 * draft.c - records of random steps become plans: against a model that knows when each block was
 * alive. Renumbering, rooms, survivors, envelopes, bounds.
 */
#include "kit/tidy.h"

#include "step/draft.h"

#include <stdlib.h>

enum { MOST = 300 };

static const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = 5000};

/* A step that never was: what its record says, and when each block came and went. */
struct model {
    struct record_entry record[MOST];
    uint32_t born[MOST], died[MOST]; /* moments; UINT32_MAX: at the end */
    uint32_t count, releases;
};

static uint64_t seed;

static uint32_t chance(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

static void model_release(struct model *model, uint32_t id, uint32_t now) {
    model->died[id] = now;
    model->record[id].rank = model->releases++;
    model->record[id].until = model->count;
}

static size_t any_size(void) {
    static const size_t kinds[] = {1, 20, 2000, 300000};
    return chance(8) ? chance((uint32_t)kinds[chance(4)] + 1) : 0;
}

static void model_make(struct model *model, uint32_t count, unsigned survivors_of_100) {
    uint32_t now = 0;
    *model = (struct model){.count = 0};
    while (model->count < count) {
        uint32_t id = chance(count);
        if (chance(2) && id < model->count && model->record[id].rank == PLAN_NEVER) {
            if (!model->record[id].survived)
                model_release(model, id, now++);
            continue;
        }
        id = model->count++;
        model->born[id] = now++;
        model->died[id] = UINT32_MAX;
        model->record[id] = (struct record_entry){
            .bytes = any_size(), .passed = model->releases, .rank = PLAN_NEVER,
            .align_log2 = (uint16_t)chance(14), .key = chance(9) & 7,
            .survived = chance(100) < survivors_of_100};
    }
}

static size_t align_of(const struct record_entry *entry) {
    return (size_t)1 << entry->align_log2;
}

static bool is_placed(const struct model *model, uint32_t id) {
    return !model->record[id].survived && align_of(&model->record[id]) <= PLAN_ALIGN_MOST;
}

static bool are_alive_together(const struct model *model, uint32_t a, uint32_t b) {
    return model->born[a] < model->died[b] && model->born[b] < model->died[a];
}

static bool overlap(const struct plan_slot *a, const struct plan_slot *b) {
    return a->offset < b->offset + b->room && b->offset < a->offset + a->room;
}

/* Placed releases among the first `releases` of all. */
static uint32_t placed_before(const struct model *model, uint32_t releases) {
    uint32_t placed = 0;
    for (uint32_t i = 0; i < model->count; i++)
        placed += is_placed(model, i) && model->record[i].rank < releases;
    return placed;
}

static struct draft *draft_of(const struct model *model, const struct draft *before,
                              enum draft_tenure tenure) {
    return draft_from_record(model->record, model->count,
                             draft_hash(model->record, model->count), before, tenure);
}

static void check_slot(const struct model *model, const struct plan *plan, uint32_t id) {
    const struct plan_slot *slot = &plan->slots[id];
    const struct record_entry *entry = &model->record[id];
    assert_int_equal(slot->key, entry->key);
    assert_int_equal(slot->align_log2, entry->align_log2);
    assert_int_equal(slot->passed, placed_before(model, entry->passed));
    if (!is_placed(model, id)) {
        assert_int_equal(slot->room, 0);
        return;
    }
    size_t room = (size_t)slot->room * RANGE_GRANULE, offset = (size_t)slot->offset * RANGE_GRANULE;
    size_t step = entry->bytes >= 1024 ? 64 : 16;
    assert_true(room >= entry->bytes && room > 0 && room % step == 0);
    assert_true(room - entry->bytes < step || (entry->bytes == 0 && room == step));
    assert_true(offset % align_of(entry) == 0 && offset % step == 0);
    assert_true(align_of(entry) <= PLAN_ALIGN_MOST);
    assert_true(offset + room <= plan->height_bytes);
}

static void check_order(const struct model *model, const struct plan *plan) {
    uint32_t released = 0;
    for (uint32_t rank = 0; rank < model->releases; rank++)
        for (uint32_t i = 0; i < model->count; i++)
            if (model->record[i].rank == rank && is_placed(model, i))
                assert_int_equal(plan->order[released++], i);
    assert_int_equal(plan->order_count, released);
    assert_int_equal(plan->order[released], plan->slot_count);
}

static bool comes_before(uint64_t key_a, uint32_t a, uint64_t key_b, uint32_t b) {
    return key_a < key_b || (key_a == key_b && a < b);
}

static void check_tables(const struct plan *plan) {
    uint32_t placed = 0;
    for (uint32_t i = 0; i < plan->slot_count; i++)
        placed += plan->slots[i].room != 0;
    assert_int_equal(plan->placed_count, placed);
    for (uint32_t i = 1; i < placed; i++) {
        uint32_t a = plan->places[i - 1].slot, b = plan->places[i].slot;
        assert_int_equal(plan->places[i].offset, plan->slots[b].offset);
        assert_true(comes_before(plan->slots[a].offset, a, plan->slots[b].offset, b));
    }
    for (uint32_t i = 1; plan->by_key && i < plan->slot_count; i++) {
        uint32_t a = plan->by_key[i - 1], b = plan->by_key[i];
        assert_true(comes_before(plan->slots[a].key, a, plan->slots[b].key, b));
    }
}

static void check_plan(const struct model *model, const struct plan *plan) {
    assert_int_equal(plan->slot_count, model->count);
    assert_true(plan->height_bytes % PAGE == 0 && plan->height_bytes >= plan->max_live_bytes);
    for (uint32_t i = 0; i < model->count; i++) {
        check_slot(model, plan, i);
        for (uint32_t k = 0; k < i; k++)
            if (plan->slots[i].room && plan->slots[k].room && are_alive_together(model, i, k))
                assert_false(overlap(&plan->slots[i], &plan->slots[k]));
    }
    check_order(model, plan);
    check_tables(plan);
}

static void blocks_that_are_alive_together_have_places_of_their_own(void **state) {
    static struct model model;
    for (unsigned round = 0; round < 150; round++) {
        seed = round;
        model_make(&model, 1 + chance(MOST), chance(3) ? 0 : 20);
        struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
        assert_non_null(draft);
        struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
        if (plan)
            check_plan(&model, plan);
        else
            assert_true(!draft->placed && !draft->tenured);
        plan_drop(plan);
        draft_drop(draft);
    }
}

static void a_plan_with_all_blocks_in_a_row_is_as_high_as_the_largest(void **state) {
    static struct model model;
    model = (struct model){.count = 20, .releases = 20};
    for (uint32_t i = 0; i < 20; i++)
        model.record[i] = (struct record_entry){.bytes = 4096 * (i + 1), .passed = i, .rank = i,
                                                .align_log2 = 6};
    struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_NONE);
    struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
    assert_int_equal(plan->height_bytes, 20 * 4096);
    assert_int_equal(plan->max_live_bytes, 20 * 4096);
    assert_null(plan->by_key);
    plan_drop(plan);
    draft_drop(draft);
}

static void the_structure_is_everything_but_sizes(void **state) {
    static struct model model, other;
    seed = 5;
    model_make(&model, 50, 0);
    uint64_t hash = draft_hash(model.record, 50);
    other = model;
    for (uint32_t i = 0; i < 50; i++) {
        other.record[i].bytes *= 3;
        other.record[i].survived = i % 2;
        other.record[i].addr = i;
    }
    assert_true(draft_hash(other.record, 50) == hash);
    assert_true(draft_hash(model.record, 49) != hash);
    other = model;
    other.record[3].key ^= 1;
    assert_true(draft_hash(other.record, 50) != hash);
    other = model;
    other.record[3].align_log2 ^= 1;
    assert_true(draft_hash(other.record, 50) != hash);
    other = model;
    other.record[3].passed++;
    assert_true(draft_hash(other.record, 50) != hash);
    uint32_t released = 0;
    while (model.record[released].rank == PLAN_NEVER)
        released++;
    other = model;
    other.record[released].until++;
    assert_true(draft_hash(other.record, 50) != hash);
    other = model;
    other.record[released].rank = PLAN_NEVER;
    assert_true(draft_hash(other.record, 50) != hash);
    other = model;
    other.record[3].bytes = !other.record[3].bytes;
    assert_true(draft_hash(other.record, 50) != hash);
}

static struct record_entry *released_as(struct model *model, uint32_t rank) {
    struct record_entry *entry = model->record;
    while (entry->rank != rank)
        entry++;
    return entry;
}

/* Exchanges releases `a` and `b`: which block each one is of. */
static void exchange(struct model *model, uint32_t a, uint32_t b) {
    struct record_entry *one = released_as(model, a), *other = released_as(model, b);
    uint32_t until = one->until;
    one->rank = b;
    one->until = other->until;
    other->rank = a;
    other->until = until;
}

/* True if a block comes between two releases: some have only the first behind them. */
static bool is_between(const struct model *model, uint32_t first, uint32_t second) {
    for (uint32_t i = 0; i < model->count; i++)
        if (model->record[i].passed > first && model->record[i].passed <= second)
            return true;
    return false;
}

/* Containers with hashed pointers let go of what they have in any order. */
static void the_order_of_releases_at_the_same_moment_is_no_structure(void **state) {
    unsigned together = 0, apart = 0;
    for (uint64_t i = 1; i <= 100; i++) {
        struct model model;
        seed = i;
        model_make(&model, 60, 10);
        uint64_t hash = draft_hash(model.record, model.count);
        for (uint32_t rank = 0; rank + 1 < model.releases; rank++) {
            bool between = is_between(&model, rank, rank + 1);
            exchange(&model, rank, rank + 1);
            assert_true((draft_hash(model.record, model.count) == hash) == !between);
            exchange(&model, rank, rank + 1);
            together += !between;
            apart += between;
        }
    }
    assert_true(together > 100 && apart > 100);
}

static void coarse_records_say_it_of_the_blocks_that_they_have(void **state) {
    unsigned made = 0;
    for (uint64_t i = 1; i <= 100; i++) {
        struct model model;
        struct coarse_record coarse;
        seed = i;
        model_make(&model, 60, 10);
        if (!coarse_make(&coarse, model.record, model.count))
            continue;
        made++;
        for (uint32_t id = 0; id < coarse.count; id++) {
            uint32_t until = 0, rank = coarse.record[id].rank;
            while (until < coarse.count && coarse.record[until].passed <= rank)
                until++;
            assert_true(rank == PLAN_NEVER || coarse.record[id].until == until);
        }
        coarse_drop(&coarse);
    }
    assert_true(made > 50);
}

static void survivors_are_not_placed(void **state) {
    static struct model model;
    seed = 9;
    model_make(&model, 100, 30);
    static const enum draft_tenure kinds[] = {DRAFT_TENURE_NONE, DRAFT_TENURE_ONCE,
                                              DRAFT_TENURE_TWICE};
    for (unsigned kind = 0; kind < 3; kind++) {
        struct draft *draft = draft_of(&model, NULL, kinds[kind]);
        for (uint32_t i = 0; i < 100; i++) {
            bool survived = model.record[i].survived;
            assert_int_equal(draft->slots[i].tenured, survived && kinds[kind] == DRAFT_TENURE_ONCE);
            assert_true(!survived || draft->slots[i].room == 0);
        }
        draft_drop(draft);
    }
}

static void only_what_survived_twice_is_born_in_the_parent(void **state) {
    static struct model model;
    seed = 11;
    model_make(&model, 10, 0);
    model.record[2].survived = model.record[4].survived = true;
    model.record[2].rank = model.record[4].rank = PLAN_NEVER;
    struct draft *first = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    model.record[4].survived = false;
    model.record[6].survived = true;
    struct draft *second = draft_of(&model, first, DRAFT_TENURE_ONCE);
    struct draft *third = draft_of(&model, second, DRAFT_TENURE_TWICE);
    assert_true(first->slots[2].tenured && first->slots[4].tenured);
    assert_true(second->slots[2].tenured && !second->slots[4].tenured && !second->slots[6].tenured);
    assert_true(third->slots[2].tenured && third->slots[6].tenured);
    assert_int_equal(third->tenured, 2);
    draft_drop(first);
    draft_drop(second);
    draft_drop(third);
}

/* Blocks with these keys, all to the end. */
static struct draft *draft_of_keys(const char *keys) {
    static struct model model;
    model = (struct model){.count = 0};
    for (; *keys; keys++)
        model.record[model.count++] =
            (struct record_entry){.bytes = 5000, .rank = PLAN_NEVER,
                                  .key = (uint32_t)(*keys - '0'), .align_log2 = 6};
    return draft_of(&model, NULL, DRAFT_TENURE_ONCE);
}

static void a_longer_draft_leads_who_has_its_keys_in_order(void **state) {
    static const struct {
        const char *longer, *keys;
        bool leads;
    } cases[] = {
        {"1212123434", "121234", true}, {"1212123434", "3434", true}, {"10203", "123", true},
        {"1212123434", "4", true},      {"121212", "3", false},       {"1212123434", "4343", false},
        {"1212", "1212", false},        {"12", "1212", false},        {"0000", "00", false},
        {"1212", "12122", false},       {"1234", "13", true},         {"1234", "31", false},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct draft *longer = draft_of_keys(cases[i].longer);
        struct draft *draft = draft_of_keys(cases[i].keys);
        assert_int_equal(draft_leads(longer, draft), cases[i].leads);
        draft->coarse = true;
        assert_false(draft_leads(longer, draft) || draft_leads(NULL, draft));
        draft_drop(longer);
        draft_drop(draft);
    }
}

/* Each block has its slot by its key; what is behind them keeps what it had. */
static void a_longer_draft_gets_room_for_who_it_leads(void **state) {
    struct draft *longer = draft_of_keys("1212123434"), *draft = draft_of_keys("12234");
    static const uint32_t slots[] = {0, 1, 3, 6, 7}; /* of the longer one */
    assert_false(draft_widen_along(longer, draft));
    uint32_t room = longer->slots[0].room;
    for (uint32_t i = 0; i < draft->count; i++)
        draft_refit(draft, i, (size_t)1 << (16 + i));
    assert_true(draft_widen_along(longer, draft));
    for (uint32_t i = 0, found = 0; i < longer->count; i++) {
        bool leads = found < draft->count && slots[found] == i;
        assert_int_equal(longer->slots[i].room, leads ? draft->slots[found].room : room);
        found += leads;
    }
    assert_false(draft_widen_along(longer, draft));
    draft_drop(longer);
    draft_drop(draft);
}

static void rooms_are_the_largest_of_steps_that_are_alike(void **state) {
    static struct model model, other;
    seed = 13;
    model_make(&model, 80, 0);
    other = model;
    for (uint32_t i = 0; i < 80; i++)
        if (other.record[i].bytes && chance(2))
            other.record[i].bytes = other.record[i].bytes * 2 + 1500;
    struct draft *small = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    struct draft *large = draft_of(&other, NULL, DRAFT_TENURE_ONCE);
    struct draft *both = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    assert_true(draft_widen(both, large));
    assert_false(draft_widen(both, small) || draft_widen(both, large) || draft_widen(both, NULL));
    for (uint32_t i = 0; i < 80; i++)
        assert_int_equal(both->slots[i].room,
                         small->slots[i].room > large->slots[i].room ? small->slots[i].room
                                                                     : large->slots[i].room);
    struct plan *plan = draft_plan(both, &effort, UINT64_MAX);
    check_plan(&other, plan);
    plan_drop(plan);
    draft_drop(small);
    draft_drop(large);
    draft_drop(both);
}

/* A draft and the one that its plan gives: all but alignments of rooms, which may be wider. */
static void check_same(const struct draft *draft, const struct draft *other) {
    assert_int_equal(draft->count, other->count);
    assert_int_equal(draft->placed, other->placed);
    assert_int_equal(draft->tenured, other->tenured);
    assert_int_equal(draft->released, other->released);
    assert_true(draft->hash == other->hash);
    assert_true(draft->keyed == other->keyed && draft->coarse == other->coarse);
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_slot *a = &draft->slots[i], *b = &other->slots[i];
        assert_true(a->room == b->room && a->passed == b->passed && a->rank == b->rank);
        assert_true(a->key == b->key && a->align_log2 == b->align_log2);
        assert_true(a->survived == b->survived && a->tenured == b->tenured);
        assert_true(b->align >= a->align && !b->align == !a->align);
    }
}

static void a_plan_gives_the_draft_that_it_was_made_from(void **state) {
    static struct model model;
    for (uint64_t game = 1; game <= 40; game++) {
        seed = game;
        model_make(&model, 120, 20);
        for (uint32_t i = 0; i < 120 && game % 3 == 0; i++)
            model.record[i].key = 1 + i % 7;
        struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
        draft->coarse = game % 2;
        struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
        struct draft *again = draft_of_plan(plan);
        check_same(draft, again);
        struct plan *like = draft_plan(again, &effort, UINT64_MAX);
        check_plan(&model, like);
        plan_drop(plan);
        plan_drop(like);
        draft_drop(draft);
        draft_drop(again);
    }
}

static void steps_of_other_structure_do_not_widen(void **state) {
    static struct model model, other;
    seed = 17;
    model_make(&model, 30, 0);
    model_make(&other, 30, 0);
    struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    struct draft *stranger = draft_of(&other, NULL, DRAFT_TENURE_ONCE);
    assert_false(draft_widen(draft, stranger));
    draft_drop(draft);
    draft_drop(stranger);
}

static void a_slot_that_was_too_small_gets_room(void **state) {
    static struct model model;
    seed = 19;
    model_make(&model, 5, 0);
    model.record[1].survived = true;
    model.record[0].align_log2 = 4;
    model.record[0].bytes = 100;
    struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_NONE);
    assert_int_equal(draft->slots[0].room, 7);
    assert_false(draft_fit(draft, 0, 112));
    assert_true(draft_fit(draft, 0, 113));
    assert_int_equal(draft->slots[0].room, 8);
    assert_true(draft_fit(draft, 0, 1025));
    assert_true(draft->slots[0].room == 1088 / 16 && draft->slots[0].align == 64);
    assert_false(draft_fit(draft, 0, PLAN_ROOM_MOST + 1));
    assert_true(draft_fit(draft, 0, PLAN_ROOM_MOST));
    assert_true((uint64_t)draft->slots[0].room * 16 >= PLAN_ROOM_MOST);
    assert_false(draft_fit(draft, 1, 5000)); /* has no place */
    draft_drop(draft);
}

/* Of any size, for there is no place that it would have to fit. */
static void a_survivor_that_has_grown_is_known_as_such(void **state) {
    static struct model model;
    seed = 19;
    model_make(&model, 5, 0);
    model.record[1].survived = true;
    model.record[1].bytes = 5000;
    struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    const struct draft_slot *slot = &draft->slots[1];
    assert_true(slot->tenured && slot->needed == 5056 / RANGE_GRANULE);
    assert_false(draft_fit(draft, 1, 5056));
    assert_true(draft_fit(draft, 1, 15000) && slot->needed == 15040 / RANGE_GRANULE);
    struct draft *other = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    assert_true(draft_widen(other, draft) && other->slots[1].needed == slot->needed);
    draft_refit(draft, 1, 100);
    assert_int_equal(slot->needed, 112 / RANGE_GRANULE);
    assert_true(draft_fit(draft, 1, UINT32_MAX));
    assert_int_equal(slot->needed, PLAN_ROOM_MOST / RANGE_GRANULE);
    assert_false(slot->room);
    draft_drop(draft);
    draft_drop(other);
}

static void blocks_too_large_for_a_slot_are_left_out(void **state) {
    static struct model model;
    model = (struct model){.count = 3};
    for (uint32_t i = 0; i < 3; i++)
        model.record[i] = (struct record_entry){.bytes = 64, .rank = PLAN_NEVER, .align_log2 = 6};
    model.record[0].bytes = PLAN_ROOM_MOST + 1;
    model.record[1].align_log2 = 13;
    struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    assert_true(!draft->slots[0].room && !draft->slots[1].room && draft->slots[2].room == 4);
    assert_int_equal(draft->placed, 1);
    draft_drop(draft);
}

static void a_plan_is_refused_above_the_height_that_is_allowed(void **state) {
    static struct model model;
    model = (struct model){.count = 2};
    for (uint32_t i = 0; i < 2; i++)
        model.record[i] = (struct record_entry){.bytes = 8192, .rank = PLAN_NEVER, .align_log2 = 6};
    struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    assert_null(draft_plan(draft, &effort, 16383));
    assert_refused(ebb_last_error(), EBB_E_SIZE);
    assert_text_names("16384");
    struct plan *plan = draft_plan(draft, &effort, 16384);
    assert_non_null(plan);
    plan_drop(plan);
    for (uint32_t i = 0; i < 2; i++)
        draft_fit(draft, i, PLAN_ROOM_MOST);
    plan = draft_plan(draft, &effort, UINT64_MAX); /* 8 GiB */
    assert_true(plan && plan->height_bytes >= 2 * PLAN_ROOM_MOST);
    plan_drop(plan);
    draft_drop(draft);
}

static void steps_with_nothing_to_place_have_no_plan(void **state) {
    static struct model model;
    model = (struct model){.count = 0};
    assert_null(draft_of(&model, NULL, DRAFT_TENURE_ONCE));
    assert_refused(ebb_last_error(), EBB_E_SIZE);
    model.count = 1;
    model.record[0] = (struct record_entry){.bytes = 10, .rank = PLAN_NEVER, .align_log2 = 3};
    model.record[0].survived = true;
    struct draft *draft = draft_of(&model, NULL, DRAFT_TENURE_NONE);
    assert_null(draft_plan(draft, &effort, UINT64_MAX));
    assert_refused(ebb_last_error(), EBB_E_SIZE);
    draft_drop(draft);
    draft = draft_of(&model, NULL, DRAFT_TENURE_ONCE);
    struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
    assert_true(plan && plan->slots[0].tenured && plan->placed_count == 0);
    plan_drop(plan);
    draft_drop(draft);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TIDY(blocks_that_are_alive_together_have_places_of_their_own),
        TIDY(a_plan_with_all_blocks_in_a_row_is_as_high_as_the_largest),
        TIDY(the_structure_is_everything_but_sizes),
        TIDY(the_order_of_releases_at_the_same_moment_is_no_structure),
        TIDY(coarse_records_say_it_of_the_blocks_that_they_have),
        TIDY(survivors_are_not_placed),
        TIDY(only_what_survived_twice_is_born_in_the_parent),
        TIDY(a_longer_draft_leads_who_has_its_keys_in_order),
        TIDY(a_longer_draft_gets_room_for_who_it_leads),
        TIDY(rooms_are_the_largest_of_steps_that_are_alike),
        TIDY(a_plan_gives_the_draft_that_it_was_made_from),
        TIDY(steps_of_other_structure_do_not_widen),
        TIDY(a_slot_that_was_too_small_gets_room),
        TIDY(a_survivor_that_has_grown_is_known_as_such),
        TIDY(blocks_too_large_for_a_slot_are_left_out),
        TIDY(a_plan_is_refused_above_the_height_that_is_allowed),
        TIDY(steps_with_nothing_to_place_have_no_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
