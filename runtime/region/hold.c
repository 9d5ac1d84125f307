// SPDX-License-Identifier: Apache-2.0
/*
 * hold.c - holds begin, are dropped and end (see hold.h).
 *
 * Dropping while the region is open is one exchange, so it needs no lock and may happen anywhere;
 * what follows from it, happens in the region's thread: when other holds begin, something is
 * promoted to the region or a step below it ends (if one more came than were left at the last
 * look), when the object ends, when somebody counts, when a block is about to be refused for one,
 * at a rewind and at the end.
 *
 * Refuses to let a block go that is held, and a rewind past a hold.
 */
#include "region/hold.h"
#include "base/error.h"
#include "region/relinked.h"
#include "region/track.h"

void hold_enlist(struct region *region, struct hold *hold) {
    piece_push(&region->holds, &hold->bytes);
    region->hold_count++;
}

bool hold_is_possible(const void *start) {
    const struct ebb_piece *piece = range_block_at((uintptr_t)start);
    if (piece->state != PIECE_ARENA)
        return piece->state == PIECE_BLOCK;
    const struct track *track = region_track(region_of_piece(piece));
    const struct track_slot *slot = track_find(track, (uintptr_t)start);
    return slot && slot->room >= RANGE_SLOT;
}

bool hold_is_on(const void *start) {
    const struct ebb_piece *piece = range_block_at((uintptr_t)start);
    if (piece->state != PIECE_ARENA)
        return piece->state == PIECE_BLOCK && piece->pins;
    const struct track *track = region_track(region_of_piece(piece));
    const struct track_slot *slot = track_find(track, (uintptr_t)start);
    return slot && slot->align & TRACK_HELD;
}

void hold_pin(struct hold *hold, bool pinned) {
    if (hold->block->state == PIECE_ARENA)
        track_hold(region_track(region_of_piece(hold->block)), (uintptr_t)hold->start, pinned);
    else
        hold->block->pins = pinned;
}

void hold_begin(struct hold *hold, struct region *region, void *start, uintptr_t addr,
                size_t bytes) {
    if (region->hold_count >= region->hold_limit)
        hold_sweep(region);
    hold->bytes = (struct ebb_piece){.addr = addr, .bytes = bytes, .state = PIECE_HELD};
    hold->block = range_block_at((uintptr_t)start);
    hold->start = start;
    hold->run = NULL;
    hold->pool = region->pool;
    hold->serial = region->mark_serial;
    atomic_init(&hold->state, HOLD_LIVE);
    hold_pin(hold, true);
    hold_enlist(region, hold);
}

void hold_begin_empty(struct hold *hold) {
    hold->block = hold->run = NULL;
    hold->pool = NULL;
    atomic_init(&hold->state, HOLD_KEPT);
}

/* ---- dropping ---- */

static bool change(struct hold *hold, unsigned from) {
    /* release: what the consumer wrote is seen by whoever ends the hold; acquire: the other way */
    return atomic_compare_exchange_strong_explicit(&hold->state, &from, HOLD_DROPPED,
                                                   memory_order_acq_rel, memory_order_acquire);
}

/* The last hold on a run of the pool is gone: its pages are free. */
static void leave_run_locked(struct ebb_pool *pool, struct ebb_piece *run) {
    if (--run->relinked.live_blocks)
        return;
    pool->held_bytes -= run->bytes;
    piece_put_state(run, PIECE_RUN);
    run->next = NULL;
    pool_give_list_locked(pool, run);
}

static bool leave_pool(struct hold *hold) {
    struct ebb_pool *pool = hold->pool;
    pthread_mutex_lock(&pool->lock); /* the close that keeps the run may still be at work */
    bool first = change(hold, HOLD_KEPT);
    if (first)
        leave_run_locked(pool, hold->run);
    pthread_mutex_unlock(&pool->lock);
    return first;
}

void hold_drop(struct hold *hold) {
    if (change(hold, HOLD_LIVE))
        return;
    if (hold->pool ? leave_pool(hold) : change(hold, HOLD_KEPT))
        hold->end(hold);
}

