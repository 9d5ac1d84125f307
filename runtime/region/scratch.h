// SPDX-License-Identifier: Apache-2.0
/* scratch.h - bytes that a call needs while it works, and that no counter ever tells of. */
#ifndef EBB_REGION_SCRATCH_H
#define EBB_REGION_SCRATCH_H

#include "region/region.h"

struct scratch {
    struct region *region;
    struct ebb_piece *place;
};

/* Takes `bytes` bytes of the region, also if that is sealed or at its limit; no other process can
 * write to them. NULL with an error. */
void *scratch_take(struct scratch *scratch, struct region *asking, size_t bytes);

/* Gives them back. */
void scratch_give(struct scratch *scratch);

#endif
