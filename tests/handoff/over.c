// SPDX-License-Identifier: Apache-2.0
/*
 * over.c - what is not handed over, though no other region shares anything with it: regions of
 * steps, whatever the site does with them, and those that close. They stay as they were. See
 * threads.c for what is.
 */
#include "kit/test.h"

#include <ebb/handoff.h>

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

enum { STEPS = 12 };

static void assert_stays(ebb_region region) {
    ebb_region none = ebb_region_hand_over(region);
    assert_false(ebb_region_is_open(none));
    assert_int_equal(ebb_last_error(), EBB_E_BUSY);
    assert_true(ebb_region_is_open(region));
}

static ebb_step begin(ebb_site *site, ebb_region parent) {
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

/* It is asked for at the begin, in the middle, and at the end of each step. */
static void take_step(ebb_site *site, ebb_region parent) {
    ebb_step step = begin(site, parent);
    assert_stays(step.region);
    void *first = block_of(step.region, 100000, 64);
    assert_stays(step.region);
    void *second = block_of(step.region, 300000, 64);
    assert_stays(step.region);
    assert_true(pattern_holds(first, 100000, 100000) && pattern_holds(second, 300000, 300000));
    assert_int_equal(ebb_step_end(step), 0);
}

static void regions_of_steps_stay(void **state) {
    struct stage *stage = *state;
    for (int is_below = 0; is_below < 2; is_below++) {
        ebb_region parent = is_below ? stage->root : (ebb_region){NULL, 0};
        ebb_site *learns = SITE(.pool = stage->pool);
        ebb_site *never = SITE(.pool = stage->pool, .unplanned = true);
        for (unsigned i = 0; i < STEPS; i++) {
            take_step(never, parent);
            take_step(learns, parent);
        }
        assert_int_equal(site_stats(never).planned_steps, 0);
        assert_true(site_stats(learns).recorded_steps > 0);
        assert_true(site_stats(learns).planned_steps > 0);
        assert_int_equal(ebb_site_destroy(never), 0);
        assert_int_equal(ebb_site_destroy(learns), 0);
    }
}

/* The step is over; its region is the site's until its place is needed. */
static void regions_in_a_ring_stay(void **state) {
    struct stage *stage = *state;
    for (int unplanned = 0; unplanned < 2; unplanned++) {
        ebb_site *site = SITE(.pool = stage->pool, .ring = 2, .unplanned = unplanned);
        for (unsigned i = 0; i < STEPS; i++) {
            ebb_step step = begin(site, (ebb_region){NULL, 0});
            void *block = block_of(step.region, 100000, 64);
            assert_int_equal(ebb_step_end(step), 0);
            assert_stays(step.region);
            assert_true(pattern_holds(block, 100000, 100000));
        }
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* ---- what closes ---- */

static struct {
    ebb_region region;
    int calls;
} asked;

static int ask(void *data) {
    (void)data;
    asked.calls++;
    assert_stays(asked.region);
    return 0;
}

static void a_region_that_closes_stays(void **state) {
    struct stage *stage = *state;
    struct ebb_cleanup cleanup = {.run = ask};
    for (int is_below = 0; is_below < 2; is_below++) {
        ebb_region root = OPEN(.pool = stage->pool), child = OPEN(.parent = root);
        asked.calls = 0;
        asked.region = is_below ? child : root;
        assert_int_equal(ebb_cleanup_add(child, &cleanup), 0);
        assert_int_equal(ebb_region_close(root), 0);
        assert_int_equal(asked.calls, 1);
    }
}

static void a_step_that_ends_stays(void **state) {
    struct stage *stage = *state;
    struct ebb_cleanup cleanup = {.run = ask};
    ebb_site *site = SITE(.pool = stage->pool);
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = begin(site, stage->root);
        block_of(step.region, 3000, 64);
        asked.calls = 0;
        asked.region = step.region;
        assert_int_equal(ebb_cleanup_add(step.region, &cleanup), 0);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(asked.calls, 1);
        assert_false(ebb_region_is_open(step.region));
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(regions_of_steps_stay),
        STAGED(regions_in_a_ring_stay),
        STAGED(a_region_that_closes_stays),
        STAGED(a_step_that_ends_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
