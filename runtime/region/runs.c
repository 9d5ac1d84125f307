// SPDX-License-Identifier: Apache-2.0
/*
 * runs.c - the runs of pages under a region: growing, claiming, joining, giving back.
 *
 *     run         | block | free | window | block |  top  |end      the main run: top is free
 *     run         | free | block |end
 *     relinked    |  survivor  |                                    not part of the lane
 *
 * A region that needs room first claims hot pages around its runs, which cost nothing, and joins
 * runs that have come to touch. Not all of them: regions of other threads may want some. Where the
 * pool's limit may leave no others, it claims those alone that make the room, or none. Then it
 * takes other hot pages, and cold ones last. A root that has had children is a keeper: its blocks
 * outlive steps, so it claims nothing and takes the smallest hot pages that fit, out of the way of
 * the steps that take turns on the rest.
 *
 * Invariant: between run.first and run.end pieces tile the run. A function that fails has taken
 * nothing.
 */
#include "region/runs.h"
#include "base/check.h"
#include "base/error.h"
#include "base/os.h"
#include "region/track.h"

#define RUNS_LOOKED_AT 64 /* per claim */
#define CLAIM_LEAST ((size_t)64 << 10) /* at once, before or behind, or half of what it has */
#ifndef GROWTH_LEAST
#define GROWTH_LEAST ((size_t)16 << 10)
#endif
#ifndef GROWTH_MOST
#define GROWTH_MOST ((size_t)1 << 20)
#endif

static size_t clamp(size_t value, size_t least, size_t most) {
    return size_smaller(size_larger(value, least), most);
}

/* ---- pieces at the end of a run ---- */

struct ebb_piece *runs_new_piece(struct region *region, uintptr_t addr, size_t bytes,
                                 enum piece_state state) {
    struct ebb_piece *piece = piece_take(&region->store);
    CHECK(piece);
    *piece = (struct ebb_piece){.addr = addr, .bytes = bytes};
    piece->state = (uint8_t)state;
    piece_set_owner(piece, region->owner);
    return piece;
}

void runs_retire_top(struct region *region) {
    if (!region->top)
        return;
    region->top->state = PIECE_FREE;
    fit_insert(&region->fit, region->top);
    region->top = NULL;
}

void runs_find_top(struct region *region) {
    struct ebb_piece *last = region->main_run->run.end->before;
    if (region->top || last->state != PIECE_FREE)
        return;
    fit_remove(&region->fit, last);
    last->state = PIECE_TOP;
    region->top = last;
}

/* A new free piece in front of the end of a run. */
static void insert_last(struct region *region, struct ebb_piece *run, size_t bytes) {
    struct ebb_piece *end = run->run.end;
    struct ebb_piece *piece = runs_new_piece(region, end->addr, bytes, PIECE_FREE);
    piece->before = end->before;
    piece->after = end;
    end->before->after = piece;
    end->before = piece;
    fit_insert(&region->fit, piece);
}

/* The run became longer: its last piece is free, or a new one is. One entry is prepared. */
static void lengthen(struct region *region, struct ebb_piece *run, size_t bytes) {
    struct ebb_piece *last = run->run.end->before;
    if (last == region->top) {
        last->bytes += bytes;
    } else if (last->state == PIECE_FREE) {
        fit_remove(&region->fit, last);
        last->bytes += bytes;
        fit_insert(&region->fit, last);
    } else {
        insert_last(region, run, bytes);
    }
    run->run.end->addr += bytes;
    meter_add(&region->reserved, bytes);
    if (run == region->main_run)
        runs_find_top(region);
}

/* The run became longer at its start: its first piece is free, or a new one is. */
static void lengthen_before(struct region *region, struct ebb_piece *run, size_t bytes) {
    struct ebb_piece *first = run->run.first;
    meter_add(&region->reserved, bytes);
    if (first == region->top || first->state == PIECE_FREE) {
        if (first != region->top)
            fit_remove(&region->fit, first);
        first->addr -= bytes;
        first->bytes += bytes;
        if (first != region->top)
            fit_insert(&region->fit, first);
        return;
    }
    struct ebb_piece *piece = runs_new_piece(region, run->addr, bytes, PIECE_FREE);
    piece->after = first;
    first->before = piece;
    run->run.first = piece;
    fit_insert(&region->fit, piece);
}

/* ---- adding and giving ---- */

/* A run becomes the main run, wholly free. Two entries are prepared. */
static void add(struct region *region, struct ebb_piece *run) {
    runs_retire_top(region);
    struct ebb_piece *top = runs_new_piece(region, run->addr, run->bytes, PIECE_TOP);
    struct ebb_piece *end = runs_new_piece(region, piece_end(run), 0, PIECE_END);
    top->after = end;
    end->before = top;
    runs_add(region, run, top, end);
    region->main_run = run;
    region->highest = region->needed = run->addr;
    region->top = top;
    meter_add(&region->reserved, run->bytes);
}

