// SPDX-License-Identifier: Apache-2.0
/* large.h - the large lane: best fit in the runs of a region (see large.c). */
#ifndef EBB_REGION_LARGE_H
#define EBB_REGION_LARGE_H

#include "region/region.h"

/* A block, or NULL with an error; with `alone` a refusal goes on as block_refused(). */
void *large_alloc(struct region *region, size_t bytes, size_t align, bool alone);

/* For a valid request, at the end of a free place: out of the way of later blocks. */
void *large_alloc_behind(struct region *region, size_t bytes, size_t align);

/* large_alloc() with `alone`, for more than EBB_SMALL_MAX_BYTES at the usual alignment in a region
 * without a track; with a short cut for the simple case. */
void *large_alloc_plain(struct region *region, size_t bytes);

/* Releases a live block, _plain with a short cut; 0. */
int large_release(struct region *region, struct ebb_piece *block);
int large_release_plain(struct region *region, struct ebb_piece *block);

/* Changes the bytes of a live block in place; 0 or an error. */
int large_resize(struct region *region, struct ebb_piece *block, size_t bytes);

/* A place of `bytes` (multiple of EBB_UNIT) on no list, or NULL with an error. */
struct ebb_piece *large_place(struct region *region, size_t bytes, size_t align);

/* Frees a place and merges it with its neighbours. */
void large_free(struct region *region, struct ebb_piece *piece);

/* Frees the loose block, if there is one. */
void large_settle(struct region *region);

#endif
