// SPDX-License-Identifier: Apache-2.0
/*
 * scratch.c - bytes that come and go within a call (see scratch.h).
 *
 * They are no memory of a region that the program knows: no counter has them, no limit asks what
 * they need, and no pages of a region or its pool are taken for them, or stay. So a call that moves
 * blocks out of a full region, or makes one that just fits, works. Few lie in the caller's frame.
 * More are a region of their own in the pool for what is learnt, which keeps few pages.
 */
#include "region/scratch.h"
#include "region/plan.h"

#define LARGE ((size_t)64 << 10) /* pages of so many go back at once */

void *scratch_take(struct scratch *scratch, size_t bytes) {
    scratch->bytes = bytes;
    return bytes <= SCRATCH_NEAR ? scratch->near
                                 : plan_pool_take("scratch", bytes, &scratch->memory);
}

void scratch_give(struct scratch *scratch) {
    if (scratch->bytes <= SCRATCH_NEAR)
        return;
    ebb_region_close(scratch->memory);
    if (scratch->bytes > LARGE)
        plan_pool_rest(0);
}
