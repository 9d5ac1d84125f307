// SPDX-License-Identifier: Apache-2.0
/*
 * scratch.c - a block that comes and goes within a call (see scratch.h).
 *
 * Invariant: while it is there every counter is higher by what it is counted for, so a peak that
 * was passed meanwhile was passed by that much less. Whoever undoes what happened meanwhile, too,
 * gives the scratch back first (region/undo.h).
 */
#include "region/scratch.h"
#include "region/safe.h"
#include "region/small.h"

void *scratch_take(struct scratch *scratch, struct region *asking, size_t bytes) {
    struct region *region = safe_for(asking);
    if (!region)
        return NULL;
    small_fold(region);
    *scratch = (struct scratch){.region = region,
                                .counted = region->counted,
                                .requested = region->requested,
                                .used = region->used};
    uint64_t large = region->large_blocks;
    scratch->bytes = block_place(region, bytes, EBB_GRANULE);
    if (!scratch->bytes)
        return NULL;
    small_fold(region);
    scratch->counted_bytes = region->requested.in - scratch->requested.in;
    scratch->used_bytes = region->used.in - scratch->used.in;
    scratch->large = region->large_blocks - large;
    return scratch->bytes;
}

static void forget(struct flow *flow, const struct flow *before, uint64_t amount) {
    flow->in -= amount;
    flow->out -= amount;
    flow->peak = size_larger(before->peak, flow->peak - amount);
}

void scratch_give(struct scratch *scratch) {
    struct region *region = scratch->region;
    ebb_region_release(region_handle(region), scratch->bytes);
    small_fold(region);
    forget(&region->counted, &scratch->counted, 1);
    forget(&region->requested, &scratch->requested, scratch->counted_bytes);
    forget(&region->used, &scratch->used, scratch->used_bytes);
    region->large_blocks -= scratch->large;
    region->calm = 0;
}
