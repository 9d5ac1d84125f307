// SPDX-License-Identifier: Apache-2.0
/*
 * step_marks.c - steps that try something, and rewind: no plan has room for what comes behind a
 * mark, and what comes in front of the first one is planned as in any step.
 */
#include "kit/test.h"

enum { STEPS = 20, TRIES = 10, FIRST = 4, LIVE = 2 << 20, CRUMBS = 2000, MANY = 600 };

static void try_in_vain(ebb_region region) {
    ebb_mark mark = ebb_region_mark(region);
    assert_true(mark.serial != 0);
    assert_non_null(ebb_region_alloc(region, 1 * MIB, 64)); /* gigabytes in all, if filled */
    assert_int_equal(ebb_region_rewind(region, mark), 0);
}

static void try_crumbs_in_vain(ebb_region region) {
    ebb_mark mark = ebb_region_mark(region);
    for (unsigned i = 0; i < CRUMBS; i++)
        block_of(region, 16, 16);
    assert_int_equal(ebb_region_rewind(region, mark), 0);
}

/* Blocks of which one ends and another survives, after attempts. */
static void take_step(ebb_site *site, ebb_region parent, unsigned count) {
    void *blocks[FIRST] = {NULL};
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    for (unsigned i = 0; i < count; i++)
        blocks[i] = block_of(step.region, 20000 + 1000 * i, 64);
    for (unsigned i = 0; i < TRIES; i++)
        try_in_vain(step.region);
    if (!count) {
        assert_int_equal(ebb_step_end(step), 0);
        return;
    }
    struct ebb_survivor kept = survivor_of(blocks[1], 0);
    assert_int_equal(ebb_region_release(step.region, blocks[0]), 0);
    assert_int_equal(ebb_step_end_keeping(step, parent, &kept, 1, NULL, NULL), 0);
    assert_true(pattern_holds(kept.block, 21000, 21000));
    assert_int_equal(ebb_region_release(parent, kept.block), 0);
}

static struct ebb_site_stats stats_of_steps(const struct stage *stage, unsigned steps,
                                            unsigned count) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < steps; i++)
        take_step(site, stage->root, count);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(ebb_site_destroy(site), 0);
    return stats;
}

static void what_a_rewind_ends_is_in_no_plan(void **state) {
    struct stage *stage = *state;
    struct ebb_site_stats stats = stats_of_steps(stage, STEPS, 0);
    assert_int_equal(stats.plans, 0);
    assert_true(stats.reserved_peak <= LIVE);
    assert_true(pool_stats_of(stage->pool).reserved.peak <= LIVE);
}

static void what_comes_in_front_of_a_mark_is_served(void **state) {
    struct stage *stage = *state;
    struct ebb_site_stats stats = stats_of_steps(stage, STEPS, FIRST);
    assert_int_equal(stats.plans, 1);
    assert_int_equal(stats.plan_slots, FIRST);
    assert_in_range(stats.plan_height, 3 * 20000, FIRST * 23040);
    assert_int_equal(stats.planned_steps, STEPS - stats.recorded_steps);
    assert_in_range(stats.recorded_steps, 2, 3);
    assert_int_equal(stats.hits, FIRST * stats.planned_steps);
    assert_int_equal(stats.tenured_right, stats.planned_steps);
    assert_int_equal(stats.missed, 0);
    assert_true(stats.reserved_peak <= LIVE);
}

/* Each time after a longer pause: there is nothing that a plan could be made of. */
static void who_begins_with_a_mark_is_recorded_seldom(void **state) {
    struct stage *stage = *state;
    struct ebb_site_stats stats = stats_of_steps(stage, MANY, 0);
    assert_int_equal(stats.plans, 0);
    assert_in_range(stats.recorded_steps, 4, 14);
}

/* The plan holds nothing for them, however many they are. */
static void what_comes_behind_a_mark_makes_no_plan_too_large(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 0);
        for (unsigned k = 0; k < FIRST; k++)
            block_of(step.region, 100 + 16 * k, 16);
        for (unsigned k = 0; k < TRIES; k++)
            try_crumbs_in_vain(step.region);
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.plans, 1);
    assert_int_equal(stats.plan_slots, FIRST);
    assert_int_equal(stats.hits, FIRST * (STEPS - stats.recorded_steps));
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(what_a_rewind_ends_is_in_no_plan),
        STAGED(what_comes_in_front_of_a_mark_is_served),
        STAGED(who_begins_with_a_mark_is_recorded_seldom),
        STAGED(what_comes_behind_a_mark_makes_no_plan_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
