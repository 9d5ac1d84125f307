// SPDX-License-Identifier: Apache-2.0
/*
 * merged.c - two drafts of blocks with keys as one, and sites whose steps differ in what comes:
 * they are served by one plan.
 */
#include "kit/passes.h"
#include "kit/tidy.h"

#include "step/learn.h"
#include "step/merge.h"

enum { MOST = 120, ALL = 1 << 20 };

static const struct packing_effort effort = {.keys = PACKING_ORDERS, .slack_ppm = 5000};

static uint64_t seed;

static uint32_t chance(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

/* ---- drafts ---- */

/* A step, by its events: a letter is a block with that key, which the same letter in lower case
 * releases. */
static struct draft *draft_of(const char *events) {
    struct record_entry record[MOST] = {{0}};
    uint32_t count = 0, releases = 0;
    for (; *events; events++) {
        uint32_t at = count;
        if (*events < 'a') {
            record[count++] = (struct record_entry){.bytes = 64 * KIB, .passed = releases,
                                                    .rank = PLAN_NEVER, .align_log2 = 6,
                                                    .key = (uint32_t)(*events - 'A' + 1)};
            continue;
        }
        while (record[--at].key != (uint32_t)(*events - 'a' + 1) || record[at].rank != PLAN_NEVER)
            continue;
        record[at].rank = releases++;
        record[at].until = count;
    }
    struct draft *draft =
        draft_from_record(record, count, draft_hash(record, count), NULL, DRAFT_TENURE_ONCE);
    assert_non_null(draft);
    return draft;
}

static void assert_keys(const struct draft *draft, const char *keys) {
    assert_int_equal(draft->count, strlen(keys));
    for (uint32_t i = 0; i < draft->count; i++)
        assert_int_equal(draft->slots[i].key, keys[i] - 'A' + 1);
}

/* And what a draft promises of its releases. */
static void assert_sound(const struct draft *draft) {
    uint32_t passed = 0, released = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_slot *slot = &draft->slots[i];
        assert_true(slot->passed >= passed && slot->passed <= draft->released);
        passed = slot->passed;
        released += slot->rank != PLAN_NEVER;
        assert_true(slot->rank == PLAN_NEVER || slot->rank < draft->released);
        assert_true(slot->passed <= slot->rank);
    }
    assert_int_equal(released, draft->released);
}

static struct plan *plan_of(const struct draft *draft) {
    struct plan *plan = draft_plan(draft, &effort, UINT64_MAX);
    assert_non_null(plan);
    return plan;
}

