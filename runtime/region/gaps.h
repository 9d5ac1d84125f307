// SPDX-License-Identifier: Apache-2.0
/* gaps.h - walks through the pages of a region that nothing lies in. */
#ifndef EBB_REGION_GAPS_H
#define EBB_REGION_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ebb_piece;
struct region;

/* Where a walk is; valid as long as the region does not change. Zero: before the first gap. */
struct region_gap {
    uintptr_t from, to; /* whole pages, which the walker may shorten; the same: it is at no gap */
    const struct ebb_piece *run;
    const struct ebb_piece *piece; /* of the run, to be seen next; NULL: the run is the arena */
    uint32_t place;                /* of the arena's plan, to be seen next */
    uintptr_t passed;              /* where the last live slot of the arena ended */
};

/* On to the next gap, or past a few dozen pieces between which there is none. False: the walk is
 * over. Each gap comes once. What a step along a table has not noted is noted (due.c). */
bool region_next_gap(struct region *region, struct region_gap *gap);

/* Where the arena of the region's plan lies, or what a takeover has left of it; false: nowhere. */
bool region_find_arena(const struct region *region, uintptr_t *addr, size_t *bytes);

#endif
