// SPDX-License-Identifier: Apache-2.0
/*
 * keeper.c - what a root with steps below it gives back while it stays open.
 *
 *     before   run  | block |            free            | window | free |end
 *     after    run  | block |end    hot, the pool's   run| window | free |end
 *
 * A root's blocks outlive steps, and what outlived steps may have been much once: a step that was
 * exceptional leaves survivors, and when those are gone a root is long and empty. One small block
 * at its far end must not keep that. So the ends of steps look at the largest free piece now and
 * then, and leave a flag in it. Blocks are put in from its start, and the rest has the flag; where
 * it joins a place before it that is free again, the piece keeps in mind where that began. What
 * nothing was put in until the next look goes, if it is half of what the root has. What steps use,
 * and release before they end, stays.
 *
 * Free pieces between blocks that stay are many and none of them much. Whoever knows that no step
 * may end here for long has them all looked at, keeper_settle().
 *
 * Not so where the root has asked for its pages (`hint_bytes`), and in shared memory, where others
 * may know the pages.
 */
#include "region/keeper.h"
#include "base/size.h"
#include "region/large.h"
#include "region/runs.h"

#ifndef KEEPER_STEPS
#define KEEPER_STEPS 4u /* steps: each holds the same piece against the one before */
#endif
#ifndef KEEPER_LEAST
#define KEEPER_LEAST ((size_t)256 << 10)
#endif
#ifndef KEEPER_SHARE
#define KEEPER_SHARE 2u /* of all it has: the half, so that giving and taking do not alternate */
#endif

#define PIECE_LEAST ((size_t)16 << 10) /* has whole pages */
#define PIECES 64u /* at most, where there may be another look */

/* The largest piece that no block is in. */
static struct ebb_piece *largest_free(const struct region *keeper) {
    struct ebb_piece *piece = fit_is_empty(&keeper->fit) ? NULL : fit_largest(&keeper->fit);
    if (!piece || (keeper->top && keeper->top->bytes > piece->bytes))
        piece = keeper->top;
    return piece;
}

void keeper_joins_idle(struct region *keeper, struct ebb_piece *piece,
                       const struct ebb_piece *after) {
    if (piece_end(after) != keeper->idle_end)
        return; /* its flag is of an earlier look, at another piece */
    piece->flag = true;
    keeper->idle_at = size_larger(keeper->idle_at, after->addr);
}

/* Where in the piece begins what nothing was put in since the last look; its end: nowhere. Entries
 * that are used again may have an old flag: what it says is no worse than to look too early. */
static uintptr_t find_idle(const struct region *keeper, const struct ebb_piece *piece) {
    uintptr_t end = piece_end(piece);
    return piece->flag && end == keeper->idle_end ? size_larger(piece->addr, keeper->idle_at) : end;
}

static bool is_much(const struct region *keeper, size_t bytes) {
    return bytes >= KEEPER_LEAST && bytes >= keeper->reserved.current / KEEPER_SHARE;
}

static bool stays_whole(const struct region *keeper) {
    return keeper->hinted || keeper->measuring || keeper->shared;
}

void keeper_step_ended(struct region *keeper) {
    if (keeper->reserved.current < KEEPER_LEAST || stays_whole(keeper))
        return;
    keeper->steps_below = (uint8_t)((keeper->steps_below + 1u) % KEEPER_STEPS);
    if (keeper->steps_below != 0)
        return;
    large_settle(keeper); /* it may wait for ever for another of its size */
    struct ebb_piece *piece = largest_free(keeper);
    if (!piece || !is_much(keeper, piece->bytes))
        return;
    uintptr_t idle_at = find_idle(keeper, piece);
    piece->flag = true;
    keeper->idle_at = piece->addr;
    keeper->idle_end = piece_end(piece);
    if (is_much(keeper, keeper->idle_end - idle_at))
        runs_give_part(keeper, piece, idle_at);
}

void keeper_settle(struct region *keeper, bool wholly) {
    size_t reserved = keeper->reserved.current, before = 0;
    size_t free = reserved - size_smaller(reserved, keeper->large_used);
    if (stays_whole(keeper) || (!wholly && !is_much(keeper, free)))
        return;
    large_settle(keeper);
    if (wholly) {
        runs_give_free(keeper);
        return;
    }
    for (unsigned given = 0; given < PIECES; given++) {
        struct ebb_piece *piece = largest_free(keeper);
        if (!piece || piece->bytes < PIECE_LEAST || keeper->reserved.current == before)
            return;
        before = keeper->reserved.current;
        runs_give_part(keeper, piece, piece->addr);
    }
}