void runs_give(struct region *region, struct ebb_piece *run) {
    if (region->measuring)
        region->measured = runs_measured(region); /* a hint has to have it, too */
    piece_unlink(&region->runs, run);
    region->run_count--;
    meter_subtract(&region->reserved, run->bytes);
    pool_give(region->pool, run);
}

void runs_unmark(struct region *region, struct ebb_piece *run) {
    pthread_mutex_lock(&region->pool->lock);
    run->pins = 0;
    pthread_mutex_unlock(&region->pool->lock);
}

struct ebb_piece *runs_around(const struct region *region, uintptr_t addr) {
    struct ebb_piece *run = region->runs;
    while (run && !range_covers(run, addr))
        run = run->next;
    return run;
}

void runs_give_empty(struct region *region, struct ebb_piece *piece) {
    struct ebb_piece *run = piece->after->end.run;
    CHECK(run->run.first == piece && run->run.end == piece->after);
    piece_give(&region->store, run->run.end);
    piece_give(&region->store, piece);
    runs_give(region, run);
}

/* ---- claiming and joining ---- */

/* The last piece of a run and the first of the one behind it, if both are free, become one. */
static void merge_at(struct region *region, struct ebb_piece *last, struct ebb_piece *first) {
    bool top = first == region->top;
    if (last->state != PIECE_FREE || (first->state != PIECE_FREE && !top))
        return;
    fit_remove(&region->fit, last);
    if (!top)
        fit_remove(&region->fit, first);
    piece_absorb_after(last, &region->store);
    if (top) {
        last->state = PIECE_TOP;
        region->top = last;
    } else {
        fit_insert(&region->fit, last);
    }
}

/* The pieces of `joined`, which lay right behind `run`, follow those of `run`. */
static void chain(struct region *region, struct ebb_piece *run, const struct ebb_piece *joined) {
    struct ebb_piece *last = run->run.end->before, *first = joined->run.first;
    piece_give(&region->store, run->run.end);
    last->after = first;
    first->before = last;
    run->run.end = joined->run.end;
    run->run.end->end.run = run;
    merge_at(region, last, first);
}

/* True if the piece behind a run, or behind what that claims, is a run that it joins. */
static bool is_joined(const struct ebb_piece *after, const struct ebb_piece *run) {
    return after && after->state == PIECE_RUN && after->owner == run->owner && !after->flag &&
           !after->pins;
}

static bool can_join(const struct ebb_piece *run) {
    return run->state == PIECE_RUN && !run->flag && !run->pins && is_joined(run->after, run);
}

/* Takes the run behind `run` in, with the pool's lock held. */
static void join_locked(struct region *region, struct ebb_piece *run) {
    struct ebb_piece *after = run->after, joined = *after;
    bool main = region->main_run == run || region->main_run == after;
    if (region->main_run == run) {
        runs_retire_top(region);
        region->needed = piece_end(after);
    }
    piece_unlink(&region->runs, after);
    region->run_count--;
    pages_join(&region->pool->pages, run);
    chain(region, run, &joined);
    if (main) {
        region->main_run = run;
        runs_find_top(region);
    }
}

/* Without the arena, which has all that its plan needs: the rest grows by its own size. */
static size_t reserved_beside_arena(const struct region *region) {
    const struct track *track = region->track;
    return region->reserved.current - (track && track->arena ? track->span : 0);
}

/* The most that a region of so many bytes claims at once. */
static size_t most_claimed_by(size_t reserved) {
    return size_align(size_larger(reserved / 2, CLAIM_LEAST), EBB_PAGE);
}

static size_t most_claimed(const struct region *region) {
    return most_claimed_by(reserved_beside_arena(region));
}

/* Claims and joins around one run: the run that two have become, or NULL if none have. */
static struct ebb_piece *claim_around(struct region *region, struct ebb_piece *run) {
    struct pages *pages = &region->pool->pages;
    size_t most = most_claimed(region);
    size_t behind = pages_claim(pages, run, most), before = pages_claim_before(pages, run, most);
    if (behind)
        lengthen(region, run, behind);
    if (before)
        lengthen_before(region, run, before);
    struct ebb_piece *first = can_join(run) ? run : run->before;
    if (!first || !can_join(first))
        return NULL;
    join_locked(region, first);
    return first;
}

static bool can_claim(struct region *region, const struct ebb_piece *run) {
    return !run->flag && !run->pins && piece_prepare(&region->store, 2);
}