static void what_one_lacks_lies_where_the_other_has_it(void **state) {
    static const struct {
        const char *one, *other, *keys;
    } cases[] = {
        {"ABC", "ABDC", "ABDC"}, {"ABDC", "ABC", "ABDC"}, {"ABC", "ADC", "ADBC"},
        {"AB", "CD", "CDAB"},    {"ABAB", "ABC", "ABCAB"}, {"ABB", "AC", "ACBB"},
        {"A", "AAAB", "AAAB"},   {"AAAB", "AC", "ACAAB"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct draft *one = draft_of(cases[i].one), *other = draft_of(cases[i].other);
        struct draft *merged = draft_merge(one, other, ALL, UINT64_MAX);
        if (i == 1) /* it brings nothing */
            assert_null(merged);
        else
            assert_keys(merged, cases[i].keys);
        draft_drop(merged);
        draft_drop(other);
        draft_drop(one);
    }
}

/* What has no common block has its places in common. */
static void programs_that_have_nothing_in_common_share_their_places(void **state) {
    struct draft *one = draft_of("ABCDcdab"), *other = draft_of("EFGHIihgfe");
    struct draft *kept = draft_of("KLMN");
    struct draft *both = draft_merge(one, other, ALL, UINT64_MAX);
    struct draft *all = draft_merge(both, kept, ALL, UINT64_MAX);
    assert_keys(all, "KLMNEFGHIABCD");
    assert_sound(all);
    struct plan *plan = plan_of(all);
    assert_int_equal(plan->height_bytes, 5 * 64 * KIB);
    plan_drop(plan);
    draft_drop(all);
    draft_drop(both);
    draft_drop(kept);
    draft_drop(other);
    draft_drop(one);
}

/* In the first draft the first program's loop is longer, and in the other one the second's begins
 * before it has such trips. */
static void a_program_is_whole_before_another_begins(void **state) {
    struct draft *one = draft_of("AAAAGgaGgaGgaGga"), *other = draft_of("AAGgaGgaCCCCHhcHhcHhcHhc");
    struct draft *orders[2] = {draft_merge(one, other, ALL, UINT64_MAX),
                               draft_merge(other, one, ALL, UINT64_MAX)};
    for (unsigned i = 0; i < 2; i++) {
        assert_sound(orders[i]);
        assert_keys(orders[i], "AAAAGGGGCCCCHHHH");
        struct plan *plan = plan_of(orders[i]);
        assert_int_equal(plan->height_bytes, 5 * 64 * KIB);
        plan_drop(plan);
        draft_drop(orders[i]);
    }
    draft_drop(other);
    draft_drop(one);
}

static void a_slot_of_both_has_room_for_either(void **state) {
    struct draft *one = draft_of("ABab"), *other = draft_of("ABCabc");
    draft_refit(one, 0, 100 * KIB);
    draft_refit(other, 1, 200 * KIB);
    struct draft *merged = draft_merge(one, other, ALL, UINT64_MAX);
    assert_int_equal((size_t)merged->slots[0].room * RANGE_GRANULE, 100 * KIB);
    assert_int_equal((size_t)merged->slots[1].room * RANGE_GRANULE, 200 * KIB);
    assert_int_equal((size_t)merged->slots[2].room * RANGE_GRANULE, 64 * KIB);
    draft_drop(merged);
    draft_drop(other);
    draft_drop(one);
}

static void there_is_no_draft_of_both_where_nothing_is_won(void **state) {
    struct draft *one = draft_of("ABAB"), *same = draft_of("ABABAB"), *other = draft_of("AC");
    struct draft *kept = draft_of("ABAB");
    kept->slots[1].room = 0;
    kept->slots[1].survived = kept->slots[1].tenured = true;
    assert_null(draft_merge(one, same, ALL, UINT64_MAX)); /* the same keys */
    assert_null(draft_merge(one, kept, ALL, UINT64_MAX)); /* but for what became of a block */
    assert_null(draft_merge(one, other, 4, UINT64_MAX));  /* too many slots */
    struct draft *merged = draft_merge(one, other, 5, 4 * 64 * KIB);
    assert_keys(merged, "ACBAB");
    assert_null(draft_merge(one, other, 5, 4 * 64 * KIB - 1)); /* too high */
    uint64_t opened = pool_stats_of(plan_pool()).opened_regions;
    assert_null(draft_merge(one, other, 3, UINT64_MAX)); /* one of them has more: at once */
    assert_int_equal(pool_stats_of(plan_pool()).opened_regions, opened);
    other->coarse = true;
    assert_null(draft_merge(one, other, ALL, UINT64_MAX));
    other->coarse = other->keyed = false;
    assert_null(draft_merge(one, other, ALL, UINT64_MAX));
    draft_drop(merged);
    draft_drop(kept);
    draft_drop(other);
    draft_drop(same);
    draft_drop(one);
}

/* A has been in no record since, B in one of late. */
static void what_no_record_has_any_more_is_left_out(void **state) {
    struct draft *all = draft_of("AaBbBb");
    char events[] = "BbCc";
    for (unsigned merges = 1; merges < 20; merges++, events[2]++, events[3]++) {
        struct draft *other = draft_of(merges == 10 ? events : events + 2);
        struct draft *merged = draft_merge(all, other, ALL, UINT64_MAX);
        assert_non_null(merged);
        assert_sound(merged);
        unsigned found[2] = {0};
        for (uint32_t i = 0; i < merged->count; i++)
            if (merged->slots[i].key <= 2)
                found[merged->slots[i].key - 1]++;
        assert_int_equal(found[0], merges <= 16);
        assert_int_equal(found[1], merges <= 16 ? 2 : 1);
        draft_drop(all);
        draft_drop(other);
        all = merged;
    }
    struct plan *plan = plan_of(all); /* which says how old they are */
    struct draft *same = draft_of_plan(plan);
    unsigned ages = 0;
    for (uint32_t i = 0; i < all->count; ages += all->slots[i++].age)
        assert_int_equal(same->slots[i].age, all->slots[i].age);
    assert_true(ages > 16);
    plan_drop(plan);
    draft_drop(same);
    draft_drop(all);
}

/* Some of the keys 1 to `keys`, each once, in any order; some go. */
static struct draft *draft_at_random(uint32_t keys) {
    struct record_entry record[MOST];
    uint32_t count = 0, releases = 0;
    for (uint32_t key = 1; key <= keys; key++)
        if (chance(3))
            record[count++] = (struct record_entry){.bytes = 1 + chance(50000), .key = key,
                                                    .rank = PLAN_NEVER, .align_log2 = 6};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = chance(2) ? i : chance(count), key = record[i].key;
        record[i].key = record[other].key;
        record[other].key = key;
    }
    for (uint32_t i = 0; i < count; i++) {
        record[i].passed = releases;
        for (uint32_t goes = chance(3); goes; goes--) {
            uint32_t id = chance(i + 1);
            if (record[id].rank == PLAN_NEVER) {
                record[id].rank = releases++;
                record[id].until = i + 1;
            }
        }
    }
    return count ? draft_from_record(record, count, draft_hash(record, count), NULL,
                                     DRAFT_TENURE_ONCE)
                 : draft_at_random(keys);
}

