// SPDX-License-Identifier: Apache-2.0
/* lookup.h - the block at an address, or why there is none (see lookup.c). */
#ifndef EBB_REGION_LOOKUP_H
#define EBB_REGION_LOOKUP_H

#include "region/track.h"

/* A live block as it was found. */
struct block_place {
    struct region *owner;    /* of the piece: the region that was asked, its parent or its safe */
    struct ebb_piece *piece; /* its own, or the window or arena around it */
    struct track_slot *slot; /* of one in an arena */
    size_t requested;
};

/* Finds the live block at `address`, or says why there is none. */
int block_find(struct region *region, const void *address, struct block_place *place);

/* The same, of a block that nobody needs as it is: EBB_E_BUSY if it is held. */
int block_find_unheld(struct region *region, const void *block, struct block_place *place);

/* The owner of the block at `addr` in the pages of `place`: `place`, a step below it, or the region
 * whose safe it is. */
struct region *block_owner(struct region *place, uintptr_t addr);

/* The live block at `addr` in a piece of the region, whoever it was born for. */
int lookup_in(struct region *region, struct ebb_piece *piece, uintptr_t addr,
              struct block_place *place);

/* Sets and returns the error that says why `addr` is no live block of the region. */
int lookup_refuse(const struct region *region, uintptr_t addr);

/* In this region, the large block that starts at `addr`, or the window or arena around it; or NULL.
 */
static inline struct ebb_piece *lookup_piece(const struct region *region, uintptr_t addr) {
    if (!range_holds(addr))
        return NULL;
    struct ebb_piece *piece = range_block_at(addr);
    uint64_t key = piece_key(piece);
    if (key == region->window_key || key == region->arena_key)
        return piece_covers(piece, addr) ? piece : NULL;
    return key == region->block_key && piece->addr == addr ? piece : NULL;
}

/* The same, but not for blocks that were born there for steps. */
static inline struct ebb_piece *lookup_own_piece(const struct region *region, uintptr_t addr) {
    struct ebb_piece *piece = lookup_piece(region, addr);
    return piece && region->bearers && track_of_step(region, addr) ? NULL : piece;
}

/* The parent, if a block of the region was born there. */
static inline struct region *lookup_home(const struct region *region, uintptr_t addr) {
    return region->track ? track_home(region->track, addr) : NULL;
}

#endif
