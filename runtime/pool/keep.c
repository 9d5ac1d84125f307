// SPDX-License-Identifier: Apache-2.0
/*
 * keep.c - runs that are kept for the one who used them last.
 *
 *     run of a step  --keep-->  kept: hot, but in nobody's way  --retake-->  the same run again
 *                                 `--- the pages are wanted, or cooled ---> hot like any other
 *
 * A step with a plan wants as many pages as the one before it, in one piece. What others take from
 * the hot pages between two steps would leave it in parts. So its pages are kept, whole. They count
 * as cached: a trim, a limit, another step that wants a piece as large, and what recent steps did
 * not need, take them like other cached pages, the longest kept first. So does whoever would be
 * refused pages, by the system, a limit, a slot or a device, if they may do.
 *
 * Threads that take such runs at once could have each other's pages. A pool knows the thread that
 * took the last one, until that is kept or left to its region: another thread that takes one
 * meanwhile has met it. Who took one before is forgotten, so not every meeting is seen, but where
 * there are many, some are.
 *
 * Who keeps a run, one at a time, has a ticket, a number that nobody else is ever given. Invariant:
 * a piece in the list of kept ones has the number of its ticket, or 0; a ticket whose piece has
 * another is void.
 *
 * In a slot whose region is being sent runs that end are kept without a ticket, and nothing that is
 * kept serves anybody: what lies there is for another process.
 */
#include "base/error.h"
#include "base/poison.h"
#include "base/size.h"
#include "pool/shared.h"

/* Of the bytes that are wanted: so much more is no reason to look for another run. */
#define SPARE_PART 8

static atomic_uint_fast64_t last_ticket;

static _Thread_local char own; /* its address is the thread's */

static void note_taken_locked(struct ebb_pool *pool, struct kept *kept) {
    kept->meetings = pool->meetings;
    pool->meetings += pool->taker && pool->taker != &own;
    pool->taker = kept->taker = &own;
}

/* The thread has it no more. True: there were meetings since it was taken. */
static bool note_left_locked(struct ebb_pool *pool, const struct kept *kept) {
    if (pool->taker == kept->taker)
        pool->taker = NULL;
    return kept->meetings != pool->meetings;
}

static uint64_t new_ticket(void) {
    /* relaxed: only that it is never the same number twice matters */
    return atomic_fetch_add_explicit(&last_ticket, 1, memory_order_relaxed) + 1;
}

void pool_keep_locked(struct ebb_pool *pool, struct ebb_piece *run, struct kept *kept) {
    uint64_t number = kept->ticket ? kept->ticket : new_ticket();
    if (!pool_is_leased(pool) && !pool->pages.kind->phantom)
        poison_unused(run->addr, run->bytes);
    pages_keep(&pool->pages, run, number);
    bool met = note_left_locked(pool, kept);
    *kept = (struct kept){.pool = pool, .run = run, .ticket = number, .met = met};
}

void pool_keep(struct ebb_pool *pool, struct ebb_piece *run, struct kept *kept) {
    pthread_mutex_lock(&pool->lock);
    pool_keep_locked(pool, run, kept);
    pthread_mutex_unlock(&pool->lock);
}

void pool_leave(struct ebb_pool *pool, struct kept *kept) {
    pthread_mutex_lock(&pool->lock);
    kept->met = note_left_locked(pool, kept);
    pthread_mutex_unlock(&pool->lock);
}

/* Lock held. */
static bool is_valid(const struct kept *kept) {
    return kept->run && kept->run->state == PIECE_KEPT && kept->run->kept.ticket == kept->ticket &&
           !kept->pool->pages.leaving;
}

void pool_unkeep(struct kept *kept) {
    if (!kept->run)
        return;
    pthread_mutex_lock(&kept->pool->lock);
    if (is_valid(kept))
        pages_unkeep(&kept->pool->pages, kept->run);
    pthread_mutex_unlock(&kept->pool->lock);
    kept->run = NULL;
}

/* The run, grown in place; NULL: that cannot be, or it is too long, so its pages are anybody's. */
static struct ebb_piece *extend_locked(struct ebb_pool *pool, struct ebb_piece *run, size_t bytes) {
    struct pages_wish wish = {.least = bytes};
    if (run->bytes < bytes && piece_prepare(&pool->pages.store, 1)) {
        wish.extend = wish.want = wish.want_cold = bytes - run->bytes;
        wish.most_cold = pool_most_cold(pool);
        if (pages_extend(&pool->pages, run, &wish))
            return run;
    }
    pages_give(&pool->pages, run);
    return NULL;
}

/* The kept run as it is, if it is still there and fits; else another. */
static struct ebb_piece *retake_locked(struct ebb_pool *pool, const struct kept *kept,
                                       size_t bytes, bool *same) {
    struct pages_wish wish = {.least = bytes, .want = bytes, .want_cold = bytes, .whole = true};
    struct ebb_piece *run = kept->pool == pool && is_valid(kept) ? kept->run : NULL;
    size_t gained;
    if (run) {
        pages_retake(&pool->pages, run);
        *same = run->bytes >= bytes && run->bytes - bytes <= bytes / SPARE_PART;
        if (*same)
            return run;
    }
    error_mute();
    run = run ? extend_locked(pool, run, bytes) : NULL;
    if (!run)
        run = pool_take_locked(pool, NULL, &wish, &gained);
    if (run && pool->pages.kind->settle)
        pool->pages.kind->settle(&pool->pages, run->addr, run->bytes);
    error_unmute();
    return run;
}

/* Pages that were cold were needed though others are hot, but in parts: those make up for it. */
static void make_up_locked(struct ebb_pool *pool, uint64_t reserved_before) {
    size_t hot = pool->pages.hot_bytes;
    if (pool->reserved.current <= reserved_before || pool->keep_all)
        return;
    uint64_t more = pool->reserved.current - reserved_before;
    error_mute();
    pool->given_back += pages_cool(&pool->pages, hot - size_smaller(hot, more), more, 0);
    error_unmute();
    pool->reserved.current -= hot - pool->pages.hot_bytes;
}

struct ebb_piece *pool_retake(struct ebb_pool *pool, struct kept *kept, uint64_t owner,
                              size_t bytes, bool *same) {
    *same = false;
    pthread_mutex_lock(&pool->lock);
    uint64_t reserved = pool->reserved.current;
    struct ebb_piece *run = retake_locked(pool, kept, bytes, same);
    (void)pool_note_growth_locked(pool, 0);
    if (run) {
        piece_put_owner(run, owner);
        run->pins = 1; /* under the lock, as all that neighbours look at */
    }
    make_up_locked(pool, reserved);
    if (run)
        note_taken_locked(pool, kept);
    pthread_mutex_unlock(&pool->lock);
    kept->run = NULL;
    kept->met = false;
    return run;
}
