// SPDX-License-Identifier: Apache-2.0
/*
 * take.c - pages of a pool for regions: what there is room for, taking them and giving them back.
 *
 *     in place, hot   -->   elsewhere, hot   -->   in place, cold   -->   elsewhere, cold
 *
 * Limits are enforced here, where pages become resident. Before one refuses, cached pages elsewhere
 * in the pool are given back, and pages that are kept for others serve whoever asks. Only where
 * that is of use: who is refused all the same has cost nobody anything.
 *
 * Invariant: reserved.current = bytes of runs + bytes hot at every unlock.
 */
#include "base/error.h"
#include "base/poison.h"
#include "pool/range.h"
#include "pool/shared.h"

/* ---- what there is room for ---- */

bool pool_can_spare(struct ebb_pool *pool, size_t bytes) {
    pthread_mutex_lock(&pool->lock);
    bool can = fit_find(&pool->pages.hot, bytes) != NULL;
    pthread_mutex_unlock(&pool->lock);
    return can;
}

/* Bytes that there may be of its pages: what its limit says, and the slot has that it is of. */
static size_t most_bytes(const struct ebb_pool *pool) {
    size_t limit = atomic_load_explicit(&pool->limit_reserved, memory_order_relaxed);
    size_t slot = pool->slot ? pool->shared->slot_bytes : SIZE_MAX;
    return limit ? size_smaller(limit, slot) : slot;
}

/* Whole pages that are left of so many bytes; SIZE_MAX, where nothing bounds them, stays that. */
static size_t left_of(size_t most, size_t taken) {
    return most == SIZE_MAX ? most : size_align_down(most - size_smaller(most, taken), EBB_PAGE);
}

size_t pool_room(struct ebb_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    size_t room = left_of(most_bytes(pool), pool->pages.run_bytes);
    pthread_mutex_unlock(&pool->lock);
    return room;
}

bool pool_could_have(struct ebb_pool *pool, size_t bytes, size_t free) {
    if (most_bytes(pool) == SIZE_MAX)
        return bytes <= RANGE_MOST; /* steps ask for each survivor: threads do not meet here */
    pthread_mutex_lock(&pool->lock);
    size_t most = most_bytes(pool), used = pool->pages.run_bytes - free;
    pthread_mutex_unlock(&pool->lock);
    return bytes <= RANGE_MOST && (bytes <= free || (used <= most && bytes <= most - used));
}

size_t pool_cold_left(const struct ebb_pool *pool) {
    return left_of(most_bytes(pool), pool->reserved.current);
}

size_t pool_most_cold(const struct ebb_pool *pool) {
    size_t limit = pool->limit_reserved;
    return left_of(limit ? limit : SIZE_MAX, pool->reserved.current);
}

/* What the limit leaves for new pages once cached ones are given back, those that can be, `more` of
 * them than there are; SIZE_MAX without a limit. */
static size_t room_of(const struct ebb_pool *pool, size_t more) {
    size_t stays = pool->reserved.current - pages_left(&pool->pages, 0) - more;
    return pool->limit_reserved ? pool->limit_reserved - size_smaller(pool->limit_reserved, stays)
                                : SIZE_MAX;
}

static bool is_spare(const struct ebb_piece *piece) {
    return piece && (piece->state == PIECE_HOT || piece->state == PIECE_KEPT);
}

/* Pages in one piece if those of the run were hot; *after is what lies behind them. */
static size_t piece_with(const struct ebb_piece *run, const struct ebb_piece **after) {
    const struct ebb_piece *first = run, *last = run;
    while (is_spare(first->before))
        first = first->before;
    while (is_spare(last->after))
        last = last->after;
    *after = last->after;
    return piece_end(last) - first->addr;
}

/* Those of a run, as part of a piece that is hot then, that could be made cold. */
static size_t left_with(const struct pages *pages, const struct ebb_piece *run, size_t piece) {
    if (!pages->kind->whole)
        return pages->kind->dense ? 0 : run->bytes;
    return piece == pages_slab_at(pages, run->addr)->bytes ? piece : 0;
}

bool pool_could_serve(struct ebb_pool *pool, const struct ebb_piece *run, size_t bytes,
                      size_t *cold) {
    const struct pages *pages = &pool->pages;
    const struct ebb_piece *after;
    bool dense = pages->kind->dense;
    pthread_mutex_lock(&pool->lock);
    size_t piece = piece_with(run, &after);
    *cold = pool->limit_reserved || dense ? room_of(pool, left_with(pages, run, piece)) : 0;
    pthread_mutex_unlock(&pool->lock);
    if (dense && after && after->state == PIECE_COLD)
        piece += size_smaller(after->bytes, *cold);
    return bytes <= piece || (!dense && pages_step(pages, bytes) <= *cold);
}

