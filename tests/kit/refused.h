// SPDX-License-Identifier: Apache-2.0
/* refused.h - steps that ask for what the pool's limit refuses. */
#ifndef KIT_REFUSED_H
#define KIT_REFUSED_H

#include "kit/test.h"

enum { SIZE = 64 << 10, LEARNING = 6, STEPS = 14 };

static inline void refused_bytes(ebb_region region, size_t bytes) {
    assert_no_block(ebb_region_alloc(region, bytes, 64), EBB_E_POOL_LIMIT);
}

static inline void refused(ebb_region region, size_t blocks) {
    refused_bytes(region, blocks * SIZE);
}

/* A block whose pages are the pool's again when it goes. */
static inline void *relinked_block(ebb_region region, size_t blocks) {
    ebb_region child = OPEN(.parent = region);
    void *block = block_of(child, blocks * SIZE, 64);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(child, region, &survivor, 1, NULL, NULL), 0);
    return survivor.block;
}

/* From now on the pool has no page beside those that are in use. */
static inline void fill_up(ebb_pool *pool) {
    (void)ebb_pool_trim(pool, 0);
    size_t pages = (size_t)pool_stats_of(pool).reserved.current;
    assert_int_equal(ebb_pool_set_reserved_limit(pool, pages), 0);
}

#endif
