// SPDX-License-Identifier: Apache-2.0
/*
 * site_costs.c - what a site says of the costs of its steps: the peaks are those of the step that
 * needed most, and whoever makes a plan is asked for the time.
 */
#include "kit/test.h"

static void take_step(ebb_site *site, size_t bytes) {
    ebb_step step = ebb_step_begin(site, 0);
    block_of(step.region, bytes, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

static void peaks_are_those_of_the_step_that_needed_most(void **state) {
    enum { STEPS = 6, LARGEST = 3 };
    struct stage *stage = *state;
    for (unsigned unplanned = 0; unplanned < 2; unplanned++) {
        ebb_site *site =
            ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .unplanned = unplanned));
        for (unsigned i = 0; i < STEPS; i++)
            take_step(site, i == LARGEST ? 10 * MIB : 1 * MIB);
        struct ebb_site_stats stats = site_stats(site);
        assert_in_range(stats.used_peak, 10 * MIB, 11 * MIB);
        assert_in_range(stats.reserved_peak, stats.used_peak, 12 * MIB);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

static void making_a_plan_takes_time(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    uint64_t spent = 0;
    for (unsigned i = 0; i < 2; i++) { /* it is noted, and planned */
        assert_int_equal(site_stats(site).planning_ns, spent);
        take_step(site, 1 * MIB);
        assert_true(site_stats(site).planning_ns > spent);
        spent = site_stats(site).planning_ns;
    }
    assert_int_equal(site_stats(site).plans, 1);
    take_step(site, 1 * MIB); /* follows it */
    assert_int_equal(site_stats(site).planning_ns, spent);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(peaks_are_those_of_the_step_that_needed_most),
        STAGED(making_a_plan_takes_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
