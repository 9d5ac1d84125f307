// SPDX-License-Identifier: Apache-2.0
/* scratch.h - bytes that a call needs while it works, and that no counter tells of afterwards. */
#ifndef EBB_REGION_SCRATCH_H
#define EBB_REGION_SCRATCH_H

#include "region/region.h"

struct scratch {
    struct region *region;
    void *bytes;
    struct flow counted, requested, used; /* before it was taken */
    uint64_t counted_bytes, used_bytes;   /* what it is counted for */
    uint64_t large;                       /* 1 if it is a large block */
};

/* Takes `bytes` bytes of the region, also if that is sealed; no other process can write to them.
 * NULL with an error. */
void *scratch_take(struct scratch *scratch, struct region *asking, size_t bytes);

/* Gives them back. What was allocated meanwhile counts as if they had never been there. */
void scratch_give(struct scratch *scratch);

#endif
