// SPDX-License-Identifier: Apache-2.0
/*
 * cut.c - free pages inside of a run are cut out of it and given back.
 *
 *     before   run  | block |          free           | block |end
 *     after    run  | block |end    the pool's     run| block |end
 *
 * They go for good: later steps are not expected to need them. Where there are no entries for what
 * is left of the run, nothing goes.
 */
#include "region/runs.h"

/* What lies behind `to` in a run is a run of its own: it begins with the rest of `piece`, which
 * is free, or what follows that. Two entries are prepared. */
static void split_behind(struct region *region, struct ebb_piece *run, struct ebb_piece *piece,
                         uintptr_t to) {
    struct ebb_piece *end = run->run.end, *next = piece->after;
    struct ebb_piece *behind = pages_split(&region->pool->pages, run, to);
    size_t bytes = piece_end(piece) - to;
    if (bytes) {
        struct ebb_piece *rest = runs_new_piece(region, to, bytes, PIECE_FREE);
        rest->after = next;
        fit_insert(&region->fit, rest);
        next->before = rest;
        next = rest;
    }
    next->before = NULL;
    runs_add(region, behind, next, end);
    piece->bytes = to - piece->addr;
    if (region->main_run == run)
        region->main_run = behind;
}

/* A run that has become shorter ends with the rest of `piece`, which is free, or with what comes
 * before that: the result is a run of the pages behind. One entry is prepared. */
static struct ebb_piece *split_before(struct region *region, struct ebb_piece *run,
                                      struct ebb_piece *piece, uintptr_t from) {
    struct ebb_piece *cut = pages_split(&region->pool->pages, run, from), *last = piece->before;
    piece->bytes = from - piece->addr;
    if (piece->bytes) {
        last = piece;
        fit_insert(&region->fit, piece);
    } else {
        piece_give(&region->store, piece);
    }
    struct ebb_piece *end = runs_new_piece(region, from, 0, PIECE_END);
    end->before = last;
    end->end.run = run;
    last->after = end;
    run->run.end = end;
    return cut;
}

/* Nothing but the piece is in the run any more. */
static struct ebb_piece *unlink_run(struct region *region, struct ebb_piece *run,
                                    struct ebb_piece *piece) {
    piece_give(&region->store, piece);
    piece_unlink(&region->runs, run);
    region->run_count--;
    if (region->main_run == run)
        region->main_run = NULL;
    return run;
}

/* The pages [from, to) of a free piece go. Entries are prepared. */
static void give_part_locked(struct region *region, struct ebb_piece *run, struct ebb_piece *piece,
                             uintptr_t from, uintptr_t to) {
    if (run == region->main_run)
        runs_retire_top(region);
    fit_remove(&region->fit, piece);
    if (to < piece_end(run))
        split_behind(region, run, piece, to);
    else
        piece_give(&region->store, run->run.end);
    bool has_before = from > run->addr;
    struct ebb_piece *given = has_before ? split_before(region, run, piece, from)
                                         : unlink_run(region, run, piece);
    if (region->main_run)
        runs_find_top(region);
    size_t bytes = given->bytes;
    meter_subtract(&region->reserved, bytes);
    given->next = NULL;
    pool_give_list_locked(region->pool, given);
    pool_needs_less_locked(region->pool, bytes);
}

static void give_part(struct region *region, struct ebb_piece *run, struct ebb_piece *piece,
                      uintptr_t from) {
    struct ebb_pool *pool = region->pool;
    uintptr_t to = size_align_down(piece_end(piece), EBB_PAGE);
    from = size_align(from, EBB_PAGE);
    if (from >= to || run->pins || !piece_prepare(&region->store, 2))
        return;
    pthread_mutex_lock(&pool->lock);
    if (pages_prepare_cut(&pool->pages))
        give_part_locked(region, run, piece, from, to);
    pthread_mutex_unlock(&pool->lock);
}

void runs_give_part(struct region *region, struct ebb_piece *piece, uintptr_t from) {
    give_part(region, runs_around(region, piece->addr), piece, from);
}

/* From its end: what stays behind is a short run each time, and is named as such. */
static void give_free_of(struct region *region, struct ebb_piece *run) {
    struct ebb_piece *piece = run->run.end->before, *before;
    for (; piece; piece = before) {
        before = piece->before;
        if (runs_is_free(piece))
            give_part(region, run, piece, piece->addr);
    }
}

void runs_give_free(struct region *region) {
    for (struct ebb_piece *run = region->runs, *next; run; run = next) {
        next = run->next; /* new ones are in front */
        if (!run->flag && !run->pins)
            give_free_of(region, run);
    }
}