/* Newest runs first, and only so many that growing does not depend on their number. */
static void claim_locked(struct region *region) {
    struct ebb_piece *run = region->runs;
    for (unsigned look = 0; run && look < RUNS_LOOKED_AT; look++)
        run = can_claim(region, run) && claim_around(region, run) ? region->runs : run->next;
}

static void claim_at(struct region *region, struct ebb_piece *run) {
    while (run && can_claim(region, run))
        run = claim_around(region, run);
}

/* How much of a hot piece beside a run is claimed at once. */
static size_t claimed_of(const struct ebb_piece *hot, size_t most) {
    return hot && hot->state == PIECE_HOT ? size_smaller(hot->bytes, most) : 0;
}

/* Where the free bytes at the end of a run would end once it has claimed and joined. */
static uintptr_t room_end(const struct region *region, const struct ebb_piece *run) {
    const struct ebb_piece *next = run->after;
    size_t claimed = claimed_of(next, most_claimed(region));
    uintptr_t end = piece_end(run) + claimed;
    if (claimed)
        next = next->bytes == claimed ? next->after : NULL;
    return is_joined(next, run) && runs_is_free(next->run.first) ? piece_end(next->run.first) : end;
}

/* True if claiming around the run makes room at one of its ends for so many bytes. */
static bool gets_room(const struct region *region, const struct ebb_piece *run, size_t bytes) {
    const struct ebb_piece *first = run->run.first, *last = run->run.end->before;
    uintptr_t start = run->addr - claimed_of(run->before, most_claimed(region));
    uintptr_t start_end = runs_is_free(first) ? piece_end(first) : run->addr;
    uintptr_t behind = runs_is_free(last) ? last->addr : piece_end(run);
    if (last == first && runs_is_free(first))
        behind = start;
    return bytes <= start_end - start || bytes <= room_end(region, run) - behind;
}

/* Bytes that have room for the block, wherever they begin. */
static size_t room_for(size_t bytes, size_t align) {
    return bytes + size_larger(align, EBB_UNIT) - EBB_UNIT;
}

/* A run that has room for the block once it has claimed, or NULL. */
static struct ebb_piece *find_claim(const struct region *region, size_t bytes, size_t align) {
    struct ebb_piece *run = region->runs;
    size_t room = room_for(bytes, align);
    for (unsigned look = 0; run && look < RUNS_LOOKED_AT; look++, run = run->next)
        if (!run->flag && !run->pins && gets_room(region, run, room))
            return run;
    return NULL;
}

static uintptr_t main_end(const struct region *region) {
    return region->main_run ? piece_end(region->main_run) : 0;
}

/* Bytes of whole pages that have room for the block, wherever they begin; false: overflow. */
static bool pages_for(size_t bytes, size_t align, size_t *pages) {
    size_t slack = align > EBB_PAGE ? align - EBB_PAGE : 0, total;
    return size_add(bytes, slack, &total) && size_round_up(total, EBB_PAGE, pages);
}

/* Among others where slabs have memory as a whole: what is free in them is for all. */
static bool claims_nothing(const struct region *region) {
    return region->measuring || region->keeper || region->pool->pages.kind->whole;
}

bool runs_claim(struct region *region, size_t bytes, size_t align) {
    struct ebb_pool *pool = region->pool;
    uint64_t reserved = region->reserved.current;
    uintptr_t end = main_end(region);
    size_t count = region->run_count, least;
    if (!region->runs || claims_nothing(region) || !pages_for(bytes, align, &least) ||
        least > RANGE_MOST)
        return false;
    pthread_mutex_lock(&pool->lock);
    if (pool->pages.hot_bytes && least <= pool_cold_left(pool))
        claim_locked(region); /* if that is not enough, there are others */
    else if (pool->pages.hot_bytes)
        claim_at(region, find_claim(region, bytes, align));
    uint64_t work = region->uncounted ? region->reserved.current - reserved : 0;
    struct growth growth = pool_note_growth_locked(pool, work);
    if (main_end(region) != end)
        region->growth = growth;
    pthread_mutex_unlock(&pool->lock);
    return region->reserved.current > reserved || region->run_count < count;
}

/* ---- growing ---- */

/* How much more than needed is asked for: pages that are hot cost nothing. */
static void wish_for_growth(const struct region *region, struct pages_wish *wish) {
    size_t reserved = reserved_beside_arena(region);
    size_t cold = size_align(clamp(reserved / 8, GROWTH_LEAST, GROWTH_MOST), EBB_PAGE);
    bool sparing = region->keeper || region->pool->pages.kind->whole;
    size_t hot = sparing ? cold : size_align(size_larger(reserved / 2, cold), EBB_PAGE);
    wish->want = region->measuring ? SIZE_MAX : size_larger(hot, wish->least);
    wish->want_cold = region->measuring ? SIZE_MAX : size_larger(cold, wish->least);
    wish->keeper = region->keeper;
    wish->near = region->main_run;
}

