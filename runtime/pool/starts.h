// SPDX-License-Identifier: Apache-2.0
/*
 * starts.h - start maps: where the blocks of a window of the small lane start.
 *
 * One entry of two bytes for each granule of 16 bytes: requested bytes + 1 where a block starts,
 * 0 elsewhere, with STARTS_RELEASED set once the block is released. A map lies apart from its
 * window, so that a write past a block cannot reach it, and next to the other maps of its
 * region, so that few pages hold them all wherever the windows lie.
 *
 * Maps come in units, one for each 4 KiB of window; a name is the number of the first unit. A
 * store cuts them from batches that it keeps across uses; its owner is one thread at a time.
 */
#ifndef EBB_POOL_STARTS_H
#define EBB_POOL_STARTS_H

#include "pool/range.h"

#define STARTS_RELEASED ((uint16_t)0x8000)
#define STARTS_WINDOW ((size_t)4096) /* bytes of window that one unit describes */
#define STARTS_CLASSES 6             /* windows of 4, 8, 16, 32, 64 and 128 KiB */

struct starts_store {
    uint32_t free[STARTS_CLASSES]; /* maps given back, linked through their first entries */
    uint32_t first, last;          /* batches, linked through their first unit */
    uint32_t kept;                 /* last of those that starts_forget_all() leaves */
    uint32_t current;              /* batch that is cut next */
    uint32_t cut;                  /* units taken from it */
    uint32_t batches;
};

/* A map for a window, contents undefined; 0 if there is no memory for it. */
uint32_t starts_take(struct starts_store *store, size_t window_bytes);

void starts_give(struct starts_store *store, uint32_t map, size_t window_bytes);

/* Forgets all maps; some batches stay for next time, the rest goes to other stores. */
void starts_forget_all(struct starts_store *store);

/* Forgets all maps and gives all batches to other stores. */
void starts_give_up(struct starts_store *store);

/* Gives the memory of batches that no store has back to the system, until the clock passes
 * `deadline_ns` (0: none), and at most *most bytes, which are subtracted from it. True: no such
 * batch is left. Any thread. */
bool starts_trim(uint64_t deadline_ns, size_t *most);

/* Takes the lock of batches without an owner before a fork, and gives it back after. */
void starts_fork(bool before);

static inline uint16_t *starts_entries(uint32_t map) {
    return (uint16_t *)(void *)(range.starts + (size_t)map * RANGE_STARTS_UNIT);
}

#endif
