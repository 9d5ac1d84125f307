// SPDX-License-Identifier: Apache-2.0
/* tidy.h - tests that leave nothing in the pool of plans. */
#ifndef KIT_TIDY_H
#define KIT_TIDY_H

#include "kit/test.h"

#include "region/plan.h"

static int nothing_is_left(void **state) {
    (void)state;
    assert_int_equal(pool_stats_of(plan_pool()).open_regions, 0);
    ebb_check_pool(plan_pool());
    return 0;
}

#define TIDY(test) cmocka_unit_test_teardown(test, nothing_is_left)

#endif