static int take_pages(struct region *region, struct pages_wish *wish) {
    size_t gained;
    wish->work = region->uncounted;
    if (!piece_prepare(&region->store, 2))
        return error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'", region->name);
    struct growth growth;
    struct ebb_piece *run =
        pool_take(region->pool, region->main_run, region->owner, wish, &gained, &growth);
    if (!run && !gained)
        return error_latest();
    region->growth = growth;
    if (run)
        add(region, run);
    else
        lengthen(region, region->main_run, gained);
    return 0;
}

int runs_grow(struct region *region, size_t bytes, size_t align) {
    struct pages_wish wish = {0};
    if (!pages_for(bytes, align, &wish.least))
        return error_set(EBB_E_SIZE, "%zu bytes at alignment %zu overflow", bytes, align);
    uintptr_t end = main_end(region);
    uintptr_t from = region->top ? region->top->addr : end;
    CHECK(size_align(from, align) + bytes > end); /* who grows has looked for room */
    wish.extend = size_align(size_align(from, align) + bytes - end, EBB_PAGE);
    wish_for_growth(region, &wish);
    return take_pages(region, &wish);
}

/* Bytes of the main run, if that is wholly free, once `other` is given back and it has claimed. */
static size_t claimed_room(const struct region *region, const struct ebb_piece *other,
                           const struct pages_around *free) {
    if (claims_nothing(region))
        return 0;
    size_t most = most_claimed_by(region->reserved.current - other->bytes);
    return size_smaller(free->before, most) + region->top->bytes +
           size_smaller(free->hot_behind, most);
}

bool runs_could_serve(const struct region *region, const struct ebb_piece *other, size_t bytes,
                      size_t align) {
    const struct ebb_piece *top = region->top, *run = region->main_run;
    size_t pages, cold;
    if (pages_for(bytes, align, &pages) && pool_could_serve(region->pool, other, pages, &cold))
        return true;
    if (!top)
        return false;
    uintptr_t end = size_align(top->addr, align) + bytes;
    size_t more = end - size_smaller(end, piece_end(top));
    pthread_mutex_lock(&region->pool->lock);
    struct pages_around free = pages_around(run, other, more);
    pthread_mutex_unlock(&region->pool->lock);
    if (more <= free.behind && free.cold_behind <= cold)
        return true;
    return run->run.first == top && room_for(bytes, align) <= claimed_room(region, other, &free);
}

int runs_reserve(struct region *region, size_t bytes) {
    struct pages_wish wish = {0};
    if (!size_round_up(bytes, EBB_PAGE, &wish.least))
        return error_set(EBB_E_SIZE, "hint of %zu bytes overflows", bytes);
    wish.extend = wish.want = wish.want_cold = wish.least;
    wish.exact = true;
    if (take_pages(region, &wish) != 0)
        return error_latest();
    region->needed = piece_end(region->main_run);
    return 0;
}

/* ---- forgetting and measuring ---- */

void runs_forget(struct region *region, size_t keep, struct ebb_piece **given) {
    struct ebb_piece *runs = region->runs, *next;
    const struct ebb_piece *main_run = region->main_run;
    uintptr_t needed = size_larger(region->highest, region->needed); /* in the main run */
    uint64_t total = region->reserved.total;
    size_t held = 0;
    region->measured = runs_measured(region);
    piece_forget_all(&region->store);
    fit_clear(&region->fit);
    region->blocks = region->top = region->loose = region->main_run = region->runs = NULL;
    region->reserved.current = region->pinned = 0;
    region->run_count = 0;
    for (; runs; runs = next) {
        next = runs->next;
        if (!runs->flag && runs->bytes <= keep - size_smaller(held, keep) &&
            piece_prepare(&region->store, 2)) {
            held += runs->bytes;
            if (!region->hollow)
                poison_unused(runs->addr, runs->bytes);
            range_name_pages(runs, runs->addr, runs->bytes);
            piece_put_owner(runs, region->owner);
            add(region, runs);
            region->needed = runs == main_run ? needed : piece_end(runs);
        } else {
            runs->next = *given;
            *given = runs;
        }
    }
    region->reserved.total = total;
}

size_t runs_measured(const struct region *region) {
    size_t total = 0;
    for (const struct ebb_piece *run = region->runs; run; run = run->next)
        total += run->bytes;
    uintptr_t end = main_end(region);
    uintptr_t highest = size_align(region->highest, EBB_PAGE);
    if (highest < end)
        total -= end - highest;
    return size_larger(total, region->measured);
}