/* ---- taking ---- */

/* Takes what is hot where it can, then what is cold; *gained or a new run. */
static struct ebb_piece *take_locked(struct ebb_pool *pool, struct ebb_piece *run,
                                     struct pages_wish wish, size_t *gained) {
    size_t cold = wish.most_cold;
    wish.most_cold = 0;
    if (run && (*gained = pages_extend(&pool->pages, run, &wish)) != 0)
        return NULL;
    struct ebb_piece *hot = pages_take_hot(&pool->pages, &wish);
    if (hot)
        return hot;
    wish.most_cold = cold;
    if (run && (*gained = pages_extend(&pool->pages, run, &wish)) != 0)
        return NULL;
    return pages_take(&pool->pages, &wish);
}

/* Where pages are had from the system in advance, and it has not as many as would be liked, as few
 * as will do. */
static struct ebb_piece *take_or_less(struct ebb_pool *pool, struct ebb_piece *run,
                                      struct pages_wish wish, size_t *gained) {
    const struct kind *kind = pool->pages.kind;
    if (!kind->warm || kind->whole || wish.want_cold <= wish.least)
        return take_locked(pool, run, wish, gained);
    error_mute();
    struct ebb_piece *taken = take_locked(pool, run, wish, gained);
    error_unmute();
    if (taken || *gained)
        return taken;
    wish.want = wish.want_cold = wish.least;
    return take_locked(pool, run, wish, gained);
}

/* ---- making room ---- */

/* Gives cached pages back; returns their bytes. What a driver refuses to take stays, unheard of. */
static size_t cool(struct ebb_pool *pool, size_t most) {
    size_t hot = pool->pages.hot_bytes;
    error_mute();
    pool->given_back += pages_cool(&pool->pages, 0, most, 0);
    error_unmute();
    size_t cooled = hot - pool->pages.hot_bytes;
    pool->reserved.current -= cooled;
    return cooled;
}

/* Cached pages that do not fit a wish make room under the limit for `bytes` that do, and no more go
 * than that takes, or than makes it worth looking for them where they lie in very many parts. A
 * limit that was lowered may be below what is held: so much goes as well. */
static void make_room(struct ebb_pool *pool, size_t bytes) {
    size_t above, cooled;
    do {
        size_t wanted = pool->reserved.current + bytes; /* both are addresses that there are */
        above = wanted - size_smaller(wanted, pool->limit_reserved);
        size_t least = above ? pages_cool_least(&pool->pages) : 0;
        cooled = cool(pool, size_larger(size_align(above, EBB_PAGE), least));
    } while (cooled && cooled < above); /* whole slabs may go one by one */
}

/* The bytes for which cached pages have to make room, and can; or 0. A run that can grow in place
 * needs no more than it grows by. */
static size_t room_wanted(const struct ebb_pool *pool, const struct ebb_piece *run,
                          const struct pages_wish *wish) {
    size_t least = pages_step(&pool->pages, wish->least);
    if (wish->most_cold >= least || !pool->pages.hot_bytes)
        return 0;
    if (run && wish->extend < least && pages_may_extend(run, wish->extend))
        least = wish->extend;
    return least <= wish->room ? least : 0;
}

/* True if what a device, or a limit on locked pages, is full of are cached slabs, none of which
 * will do, and there is room without them. */
static bool is_full(const struct ebb_pool *pool, size_t least) {
    int code = error_latest(); /* whoever tries may have muted it */
    return pool->pages.kind->whole && pool->pages.hot_bytes &&
           (code == EBB_E_DEVICE || code == EBB_E_MEMORY) &&
           pages_may_fit(&pool->pages, pages_step(&pool->pages, least));
}

/* True if what is kept for others may do: in one piece, or behind the run that grows. So do cold
 * pages behind it that the limit leaves, but not where the system refuses them. */
static bool kept_may_do(const struct pages *pages, const struct ebb_piece *run,
                        const struct pages_wish *wish) {
    struct pages_wish rest = *wish;
    if (!pages->kind->dense)
        rest.most_cold = wish->extend <= wish->room ? wish->room : 0;
    if (error_latest() != EBB_E_POOL_LIMIT)
        rest.most_cold = 0;
    return pages->kept && !pages->leaving && pages_kept_fit(pages, run, &rest);
}

/* What is cached or kept gives way to who would be refused, by the system, a limit, a slot or a
 * device; false: that would be in vain. Of cached slabs as many as are asked for: then there may be
 * others to try it with. */
