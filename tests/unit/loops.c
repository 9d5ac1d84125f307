// SPDX-License-Identifier: Apache-2.0
/*
 * loops.c - what a site makes of loops with keys that are never alike: which one is planned, and
 * what becomes of a plan when others are larger, shorter or longer than all that led to it.
 */
#include "kit/passes.h"

#include "step/site.h"

/* A loop, and what it left in the order in which it came; first a block with the key, if any. */
static void take_loops_behind(ebb_site *site, ebb_region parent, uint32_t key, unsigned trips,
                              size_t bytes) {
    ebb_step step = begin(site, parent);
    assert_true(!key || ebb_step_alloc(step, bytes, 64, key));
    for (unsigned k = 0; k < trips; k++) {
        void *hidden = ebb_step_alloc(step, 2 * bytes, 64, 1);
        assert_non_null(ebb_step_alloc(step, bytes, 64, 2));
        assert_int_equal(ebb_region_release(step.region, hidden), 0);
    }
    for (unsigned k = 0; k < trips; k++)
        assert_non_null(ebb_step_alloc(step, 3 * bytes, 64, 3));
    assert_int_equal(ebb_step_end(step), 0);
}

static void take_loops(ebb_site *site, ebb_region parent, unsigned trips, size_t bytes) {
    take_loops_behind(site, parent, 0, trips, bytes);
}

/* From `least` trips on, up to twice as many. */
static void take_steps(ebb_site *site, ebb_region parent, unsigned steps, unsigned least,
                       size_t bytes) {
    uint32_t chance = 7;
    for (unsigned i = 0; i < steps; i++) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        take_loops(site, parent, least + (chance >> 16) % (least + 1), bytes);
    }
}

/* The longest loops that there will be; none is like another. */
static ebb_site *site_of_long_loops(struct stage *stage, unsigned trips, size_t bytes) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < LEARN_FIRST; i++)
        take_loops(site, stage->root, trips - i, bytes);
    assert_int_equal(site_stats(site).plans, 1);
    return site;
}