/* Each key has one slot in the merged draft, or two where the orders cross: the first one. */
static const struct plan_slot *slot_with(const struct plan *plan, uint32_t key) {
    uint32_t at = 0, found = 0;
    const struct plan_slot *slot = NULL;
    for (; at < plan->slot_count; at++)
        if (plan->slots[at].key == key) {
            found++;
            slot = &plan->slots[at];
        }
    assert_true(found == 1 || found == 2);
    return found == 1 ? slot : NULL;
}

static bool are_apart(const struct plan_slot *a, const struct plan_slot *b) {
    return a->offset + a->room <= b->offset || b->offset + b->room <= a->offset;
}

static void assert_served(const struct draft *draft, const struct plan *plan) {
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct plan_slot *slot = slot_with(plan, draft->slots[i].key);
        assert_true(!slot || slot->room >= draft->slots[i].room);
        for (uint32_t k = 0; slot && k < i; k++) {
            const struct plan_slot *before = slot_with(plan, draft->slots[k].key);
            bool live = draft->slots[k].rank >= draft->slots[i].passed;
            assert_true(!before || !live || are_apart(before, slot));
        }
    }
}

static void what_is_alive_together_in_one_has_places_of_its_own(void **state) {
    unsigned merges = 0;
    for (seed = 0; merges < 300;) {
        uint32_t keys = 2 + chance(MOST - 2);
        struct draft *one = draft_at_random(keys), *other = draft_at_random(keys);
        struct draft *merged = draft_merge(one, other, ALL, UINT64_MAX);
        if (merged) {
            assert_sound(merged);
            struct plan *plan = plan_of(merged);
            assert_served(one, plan);
            assert_served(other, plan);
            plan_drop(plan);
            merges++;
        }
        draft_drop(merged);
        draft_drop(other);
        draft_drop(one);
    }
}

/* ---- sites ---- */