/* ---- ending, in the region's thread ---- */

/* A run of survivors that a hold shared with them. */
static void leave_run(struct region *region, struct ebb_piece *run) {
    run->relinked.holds--;
    (void)relinked_leave(region, run);
}

void hold_settle(struct region *region, struct hold *hold) {
    if (!hold_is_dropped(hold))
        return;
    piece_unlink(&region->holds, &hold->bytes);
    region->hold_count--;
    if (hold->run)
        leave_run(region, hold->run);
    hold->end(hold);
}

void hold_sweep(struct region *region) {
    struct ebb_piece *at = region->holds, *next;
    for (; at; at = next) {
        next = at->next;
        hold_settle(region, hold_of(at));
    }
    region->hold_limit = 2 * region->hold_count + 1; /* so each is looked at twice */
}

void hold_leave_to(struct region *region, struct region *parent) {
    struct ebb_piece *at, *next;
    hold_sweep(region);
    for (at = region->holds; at; at = next) {
        struct hold *hold = hold_of(at);
        next = at->next;
        if (!hold->block || hold->block->owner != parent->owner)
            continue;
        piece_unlink(&region->holds, at);
        region->hold_count--;
        hold->serial = 0; /* the block is older than any mark */
        hold_enlist(parent, hold);
        region->hooks->leave(hold->start);
    }
}

/* ---- refusing ---- */

int hold_check_rewind(struct region *region, uint64_t serial) {
    size_t count = 0, bytes = 0;
    hold_sweep(region);
    for (struct ebb_piece *at = region->holds; at; at = at->next) {
        const struct hold *hold = hold_of(at);
        if (hold->block && hold->serial >= serial) {
            count++;
            bytes += at->bytes;
        }
    }
    if (!count)
        return 0;
    return error_set(EBB_E_BUSY, "region '%s': %zu exports of %zu bytes are newer than mark %llu",
                     region->name, count, bytes, region_mark_number(serial));
}

/* True if holds of the region were dropped that nobody had ended yet. Who is just ending some, and
 * what others have released, goes on. */
static bool gives_way(struct region *region) {
    struct region *holder = region->safe_of ? region->safe_of : region;
    size_t count = holder->hold_count;
    if (!holder->settling)
        remote_sweep(holder);
    return holder->hold_count < count;
}

int hold_check_possible(struct region *region, const struct ebb_piece *piece, uintptr_t addr) {
    const struct region *place = region_of_piece(piece);
    size_t bytes = piece->block.requested;
    if (piece->state == PIECE_ARENA) {
        const struct track_slot *slot = track_find(region_track(place), addr);
        if (!(slot->align & TRACK_HELD))
            return 0;
        bytes = slot->bytes;
    }
    if (gives_way(region))
        return 1;
    return error_set(EBB_E_BUSY, "block %p of region '%s', %zu bytes, is exported", (void *)addr,
                     place->name, bytes);
}

/* ---- the region ends ---- */

bool hold_keep(struct hold *hold) {
    unsigned live = HOLD_LIVE;
    /* release: who drops it sees the pool; it waits for the lock before it looks at the run */
    return atomic_compare_exchange_strong_explicit(&hold->state, &live, HOLD_KEPT,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

void hold_orphan(struct region *region, struct hold *hold) {
    hold->block = hold->run = NULL;
    hold_enlist(region, hold);
}

void hold_move(struct hold *hold, struct ebb_piece *run) {
    hold->block = NULL;
    hold->run = run;
    run->relinked.live_blocks++;
    run->relinked.holds++;
}

void hold_keep_run(struct ebb_pool *pool, struct ebb_piece *run) {
    piece_put_state(run, PIECE_HELD);
    run->relinked.none = NULL;
    run->relinked.used = 0;
    run->relinked.live_blocks = run->relinked.holds = 0;
    pool->held_bytes += run->bytes;
}
