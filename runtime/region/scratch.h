// SPDX-License-Identifier: Apache-2.0
/* scratch.h - bytes that a call needs while it works, and that no counter ever tells of. */
#ifndef EBB_REGION_SCRATCH_H
#define EBB_REGION_SCRATCH_H

#include "region/region.h"

#define SCRATCH_NEAR 1024 /* so many bytes lie in the caller's frame */

/* Not set before scratch_take(): its bytes are many for one that may need none. */
struct scratch {
    size_t bytes;
    ebb_region memory; /* of more than SCRATCH_NEAR */
    _Alignas(EBB_GRANULE) char near[SCRATCH_NEAR];
};

/* Takes `bytes` bytes, also where a region is sealed or a limit reached; no other process can write
 * to them. They may lie in *scratch, which stays where it is. NULL with an error. Any thread. */
void *scratch_take(struct scratch *scratch, size_t bytes);

/* Gives them back. */
void scratch_give(struct scratch *scratch);

#endif
