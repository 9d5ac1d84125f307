// SPDX-License-Identifier: Apache-2.0
/* count.h - what a region counts, and the budgets that it counts against (see count.c). */
#ifndef EBB_REGION_COUNT_H
#define EBB_REGION_COUNT_H

#include "region/region.h"

/* Counts `bytes` against all budgets on the way up; EBB_E_REGION_LIMIT or _POOL_LIMIT. */
int count_charge(struct region *region, size_t bytes);
void count_give_back(struct region *region, size_t bytes);

static inline void count_uncharge(struct region *region, size_t bytes) {
    if (region->metered)
        count_give_back(region, bytes);
}

/* The same for the budgets below `until` only. */
void count_uncharge_below(struct region *region, const struct region *until, size_t bytes);

/* A block came, or left: the counters of blocks and bytes, not the budgets. */
static inline void count_block(struct region *region, size_t requested, size_t used) {
    region->calm = 0;
    flow_bring(&region->counted, 1);
    flow_bring(&region->requested, requested);
    flow_bring(&region->used, used);
    int64_t below = region->counted.below | region->requested.below | region->used.below;
    if (__builtin_expect(below < 0, 0)) { /* one of them is */
        flow_note_peak(&region->counted);
        flow_note_peak(&region->requested);
        flow_note_peak(&region->used);
    }
}

static inline void count_block_gone(struct region *region, size_t requested, size_t used) {
    flow_leave(&region->counted, 1);
    flow_leave(&region->requested, requested);
    flow_leave(&region->used, used);
}

/* Reserved bytes that are neither used nor lent. */
size_t count_waste(const struct region *region);

/* Live blocks of the region and all below it, with those born for it in its parent, and without
 * those in safes. Settle first: what others have released counts until then. */
uint64_t count_live_blocks(struct region *region);

#endif
