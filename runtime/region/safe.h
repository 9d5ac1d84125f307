// SPDX-License-Identifier: Apache-2.0
/*
 * safe.h - where a region in shared memory keeps what must not be written by others (see safe.c).
 *
 *     pages in the slot     | elements | block | elements |          any process writes here
 *                              ^
 *     safe, private         | head, storage | members | ...          this one only
 */
#ifndef EBB_REGION_SAFE_H
#define EBB_REGION_SAFE_H

#include "region/region.h"

/* Where private things of a region go: the region itself, or its safe, which is opened if it has
 * none yet. NULL: an error of ebb_region_open(). */
struct region *safe_open(struct region *region);

static inline struct region *safe_for(struct region *region) {
    return __builtin_expect(region->shared, 0) ? safe_open(region) : region;
}

/* True if other processes can write to the address: it lies in a slot of a shared pool. */
bool safe_is_needed(const void *address);

#endif