/* Forth and back over so many layers with keys of their own, of those that the mask has. */
static void take_layers(ebb_site *site, uint32_t first, uint32_t mask, unsigned layers) {
    void *kept[32] = {NULL};
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < layers; i++) {
        if (!(mask >> i & 1))
            continue;
        void *hidden = ebb_step_alloc(step, 32 * KIB, 64, first + 3 * i);
        kept[i] = ebb_step_alloc(step, 24 * KIB, 64, first + 3 * i + 1);
        assert_true(hidden && kept[i]);
        pattern_fill(kept[i], 24 * KIB, i);
        assert_int_equal(ebb_region_release(step.region, hidden), 0);
    }
    for (unsigned i = layers; i--;) {
        if (!kept[i])
            continue;
        void *gradient = ebb_step_alloc(step, 32 * KIB, 64, first + 3 * i + 2);
        memset(gradient, 0, 32 * KIB);
        assert_true(pattern_holds(kept[i], 24 * KIB, i));
        assert_int_equal(ebb_region_release(step.region, kept[i]), 0);
        assert_int_equal(ebb_region_release(step.region, gradient), 0);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

/* Of blocks since then, in per cent. */
static unsigned share_since(ebb_site *site, const struct ebb_site_stats *before) {
    struct ebb_site_stats stats = site_stats(site);
    return (unsigned)((stats.hits - before->hits) * 100 /
                      (stats.allocations - before->allocations));
}

static void layers_that_come_and_go_are_served(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_site_stats before = site_stats(site);
    seed = 5;
    for (unsigned i = 0; i < 200; i++) {
        if (i == 60)
            before = site_stats(site);
        take_layers(site, 1, chance(1 << 16) | chance(1 << 16), 16);
    }
    assert_true(share_since(site, &before) >= 95);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void programs_that_are_drawn_by_chance_are_served_in_the_same_pages(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_site_stats before = site_stats(site);
    seed = 6;
    for (unsigned i = 0; i < 200; i++) {
        if (i == 60)
            before = site_stats(site);
        take_layers(site, 1 + 100 * chance(3), UINT32_MAX, 16);
    }
    assert_true(share_since(site, &before) >= 95);
    assert_true(site_stats(site).plan_height <= (16 * 24 + 32 + 4) * KIB);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Blocks with keys of their own, some of which are there at once: of sizes that pack badly. */
static void take_stream(ebb_site *site, uint32_t first, uint32_t count, size_t bytes) {
    void *alive[30] = {NULL};
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t i = 0; i < count; i++) {
        void **at = &alive[i % 30];
        assert_int_equal(ebb_region_release(step.region, *at), 0);
        *at = ebb_step_alloc(step, bytes + i * 5 % 7 * bytes / 4, 64, first + i);
        assert_non_null(*at);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

/* A plan for several is as much higher than what is alive as one for each would be; and a thousand
 * slots of others are nothing that matters. */
static void programs_that_pack_badly_are_served_however_many_blocks_they_have(void **state) {
    struct stage *stage = *state;
    for (uint32_t count = 120; count < 5000; count *= 16) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        struct ebb_site_stats before = site_stats(site);
        seed = 8;
        for (unsigned i = 0; i < 120; i++) {
            if (i == 40)
                before = site_stats(site);
            take_stream(site, 1 + 10000 * chance(3), count, 4096);
        }
        assert_true(share_since(site, &before) >= 95);
        assert_true(site_stats(site).plan_height < site_stats(site).plan_max_live / 2 * 3);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* What one of them has room to spare for the others have, too, or each would miss as much before:
 * 6 of 100 blocks are missed where there is only one. */
static void sizes_of_several_programs_that_rise_are_served_as_well_as_of_one(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_site_stats before = site_stats(site);
    seed = 9;
    for (unsigned i = 0; i < 600; i++) {
        if (i == 100)
            before = site_stats(site);
        take_stream(site, 1 + 10000 * chance(3), 100, 4096 + 8 * i);
    }
    assert_true(share_since(site, &before) >= 95);
    assert_true(site_stats(site).reserved_peak < site_stats(site).used_peak / 2 * 3);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Blocks with keys of their own, of which every third one goes. */
static void take_program(ebb_site *site, uint32_t first, size_t bytes) {
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t i = 0; i < 30; i++) {
        void *block = ebb_step_alloc(step, bytes, 64, first + i);
        assert_non_null(block);
        if (i % 3 == 1)
            assert_int_equal(ebb_region_release(step.region, block), 0);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

/* Though each step leaves out what is the other program's, and what is behind its last block. */
static void a_plan_for_several_programs_is_enlarged_for_each(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct ebb_site_stats before = site_stats(site);
    for (unsigned i = 0; i < 30; i++)
        take_program(site, 1, 4000);
    for (unsigned i = 0; i < 160; i++) {
        if (i == 60)
            before = site_stats(site);
        take_program(site, i % 40 < 30 ? 101 : 1, i % 16 ? 4000 : 7000);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.missed, before.missed);
    assert_int_equal(stats.recorded_steps, before.recorded_steps);
    assert_true(before.plans > 2 && before.recorded_steps < 6);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Of layers 0 to 11 those that the mask has; after the eighth a result, which the program may keep
 * for longer than the step. */
static void take_result(ebb_site *site, ebb_region parent, uint32_t mask, bool keep) {
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    struct ebb_survivor kept;
    for (unsigned i = 0; i < 12; i++) {
        if (i == 8)
            kept = survivor_of(ebb_step_alloc(step, 64 * KIB, 64, 100), EBB_PROMOTE_COPY);
        if (mask >> i & 1)
            assert_non_null(ebb_step_alloc(step, 32 * KIB, 64, 1 + i));
    }
    assert_int_equal(ebb_step_end_keeping(step, parent, &kept, keep, NULL, NULL), 0);
    if (keep)
        assert_int_equal(ebb_region_release(parent, kept.block), 0);
}

/* Two steps show that it is not kept any more: it is not born in the parent from then on, be the
 * layers the same, any, or others that the plan is to have as well. */
static void what_is_kept_no_longer_is_not_taken_over_from_the_plan(void **state) {
    struct stage *stage = *state;
    for (unsigned k = 0; k < 3; k++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        seed = 7;
        for (unsigned i = 0; i < 120; i++) {
            uint32_t layers = k == 1 ? chance(256) | chance(256) : k == 2 && i >= 60 ? 0xff0 : 0xff;
            take_result(site, stage->root, layers, i < 60);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_true(stats.tenured_right > 50 && stats.tenured_wrong == LEARN_IN_A_ROW);
        assert_true(stats.recorded_steps < 10 && !stats.suspended);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* No step has a use for it all, whether the others' layers are all of their own, or some. */
static void what_never_comes_together_makes_no_plan_too_high(void **state) {
    static const uint32_t others[] = {0xffff0000, 0x7fff8};
    struct stage *stage = *state;
    for (unsigned k = 0; k < 2; k++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        for (unsigned i = 0; i < 100; i++) {
            take_layers(site, 1, i & 1 ? 0xffff : others[k], 32);
            assert_true(site_stats(site).plan_height <= (16 * 24 + 32) * KIB / 8 * 9 + 4 * KIB);
        }
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TIDY(what_one_lacks_lies_where_the_other_has_it),
        TIDY(programs_that_have_nothing_in_common_share_their_places),
        TIDY(a_program_is_whole_before_another_begins),
        TIDY(a_slot_of_both_has_room_for_either),
        TIDY(there_is_no_draft_of_both_where_nothing_is_won),
        TIDY(what_no_record_has_any_more_is_left_out),
        TIDY(what_is_alive_together_in_one_has_places_of_its_own),
        STAGED(layers_that_come_and_go_are_served),
        STAGED(programs_that_pack_badly_are_served_however_many_blocks_they_have),
        STAGED(sizes_of_several_programs_that_rise_are_served_as_well_as_of_one),
        STAGED(a_plan_for_several_programs_is_enlarged_for_each),
        STAGED(what_is_kept_no_longer_is_not_taken_over_from_the_plan),
        STAGED(programs_that_are_drawn_by_chance_are_served_in_the_same_pages),
        STAGED(what_never_comes_together_makes_no_plan_too_high),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