/* The plan has a slot for each block, but with too little room. */
static void blocks_are_larger_than_those_of_the_longest(void **state) {
    static const size_t larger[] = {4200, 5000, 6000};
    struct stage *stage = *state;
    for (unsigned i = 0; i < sizeof larger / sizeof *larger; i++) {
        ebb_site *site = site_of_long_loops(stage, 20, 4000);
        take_steps(site, stage->root, 100, 6, larger[i]);
        struct ebb_site_stats stats = site_stats(site);
        assert_true(stats.hits * 100 >= stats.allocations * 75);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* Its plan is followed until nothing like it was there for a while. */
static void the_longest_never_comes_again(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_long_loops(stage, 100, 4000);
    size_t height = site_stats(site).plan_height;
    take_steps(site, stage->root, 100, 20, 4000);
    struct ebb_site_stats stats = site_stats(site);
    assert_true(!stats.suspended && stats.plan_height < height / 2);
    assert_true(stats.hits * 100 >= stats.allocations * 85);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Nothing is recorded for that, and as much is served as before. */
static void a_plan_of_loops_that_were_longer_is_shortened(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_long_loops(stage, 60, 4000);
    struct ebb_site_stats before = site_stats(site);
    take_steps(site, stage->root, 100, 20, 4000);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.recorded_steps, before.recorded_steps);
    assert_true(stats.plans > before.plans && stats.plan_height < before.plan_height / 5 * 4);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Two records make no plan, as a longer one is known. They are none of those that come later. */
static void a_note_is_compared_with_the_next_record_only(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_long_loops(stage, 20, 4000);
    const struct course *course = &site->courses[0];
    for (unsigned i = 0; i < 40; i++) {
        take_loops(site, stage->root, 5 + i % 7, i & 2 ? 30000 : 4000);
        assert_true(!course->noted || course->learning.noted);
    }
    assert_true(site_stats(site).recorded_steps > LEARN_FIRST);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* So many blocks that live to the end, each with its own key; one of them is large. */
static void take_keyed(ebb_site *site, bool small, uint32_t count, uint32_t large) {
    ebb_step step = ebb_step_begin(site, 0);
    assert_true(!small || ebb_step_alloc(step, 100, 16, 9));
    for (uint32_t key = 1; key <= count; key++)
        assert_non_null(ebb_step_alloc(step, key == large ? 2 * MIB : 64 * KIB, 64, key));
    assert_int_equal(ebb_step_end(step), 0);
}

/* Room for what never comes together would be twice as high as any step. Where a small block comes
 * there is a third record. */
static void the_longest_has_no_room_for_all_sizes_of_shorter_ones(void **state) {
    struct stage *stage = *state;
    for (unsigned small = 0; small < 2; small++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        take_keyed(site, small, 4, 1);
        take_keyed(site, small, 3, 2);
        if (small)
            take_keyed(site, small, 2, 1);
        struct ebb_site_stats stats = site_stats(site);
        assert_int_equal(stats.plans, 1);
        assert_true(stats.plan_height <= (2 * MIB + 256 * KIB) / 4 * 5 + 256 * KIB);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* Forth, and back over what that left; blocks that are missed. */
static unsigned take_both_ways(ebb_site *site, unsigned trips) {
    struct ebb_site_stats before = site_stats(site);
    ebb_step step = ebb_step_begin(site, 0);
    void *kept[32][2];
    for (unsigned k = 0; k < trips; k++) {
        void *hidden = ebb_step_alloc(step, 32 * KIB, 64, 1);
        for (unsigned i = 0; i < 2; i++) {
            kept[k][i] = ebb_step_alloc(step, (i ? 24 : 8) * KIB, 64, 2 + i);
            assert_true(hidden && kept[k][i]);
            pattern_fill(kept[k][i], 8 * KIB, k);
        }
        assert_int_equal(ebb_region_release(step.region, hidden), 0);
    }
    for (unsigned k = trips; k--;) {
        void *gradient = ebb_step_alloc(step, 32 * KIB, 64, 4);
        assert_non_null(gradient);
        memset(gradient, 0, 32 * KIB);
        for (unsigned i = 0; i < 2; i++) {
            assert_true(pattern_holds(kept[k][i], 8 * KIB, k));
            assert_int_equal(ebb_region_release(step.region, kept[k][i]), 0);
        }
        assert_int_equal(ebb_region_release(step.region, gradient), 0);
    }
    assert_int_equal(ebb_step_end(step), 0);
    return (unsigned)(site_stats(site).missed - before.missed);
}

/* So many blocks of another program. */
static void take_others(ebb_site *site, uint32_t count) {
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t i = 0; i < count; i++)
        assert_non_null(ebb_step_alloc(step, 64 * KIB, 64, 20 + i));
    assert_int_equal(ebb_step_end(step), 0);
}

/* Others were recorded, by chance, and loops served, until the course was suspended: loops are
 * never alike, and what follows shows that they can be planned all the same. */
static void loops_are_planned_again_after_a_suspension(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    const struct learning *learning = &site->courses[0].learning;
    for (unsigned i = 0; i < 100 && !learning->suspended; i++) {
        bool records = site->course_count && learn_next(learning) == LEARN_RECORD;
        if (records || !i)
            take_others(site, 3 + i % 3);
        else
            (void)take_both_ways(site, 32);
    }
    assert_true(learning->suspended);
    for (unsigned i = 0; i < 100; i++)
        (void)take_both_ways(site, 16 + i * 7 % 16);
    struct ebb_site_stats before = site_stats(site);
    for (unsigned i = 0; i < 100; i++)
        (void)take_both_ways(site, 16 + i * 7 % 16);
    struct ebb_site_stats stats = site_stats(site);
    assert_false(stats.suspended);
    assert_true((stats.hits - before.hits) * 100 >=
                (stats.allocations - before.allocations) * 95);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The step after one that was longer is recorded; others call for no record. */
static void a_longer_loop_is_looked_for_at_once(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < LEARN_FIRST; i++)
        take_both_ways(site, 16);
    struct ebb_site_stats before = site_stats(site);
    for (unsigned i = 0; i < 100; i++)
        take_both_ways(site, 8 + i % 8);
    assert_int_equal(site_stats(site).recorded_steps, before.recorded_steps);
    take_both_ways(site, 20);
    take_both_ways(site, 8); /* was no longer one */
    assert_int_equal(site_stats(site).recorded_steps, before.recorded_steps + 1);
    assert_int_equal(site_stats(site).plans, before.plans);
    take_both_ways(site, 20);
    take_both_ways(site, 24);
    assert_int_equal(site_stats(site).recorded_steps, before.recorded_steps + 2);
    assert_int_equal(site_stats(site).plans, before.plans + 1);
    assert_int_equal(take_both_ways(site, 24), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Else every second step would be recorded, of which nothing is served, and planned. */
static void loops_that_rise_are_not_planned_each_time(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 200; i++)
        take_loops(site, stage->root, 20 + i, 4000);
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.plans <= 30 && stats.recorded_steps <= 40);
    assert_true(stats.hits * 100 >= stats.allocations * 70);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Of more blocks a plan is made, and of fewer none, though each has one that never comes again. */
static void a_longer_loop_is_found_behind_what_comes_once(void **state) {
    static const unsigned trips[] = {20, 19, 30, 10, 30, 30};
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (uint32_t i = 0; i < sizeof trips / sizeof *trips; i++) {
        assert_int_equal(site_stats(site).plans, i >= 2);
        take_loops_behind(site, stage->root, 100 + i, trips[i], 4000);
    }
    assert_int_equal(site_stats(site).plans, 2);
    struct ebb_site_stats before = site_stats(site);
    take_loops_behind(site, stage->root, 200, 30, 4000);
    assert_int_equal(site_stats(site).missed, before.missed); /* that one has another's place */
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* It was shorter, but larger: the plan is enlarged. */
static void a_look_gives_the_plan_room(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_long_loops(stage, 20, 4000);
    take_loops(site, stage->root, 30, 4000);
    take_loops(site, stage->root, 10, 5000);
    assert_int_equal(site_stats(site).plans, 2);
    struct ebb_site_stats before = site_stats(site);
    take_loops(site, stage->root, 10, 5000);
    take_loops(site, stage->root, 20, 4000);
    assert_int_equal(site_stats(site).missed, before.missed);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Then it stays as it is. */
static void a_look_gives_no_plan_room_that_makes_it_too_high(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of_long_loops(stage, 20, 40000);
    take_loops(site, stage->root, 21, 40000);
    take_loops(site, stage->root, 10, 80000);
    struct ebb_site_stats before = site_stats(site);
    take_loops(site, stage->root, 20, 40000);
    assert_int_equal(site_stats(site).missed, before.missed);
    assert_int_equal(site_stats(site).plans, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* For each trip more there is no room for what is kept; the others have slots of trips before. */
static void the_way_back_of_a_longer_loop_is_served(void **state) {
    enum { TRIPS = 20, MORE = 3 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < LEARN_FIRST; i++)
        take_both_ways(site, TRIPS);
    assert_int_equal(take_both_ways(site, TRIPS), 0);
    for (unsigned more = 1; more <= MORE; more++) {
        assert_int_equal(take_both_ways(site, TRIPS + more), 2 * more);
        assert_int_equal(take_both_ways(site, TRIPS), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(blocks_are_larger_than_those_of_the_longest),
        STAGED(the_longest_never_comes_again),
        STAGED(a_plan_of_loops_that_were_longer_is_shortened),
        STAGED(the_longest_has_no_room_for_all_sizes_of_shorter_ones),
        STAGED(a_note_is_compared_with_the_next_record_only),
        STAGED(loops_are_planned_again_after_a_suspension),
        STAGED(a_longer_loop_is_looked_for_at_once),
        STAGED(loops_that_rise_are_not_planned_each_time),
        STAGED(a_longer_loop_is_found_behind_what_comes_once),
        STAGED(a_look_gives_the_plan_room),
        STAGED(a_look_gives_no_plan_room_that_makes_it_too_high),
        STAGED(the_way_back_of_a_longer_loop_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
