// SPDX-License-Identifier: Apache-2.0
/*
 * block.h - blocks of a region, from whichever lane or plan (see block.c).
 */
#ifndef EBB_REGION_BLOCK_H
#define EBB_REGION_BLOCK_H

#include "region/region.h"

/* A block of the region, with the errors of ebb_region_alloc(); notes `site` if the region does. */
void *block_allocate(struct region *region, size_t bytes, size_t align, const void *site);

/* The same with a short cut, for objects and their arrays. */
void *block_for_object(struct region *region, size_t bytes, size_t align, const void *site);

/* block_allocate() with a key for the place in the program, for regions that follow a plan. A block
 * that survived earlier steps may be born in the parent. */
void *block_allocate_keyed(struct region *region, size_t bytes, size_t align, uint32_t key,
                           const void *site);

/* block_allocate() where no other process can write. */
void *block_allocate_private(struct region *region, size_t bytes, size_t align, const void *site);

/* The same even in a sealed region: for bookkeeping, by a caller with nothing half done. The sizes
 * are valid. */
void *block_place_private(struct region *region, size_t bytes, size_t align);

/* The same in the region's own pages, even shared ones. */
void *block_place(struct region *region, size_t bytes, size_t align);

/* For a request of the program that no lane could serve: tries again if other threads have released
 * something; else calls the program's handler (exhausted.h) and returns NULL. */
void *block_refused(struct region *region, size_t bytes, size_t align);

/* ---- release.c ---- */

/* Opens or shuts the short cuts of releases, as the region's state asks. */
void block_set_quick(struct region *region);

#endif
