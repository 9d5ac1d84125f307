// SPDX-License-Identifier: Apache-2.0
/*
 * takeover.c - a step has outgrown its plan, or the pool has no pages beside the arena: the large
 * lane takes that over.
 *
 *     arena      |      L1 |   L2         |          |  L3   |     L: live
 *     after      | stretch      |  free   |  free    | stretch|
 *
 * The arena is cut at multiples of 1 KiB into stretches that hold live blocks and gaps that do not.
 * Gaps are free memory of the region from then on. A stretch counts its blocks; when the last one
 * is released it is free, too. No slot is served any more in this step. The run stays the track's:
 * nothing in it is relinked, so that the next step finds it whole. Where there are no pages and
 * nothing lives in the arena, its run goes back to the pool: what is too large for it, or for what
 * is left of it, may be had there.
 *
 * Invariant: every live block lies in one stretch, which block_at names.
 */
#include "base/check.h"
#include "region/large.h"
#include "region/runs.h"
#include "region/small.h"

/* The part of the arena that is not cut yet, and the stretch being gathered. */
struct cut {
    struct region *region;
    struct ebb_piece *rest; /* the last piece */
    uintptr_t from, to;     /* of the stretch: [from, to) */
    uint32_t blocks;
};

static void name_stretch(struct ebb_piece *stretch, uint32_t blocks) {
    stretch->state = PIECE_ARENA;
    stretch->flag = false;
    stretch->pins = 0;
    stretch->window.live = blocks;
    range_name_window(stretch);
}

/* Cuts [rest->addr, at) off; what lies behind is the rest. */
static struct ebb_piece *cut_off(struct cut *cut, uintptr_t at) {
    struct ebb_piece *piece = cut->rest;
    CHECK(at > piece->addr && at < piece_end(piece));
    struct ebb_piece *rest = piece_take(&cut->region->store);
    piece_split(piece, rest, at);
    rest->state = PIECE_ARENA;
    rest->flag = false;
    rest->pins = 0;
    cut->rest = rest;
    return piece;
}

/* The gathered stretch and the gap in front of it are done. */
static void finish_stretch(struct cut *cut) {
    struct ebb_piece *gap = NULL, *stretch;
    if (!cut->blocks)
        return;
    if (cut->from > cut->rest->addr)
        gap = cut_off(cut, cut->from);
    if (cut->to < piece_end(cut->rest)) {
        stretch = cut_off(cut, cut->to);
    } else {
        stretch = cut->rest;
        cut->rest = NULL;
    }
    name_stretch(stretch, cut->blocks);
    if (gap)
        large_free(cut->region, gap);
    cut->blocks = 0;
}

static void add_live(struct cut *cut, uintptr_t from, uintptr_t to) {
    from = size_align_down(from, RANGE_SLOT);
    to = size_align(to, RANGE_SLOT);
    if (!cut->blocks || from > cut->to) {
        finish_stretch(cut);
        cut->from = from;
        cut->to = to;
    }
    cut->to = size_larger(cut->to, to);
    cut->blocks++;
}

static uint32_t count_live(const struct track *track) {
    uint32_t cursor = track_cursor(track), count = 0;
    for (uint32_t i = 0; i < cursor; i++)
        count += track_is_live(track, &track->slots[i]);
    return count;
}

struct ebb_piece *track_become_ordinary(struct track *track) {
    struct region *region = track->region;
    struct ebb_piece *run = track_leave_run(track);
    struct ebb_piece *piece = piece_take(&region->store), *end = piece_take(&region->store);
    *piece = (struct ebb_piece){.addr = run->addr, .bytes = run->bytes, .after = end};
    piece->state = PIECE_ARENA;
    piece_set_owner(piece, region->owner);
    *end = (struct ebb_piece){.addr = piece_end(run), .before = piece, .end.run = run};
    end->state = PIECE_END;
    run->run.first = piece;
    run->run.end = end;
    return piece;
}

/* False if there is no memory for it, or something is held: then nothing has changed. */
static bool take_over(struct track *track) {
    const struct plan *plan = track->plan;
    struct region *region = track->region;
    if (track->held || !piece_prepare(&region->store, 2 * count_live(track) + 3))
        return false;
    struct cut cut = {.region = region, .rest = track_become_ordinary(track)};
    for (uint32_t at = 0; at < plan->placed_count; at++) {
        const struct track_slot *slot = &track->slots[plan->places[at].slot];
        if (track_is_live(track, slot))
            add_live(&cut, slot->addr, slot->addr + slot->room);
    }
    finish_stretch(&cut);
    if (cut.rest)
        large_free(region, cut.rest);
    track->taken_over = track->seen.taken_over = true;
    track->named = NULL; /* blocks will be named there */
    track->overdue_count = 0;
    return true;
}

/* ---- where the pool has no pages ---- */

/* What the large lane would find for a block: it looks at the smallest free piece that is large
 * enough, the first of several, and if the block does not fit there at its alignment, for one where
 * it does anywhere. */
struct look {
    size_t bytes, align;
    size_t smallest; /* so far */
    uintptr_t first; /* of that size */
    bool fits;       /* there */
    bool anywhere;   /* in one */
    bool somewhere;  /* in one, though the lane may not look there */
};