static bool gives_way(struct ebb_pool *pool, const struct ebb_piece *run,
                      const struct pages_wish *wish) {
    bool full = is_full(pool, wish->least), kept = kept_may_do(&pool->pages, run, wish);
    size_t cooled = full ? cool(pool, pages_step(&pool->pages, wish->least)) : 0;
    if (kept)
        pages_unkeep_all(&pool->pages);
    return cooled || kept;
}

/* Within a limit that leaves too little until cached pages have gone, but then enough. Where the
 * system is known to lack them even then, it is asked first: they stay for who would be refused. */
static struct ebb_piece *take_with_room(struct ebb_pool *pool, struct ebb_piece *run,
                                        struct pages_wish wish, size_t room, size_t *gained) {
    error_mute();
    struct ebb_piece *taken = take_locked(pool, run, wish, gained);
    error_unmute();
    if (taken || *gained)
        return taken;
    bool scarce = pages_are_scarce(&pool->pages, room);
    if (!scarce)
        make_room(pool, room);
    wish.most_cold = wish.room = scarce ? room : pool_most_cold(pool);
    wish.want = wish.want_cold = wish.least;
    taken = take_locked(pool, run, wish, gained);
    if (scarce && taken) /* who may lock more than the limit says, for one */
        make_room(pool, room);
    return taken;
}

struct ebb_piece *pool_take_locked(struct ebb_pool *pool, struct ebb_piece *run,
                                   const struct pages_wish *wish, size_t *gained) {
    struct pages_wish bounded = *wish;
    *gained = 0;
    bounded.most_cold = pool_most_cold(pool);
    bounded.room = room_of(pool, 0);
    bounded.limit = pool->limit_reserved;
    bounded.pool = pool->name;
    size_t room = room_wanted(pool, run, &bounded);
    struct ebb_piece *taken = room ? take_with_room(pool, run, bounded, room, gained)
                                   : take_or_less(pool, run, bounded, gained);
    while (!taken && !*gained && gives_way(pool, run, &bounded)) {
        bounded.most_cold = pool_most_cold(pool);
        bounded.want = bounded.want_cold = bounded.least;
        error_take_back(); /* it is refused once, if at all */
        room = room_wanted(pool, run, &bounded); /* the run may grow where that was in its way */
        taken = room ? take_with_room(pool, run, bounded, room, gained)
                     : take_locked(pool, run, bounded, gained);
    }
    return taken;
}

size_t pool_owned_locked(const struct ebb_pool *pool) {
    size_t owned = pool->pages.run_bytes;
    return owned - size_smaller(owned, pool->work_bytes);
}

struct growth pool_note_growth_locked(struct ebb_pool *pool, size_t work_bytes) {
    struct growth before = {pool->recent.now, pool->recent.boundaries};
    size_t held = pool->pages.run_bytes + pool->pages.hot_bytes;
    size_t held_before = pool->reserved.current;
    if (held > held_before) {
        meter_add(&pool->reserved, held - held_before);
        pool->recent.new_bytes += held - held_before;
    }
    pool->work_bytes += work_bytes;
    pool->recent.now = size_larger(pool->recent.now, pool_owned_locked(pool));
    return before;
}

struct ebb_piece *pool_take(struct ebb_pool *pool, struct ebb_piece *run, uint64_t owner,
                            const struct pages_wish *wish, size_t *gained, struct growth *growth) {
    pthread_mutex_lock(&pool->lock);
    struct ebb_piece *taken = pool_take_locked(pool, run, wish, gained);
    pool_level_locked(pool);
    size_t got = taken ? taken->bytes : *gained;
    *growth = pool_note_growth_locked(pool, wish->work ? got : 0);
    if (taken)
        piece_put_owner(taken, owner); /* under the lock: neighbours read it to join runs */
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

/* ---- giving ---- */

/* What was in the run has ended: to ASan nobody may touch it until it is a block again. */
static void give_locked(struct ebb_pool *pool, struct ebb_piece *run) {
    if (!pool->pages.kind->phantom && !pool_is_leased(pool))
        poison_unused(run->addr, run->bytes);
    if (pool->pages.leaving)
        pages_keep(&pool->pages, run, 0); /* no ticket has that number */
    else
        pages_give(&pool->pages, run);
    if (pool->pages.kind == &kind_phantom)
        pool->reserved.current -= pages_drop_phantoms(&pool->pages);
}

void pool_give_list_locked(struct ebb_pool *pool, struct ebb_piece *runs) {
    while (runs) {
        struct ebb_piece *run = runs;
        runs = run->next;
        give_locked(pool, run);
    }
}

void pool_give(struct ebb_pool *pool, struct ebb_piece *run) {
    pthread_mutex_lock(&pool->lock);
    give_locked(pool, run);
    pthread_mutex_unlock(&pool->lock);
}
