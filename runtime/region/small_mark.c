// SPDX-License-Identifier: Apache-2.0
/*
 * small_mark.c - the small lane walked: blocks of a window one by one, and the end of those
 * that are newer than a mark, or than a call that failed.
 */
#include "base/check.h"
#include "region/count.h"
#include "region/holes.h"
#include "region/small.h"
#include "region/windows.h"

/* ---- walking ---- */

/* Where the entries of a window end: at the cursor if it bumps towards the window's end. */
static uintptr_t used_end(const struct region *region, const struct ebb_piece *window) {
    bool whole = window == region->window && region->limit == piece_end(window);
    return whole ? region->lane.cursor : piece_end(window);
}

/* Calls back for every live block and granule of padding. A room in the middle is skipped. */
static void each(const struct ebb_piece *window, uintptr_t from, uintptr_t to, small_visit *visit,
                void *context) {
    CHECK(from >= window->addr && to <= piece_end(window));
    for (uintptr_t at = from; at < to;) {
        uint16_t entry = *small_entry(window, at);
        size_t step = entry ? small_step(small_entry_bytes(entry)) : RANGE_GRANULE;
        if (!entry || !(entry & STARTS_RELEASED))
            visit(context, at, entry ? small_entry_bytes(entry) : 0, entry != 0);
        at += step;
    }
}

void small_each_live(const struct region *region, const struct ebb_piece *window,
                     small_visit *visit, void *context) {
    bool hole = window == region->window && region->limit != piece_end(window);
    if (window == region->spare)
        return;
    each(window, window->addr, hole ? region->lane.cursor : used_end(region, window), visit,
         context);
    if (hole)
        each(window, region->limit, piece_end(window), visit, context);
}

/* ---- taking back ---- */

static void count_padding(void *context, uintptr_t addr, size_t bytes, bool block) {
    (void)addr, (void)bytes;
    CHECK(!block);
    *(size_t *)context += RANGE_GRANULE;
}

void small_take_back(struct region *region, uint32_t which, uintptr_t cursor) {
    size_t padding = 0;
    uintptr_t room = region->room;
    small_fold(region);
    if (!region->window || region->rooms != which || region->lane.cursor <= cursor)
        return;
    each(region->window, cursor, region->lane.cursor, count_padding, &padding);
    windows_drop_padding(region, region->window, padding);
    windows_set_room(region, region->window, cursor, region->limit);
    region->room = room;
    region->rooms = which; /* whose call has this one in it takes back more of it */
}

/* ---- marking and rewinding ---- */

/* Marks go newest first, so the oldest of those in a window is the last that pins it. */
static void pin(struct ebb_piece *window, struct ebb_piece *mark) {
    mark->flag = !window->pins;
    window->pins = 1;
}

void small_mark(struct region *region, struct ebb_piece *mark) {
    small_fold(region);
    struct ebb_piece *window = region->window;
    bool whole = window && window == region->windows && region->limit == piece_end(window);
    if (window && !whole)
        windows_leave(region);
    mark->mark.window = region->windows;
    mark->mark.cursor = whole             ? region->lane.cursor
                        : region->windows ? piece_end(region->windows)
                                          : 0;
    if (region->windows)
        pin(region->windows, mark);
    region->room = region->lane.cursor;
}

void small_unmark(const struct ebb_piece *mark) {
    if (mark->flag)
        mark->mark.window->pins = 0;
}

struct ending {
    struct region *region;
    struct ebb_piece *window;
};

static void end_block(void *context, uintptr_t addr, size_t bytes, bool block) {
    struct ending *ending = context;
    if (!block) {
        windows_drop_padding(ending->region, ending->window, RANGE_GRANULE);
        return;
    }
    size_t step = small_step(bytes);
    count_block_gone(ending->region, bytes, step);
    count_uncharge(ending->region, step);
    ending->window->window.live -= SMALL_LIVE(1, step);
    region_poison(ending->region, addr, step);
}

static void end_blocks(struct region *region, struct ebb_piece *window, uintptr_t from) {
    struct ending ending = {region, window};
    each(window, from, used_end(region, window), end_block, &ending);
}

void small_rewind(struct region *region, const struct ebb_piece *mark) {
    struct ebb_piece *kept = mark->mark.window;
    small_fold(region);
    if (region->window && region->window != kept)
        windows_leave(region);
    while (region->windows != kept) {
        struct ebb_piece *window = region->windows;
        if (window != region->spare)
            end_blocks(region, window, window->addr);
        windows_give(region, window);
    }
    if (!kept || mark->mark.cursor == piece_end(kept))
        return;
    end_blocks(region, kept, mark->mark.cursor);
    holes_leave(region, kept);
    windows_clear(kept, mark->mark.cursor, used_end(region, kept)); /* behind, they are clear */
    windows_go_to(region, kept, mark->mark.cursor, piece_end(kept));
}
