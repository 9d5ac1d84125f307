// SPDX-License-Identifier: Apache-2.0
/*
 * law.h - case 181, asked after each of the others: what regions use, what they waste and what
 * is cached is what is reserved; what was made is what ended and what lives.
 */
#ifndef CONFORMANCE_LAW_H
#define CONFORMANCE_LAW_H

#include "kit/test.h"

static inline void assert_conserved(ebb_pool *pool) {
    struct ebb_pool_stats stats = pool_stats_of(pool);
    ebb_check_pool(pool);
    assert_int_equal(stats.used.current + stats.waste + stats.cached, stats.reserved.current);
    assert_int_equal(stats.owned + stats.cached, stats.reserved.current);
    assert_true(stats.blocks.current <= stats.blocks.total);
    assert_true(stats.requested.current <= stats.used.current || stats.used.current == 0);
}

/* A stage whose teardown asks for the law first. */
static inline int lawful_close(void **state) {
    assert_conserved(((struct stage *)*state)->pool);
    return stage_close(state);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, stage_open, lawful_close)

/* `bytes` at `align` that are not touched: for cases with more memory than a test should fill. */
static inline void *untouched(ebb_region region, size_t bytes, size_t align) {
    void *block = ebb_region_alloc(region, bytes, align);
    assert_non_null(block);
    return block;
}

#endif