static void look_at(struct look *look, uintptr_t from, uintptr_t to) {
    size_t room = to > from ? to - from : 0;
    if (room < look->bytes)
        return;
    bool fits = to - look->bytes >= size_align(from, look->align);
    look->anywhere |= room >= look->bytes + look->align - EBB_UNIT;
    look->somewhere |= fits;
    if (room > look->smallest || (room == look->smallest && from > look->first))
        return;
    look->fits = fits;
    look->smallest = room;
    look->first = from;
}

/* With what is free in the region anyway, where it did not fit. */
static struct look begin_look(const struct region *region, size_t bytes, size_t align) {
    struct look look = {.bytes = bytes, .align = align, .smallest = SIZE_MAX, .first = UINTPTR_MAX};
    const struct ebb_piece *own = NULL;
    if (!fit_is_empty(&region->fit))
        own = fit_find(&region->fit, bytes);
    if (own) {
        look.smallest = own->bytes;
        look.first = own->addr;
    }
    return look;
}

/* As a takeover would leave it. */
static void look_at_gaps(const struct track *track, struct look *look) {
    const struct plan *plan = track->plan;
    uintptr_t from = track->base;
    for (uint32_t at = 0; at < plan->placed_count; at++) {
        const struct track_slot *slot = &track->slots[plan->places[at].slot];
        if (!track_is_live(track, slot))
            continue;
        look_at(look, from, size_align_down(slot->addr, RANGE_SLOT));
        from = size_align(slot->addr + slot->room, RANGE_SLOT);
    }
    look_at(look, from, track->base + track->span);
}

static bool is_known_gapless(const struct track_gapless *known, const struct look *look) {
    if (look->align < known->align)
        return false;
    return known->alone ? look->bytes == known->bytes && look->smallest == known->own_bytes &&
                              look->first == known->own_addr
                        : look->bytes >= known->bytes;
}

/* A program may try ever so often: what was looked for in vain is so until a slot is free, or, if
 * the lane would have to look elsewhere only, until one is taken or it has other pieces. */
static bool has_gap(struct track *track, size_t bytes, size_t align) {
    if (bytes > track->span - track->live_rooms)
        return false;
    struct look look = begin_look(track->region, bytes, align);
    struct track_gapless found = {.bytes = bytes, .align = align,
                                  .own_bytes = look.smallest, .own_addr = look.first};
    if (is_known_gapless(&track->gapless, &look))
        return false;
    look_at_gaps(track, &look);
    if (look.fits || look.anywhere)
        return true;
    found.alone = look.somewhere;
    track->gapless = found;
    return false;
}

/* The piece that fills the arena's run, or what was that before a takeover; NULL: something lives
 * there, or there is none. */
static struct ebb_piece *find_empty(const struct track *track) {
    if (track->arena)
        return track->live_rooms || count_live(track) ? NULL : track->arena;
    if (!track->taken_over)
        return NULL;
    large_settle(track->region);
    struct ebb_piece *first = runs_around(track->region, track->base)->run.first;
    return first->state == PIECE_FREE && first->after->state == PIECE_END ? first : NULL;
}

static bool gives_back(struct track *track, size_t bytes, size_t align) {
    struct region *region = track->region;
    struct ebb_piece *empty = find_empty(track);
    if (!empty || !runs_could_serve(region, empty->after->end.run, bytes, align) ||
        !piece_prepare(&region->store, 2))
        return false;
    pool_leave(region->pool, &track->kept);
    runs_unmark(region, empty->after->end.run);
    if (track->arena) {
        large_free(region, track_become_ordinary(track));
    } else {
        fit_remove(&region->fit, empty);
        runs_give_empty(region, empty);
    }
    track->taken_over = false;
    track->seen.taken_over = true;
    track->named = NULL;
    track->overdue_count = 0;
    return true;
}

bool track_outgrow(struct track *track, size_t bytes) {
    bool refused = pool_room(track->region->pool) < bytes;
    return (refused && gives_back(track, bytes, EBB_UNIT)) || take_over(track);
}

static bool leaves(struct track *track, size_t bytes, size_t align) {
    return gives_back(track, bytes, align) ||
           (track->arena && !track->held && has_gap(track, bytes, align) && take_over(track));
}

bool track_gives_way(struct track *track, size_t bytes, size_t align) {
    bool small = small_suits(bytes, align);
    size_t least = small ? WINDOWS_LEAST : size_larger(bytes, RANGE_SLOT);
    due_settle(track);
    track_look(track);
    if (!leaves(track, least, small ? RANGE_SLOT : size_larger(align, EBB_UNIT)))
        return false;
    track->cursor = track_cursor(track);
    track->open = track->serving = false;
    track_set_paths(track);
    return true;
}

void track_leave_stretch(struct track *track, uintptr_t addr) {
    struct ebb_piece *stretch = range_block_at(addr);
    CHECK(stretch->state == PIECE_ARENA && piece_covers(stretch, addr) && stretch->window.live);
    if (--stretch->window.live == 0)
        large_free(track->region, stretch);
}
