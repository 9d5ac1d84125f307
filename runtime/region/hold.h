// SPDX-License-Identifier: Apache-2.0
/*
 * hold.h - bytes of a block that somebody outside needs, whatever becomes of its region.
 *
 *     region open     | block, held bytes inside |        LIVE     the block keeps them
 *     region ended    | run: pages around them |          KEPT     the pool keeps the run
 *                                                         DROPPED  nobody needs them any more
 *
 * Who needs the bytes has a hold and drops it once, from any thread. While the block lives that
 * is a note, which the region's thread finds when it sweeps. When the region ends first, depart.c
 * cuts the pages out and gives the run to the pool, or to the heir if survivors share the pages;
 * a run of the pool goes with the last hold on it, in the thread that drops it.
 *
 * The struct lies outside of ebb's memory, since it outlives the region. Invariant: LIVE becomes
 * DROPPED without a lock, or KEPT under the pool's lock; nothing becomes LIVE again.
 */
#ifndef EBB_REGION_HOLD_H
#define EBB_REGION_HOLD_H

#include "region/remote.h"

enum hold_state { HOLD_LIVE, HOLD_KEPT, HOLD_DROPPED };

struct hold {
    struct ebb_piece bytes;  /* addr, bytes; linked in the region's holds. First */
    struct ebb_piece *block; /* around them: a large block or an arena; NULL once it has ended */
    void *start;             /* of the block */
    struct ebb_piece *run;   /* that is kept for them then */
    struct ebb_pool *pool;   /* NULL: a hold of nothing */
    uint64_t serial;         /* of the region's newest mark when it began */
    atomic_uint state;       /* enum hold_state */
    void (*end)(struct hold *hold); /* it was dropped: called once, as the last that is done */
};

static inline struct hold *hold_of(struct ebb_piece *bytes) {
    return (struct hold *)(void *)bytes;
}

/* Begins: [addr, addr + bytes) of the region's live block at `start`, which can be held. Sweeps now
 * and then. */
void hold_begin(struct hold *hold, struct region *region, void *start, uintptr_t addr,
                size_t bytes);

/* True if bytes of the live block at `start` can be held: it is no small one. */
bool hold_is_possible(const void *start);

/* True if bytes of the live block at `start` are held, or nobody has looked whether they still are.
 */
bool hold_is_on(const void *start);

/* The hold's block is held on by others (or by none) when this hold ends. */
void hold_pin(struct hold *hold, bool pinned);

/* Begins with no bytes: hold_drop() ends it at once. */
void hold_begin_empty(struct hold *hold);

/* Not needed any more. Any thread; a second call does nothing as long as the struct is there. */
void hold_drop(struct hold *hold);

/* Ends the hold if it was dropped. The thread of the region. */
void hold_settle(struct region *region, struct hold *hold);

/* The same for all holds of the region. */
void hold_sweep(struct region *region);

/* The same now and then, where holds come from regions below: nobody may begin one here, ever. For
 * who may be in the middle of a call that undoes what it did. */
static inline void hold_look(struct region *region) {
    if (region->holds && region->hold_count >= region->hold_limit)
        remote_sweep(region);
}

/* The region ends: the parent gets the holds on those of its blocks that lie there. What else they
 * are for ends: nobody but the holds needs them. */
void hold_leave_to(struct region *region, struct region *parent);

/* EBB_E_BUSY if a hold that was not dropped is newer than the mark. */
int hold_check_rewind(struct region *region, uint64_t serial);

/* The same as hold_check_block(), of a block that may be held. */
int hold_check_possible(struct region *region, const struct ebb_piece *piece, uintptr_t addr);

/* EBB_E_BUSY if the region's live block at `addr` is held; its piece is that of block_find(). 1: it
 * was, or others were, until now, and may have ended by that: to be looked up anew. */
static inline int hold_check_block(struct region *region, const struct ebb_piece *piece,
                                   uintptr_t addr) {
    bool may_be = piece->state == PIECE_BLOCK ? piece->pins != 0 : piece->state == PIECE_ARENA;
    return may_be ? hold_check_possible(region, piece, addr) : 0;
}

/* ---- for depart.c, lock held ---- */

/* A live hold becomes a kept one; false if it was dropped. */
bool hold_keep(struct hold *hold);

/* A run that is on no list becomes the pool's. */
void hold_keep_run(struct ebb_pool *pool, struct ebb_piece *run);

/* The hold's block has ended; `run` is kept for its bytes. */
void hold_move(struct hold *hold, struct ebb_piece *run);

/* The hold, which was moved, is on the list of the region. */
void hold_enlist(struct region *region, struct hold *hold);

/* The hold was dropped and its block has ended: the region has nothing to do but end it. */
void hold_orphan(struct region *region, struct hold *hold);

static inline bool hold_is_dropped(struct hold *hold) {
    /* acquire: what the consumer did before it dropped the hold has been done */
    return atomic_load_explicit(&hold->state, memory_order_acquire) == HOLD_DROPPED;
}

#endif
