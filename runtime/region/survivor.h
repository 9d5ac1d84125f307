// SPDX-License-Identifier: Apache-2.0
/*
 * survivor.h - what a promotion knows of each block that it was asked for (see survivor.c).
 *
 *     scratch    while the list is checked    what says that the block is live
 *                from acquiring on            what was acquired for it
 *     mode       low bits                     as the caller asked
 *                SURVIVOR_...                 what `scratch` was at first, and the way it goes
 */
#ifndef EBB_REGION_SURVIVOR_H
#define EBB_REGION_SURVIVOR_H

#include "region/hold.h"

enum {
    SURVIVOR_MODE = 15,
    SURVIVOR_STAYS = 0, /* it is the target's, or born there */
    SURVIVOR_COPIED = 1 << 4,
    SURVIVOR_RELINKED = 2 << 4,
    SURVIVOR_WAY = 3 << 4,
    SURVIVOR_LARGE = 0,      /* found is its piece */
    SURVIVOR_SMALL = 1 << 6, /* its entry in the start map */
    SURVIVOR_SLOT = 2 << 6,  /* its slot in an arena */
    SURVIVOR_BORN = 3 << 6,  /* its entry in the source's record: born in the source's parent */
    SURVIVOR_FOUND = 3 << 6,
    SURVIVOR_NEEDED = 1 << 8 /* objects of the source need the block: it is copied */
};

/* What the caller says of it can be: 0, or the error. */
int survivor_check(const struct ebb_survivor *survivor, int mode_most);

/* The one look-up, of a survivor whose mode is right: what is found, and whether it stays or is
 * copied. Fails without effect. */
int survivor_find(struct region *source, struct region *target, struct ebb_survivor *survivor);

/* Whether the block is listed from here on; returns whether it was. While a small block is listed
 * nothing may look for room in its window. */
bool survivor_list(const struct ebb_survivor *survivor, bool listed);

/* Bytes asked for the block, which is not listed. */
size_t survivor_requested(struct region *source, const struct ebb_survivor *survivor);

/* The alignment that a copy has. */
static inline size_t survivor_align(const struct ebb_survivor *survivor) {
    uintptr_t addr = (uintptr_t)survivor->block;
    size_t natural = size_smaller((size_t)(addr & (~addr + 1)), EBB_SMALL_MAX_ALIGN);
    return survivor->align ? survivor->align : natural;
}

/* Where it lies it has the alignment that its copy would be given. */
static inline bool survivor_is_aligned(const struct ebb_survivor *survivor) {
    return !survivor->align || ((uintptr_t)survivor->block & (survivor->align - 1)) == 0;
}

/* Objects of the region need its live block, which begins with none of them: it is copied from here
 * on. Small blocks and slots are anyway, so of these only what was born in the parent is noted. */
void block_claim(struct region *region, const void *block);

/* True if that was said of a block of the region, and the block has not ended since. */
bool block_is_claimed(const struct region *region, const void *block);

/* True if a block that the caller named is an object of the source, has a storage of its, or is
 * claimed by one. */
static inline bool survivor_is_needed(const struct region *source,
                                      const struct ebb_survivor *survivor) {
    return source->hooks && (block_is_claimed(source, survivor->block) ||
                             source->hooks->needs(source, survivor->block));
}

/* True if it may stay where it was born for the source: bytes that others need are the source's to
 * the end. */
static inline bool survivor_may_stay(const struct region *source,
                                     const struct ebb_survivor *survivor) {
    return survivor_is_aligned(survivor) && !(survivor->mode & SURVIVOR_NEEDED) &&
           (!source->holds || !hold_is_on(survivor->block));
}

/* It lies in a safe, not in a region's own pages. */
static inline bool survivor_is_apart(const struct ebb_survivor *survivor) {
    uintptr_t addr = (uintptr_t)survivor->block;
    struct ebb_piece *run = range_holds(addr) ? range_run_at(addr) : NULL;
    return run && region_of_piece(run)->safe_of;
}

static inline bool survivor_is(const struct ebb_survivor *survivor, int found) {
    return (survivor->mode & SURVIVOR_FOUND) == found;
}

#endif
