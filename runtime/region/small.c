// SPDX-License-Identifier: Apache-2.0
/*
 * small.c - the small lane: blocks up to 1 KiB, bumped in windows.
 *
 * A window is a block of the large lane, 4 to 128 KiB. The inline path bumps from lane.cursor to
 * lane.limit; when that room is used up, the slow path here finds more: first a hole between
 * live blocks of a window, left by releases, then a new window. So a step that releases what it
 * no longer needs stays small, and one that does not pays nothing for the possibility.
 *
 *     window   | live | released | live | pad | released        | live | filler |
 *     starts    n+1    R|n+1      n+1    0     R|n+1             n+1    R|n+1
 *                                       \_______ a hole ________/
 *
 * Invariant: from the start of a window to the cursor (to its end, if it is not the current
 * one) entries tile the granules: a live block, a released one, or a granule of padding, which
 * is 0. Padding counts as used until a hole takes it in or the window is empty. That is too long
 * where a limit may refuse what it is in the way of: a metered region is charged with none, and
 * counts it by itself, so that blocks lie where they do elsewhere.
 *
 * A window whose last block is released goes back to the large lane, but for one that is kept.
 */
#include "base/check.h"
#include "base/error.h"
#include "region/holes.h"
#include "region/small.h"
#include "region/count.h"
#include "region/large.h"
#include "region/remote.h"

#include <string.h>

#ifndef WINDOW_MOST
#define WINDOW_MOST ((size_t)131072)
#endif
#define SMALL_MOST ((size_t)16384 - 2 * RANGE_GRANULE) /* a small block can grow to this */
#define FILLER_MOST ((size_t)32768 - 2 * RANGE_GRANULE) /* fits 15 bits */

static inline void note_peaks(struct region *region, bool watched) {
    uint64_t used = flow_note_peak(&region->used), requested = flow_note_peak(&region->requested);
    size_t calm = size_smaller(used, requested);
    region->calm = watched ? 0 : region->lane.cursor + calm + 1;
    region->calm_blocks = (uint16_t)size_smaller(flow_note_peak(&region->counted), UINT16_MAX);
}

/* True if every block must be seen when it leaves. */
static inline bool is_watched(const struct region *region) {
    return region->metered || track_watches(region->track) || EBB_POISON;
}

void small_note_peaks(struct region *region) {
    note_peaks(region, is_watched(region));
}

void small_fold_tracked(struct region *region) {
    if (__builtin_expect(region->track->due.on, 0))
        due_gather(region->track);
    else
        track_gather(region->track);
    small_fold_bumped(region);
    if (region->track->coarse)
        small_note_peaks(region); /* of both together: whatever leaves comes here first */
}

void small_drop_padding(struct region *region, struct ebb_piece *window, size_t bytes) {
    if (!bytes)
        return;
    window->window.live -= bytes;
    if (region->metered)
        region->padding -= bytes;
    else
        flow_leave(&region->used, bytes);
}

void small_set_inline(struct region *region) {
    bool shut = is_watched(region) || region->sealed;
    shut |= region->shared; /* what is quickly made is an object: its head is not for others */
    region->lane.limit = shut ? 0 : region->limit;
}

/* ---- windows ---- */

/* The cursor goes elsewhere. It may come as far there before the peaks must be looked at. */
static void move_cursor(struct region *region, uintptr_t to) {
    uintptr_t cursor = region->lane.cursor, calm = region->calm;
    region->calm = calm > cursor ? to + (calm - cursor) : 0;
    region->lane.cursor = region->folded = region->room = to;
    region->rooms++;
}

/* Nothing starts there any more. */
static void clear_entries(const struct ebb_piece *window, uintptr_t from, uintptr_t to) {
    memset(small_entry(window, from), 0, (to - from) / RANGE_GRANULE * sizeof(uint16_t));
}

/* Blocks go to [from, to) from now on, whose entries are clear. */
static void go_to_room(struct region *region, struct ebb_piece *window, uintptr_t from,
                       uintptr_t to) {
    region->lane.start_map = (uintptr_t)starts_entries(window->window.map) - window->addr / 8;
    region->window = window;
    move_cursor(region, from);
    region->limit = to;
    window->window.act_blocks = 0;
    small_set_inline(region);
}

static void set_room(struct region *region, struct ebb_piece *window, uintptr_t from,
                     uintptr_t to) {
    clear_entries(window, from, to);
    go_to_room(region, window, from, to);
}

static void give_window(struct region *region, struct ebb_piece *window) {
    if (region->spare == window)
        region->spare = NULL;
    small_drop_padding(region, window, small_live_bytes(window));
    holes_leave(region, window);
    piece_unlink(&region->windows, window);
    starts_give(&region->starts, window->window.map, window->bytes);
    large_free(region, window);
}

static void no_room(struct region *region) {
    region->window = NULL;
    move_cursor(region, 0);
    region->limit = region->lane.limit = 0;
}

/* [addr, addr + bytes) belongs to no block: released entries, as long as entries can say. */
static void write_filler(struct ebb_piece *window, uintptr_t addr, size_t bytes) {
    while (bytes) {
        size_t part = size_smaller(bytes, FILLER_MOST);
        *small_entry(window, addr) = (uint16_t)(STARTS_RELEASED | (part + 1));
        addr += part;
        bytes -= part;
    }
}

/* The current window is left, folded: what remains of its room becomes a released entry. */
static void leave_window(struct region *region) {
    struct ebb_piece *window = region->window;
    CHECK(region->folded == region->lane.cursor);
    if (!window)
        return;
    uintptr_t rest = region->limit - region->lane.cursor;
    uintptr_t cursor = region->lane.cursor;
    no_room(region);
    write_filler(window, cursor, rest);
    if (small_live_blocks(window) == 0 && !window->pins)
        give_window(region, window);
    else if (!window->flag && window->bytes - small_live_bytes(window) - rest >= window->bytes / 2)
        holes_enter(region, window);
    else if (!window->flag)
        holes_await(window);
}

/* Windows are an eighth of what lives in the lane, so that an unused one wastes little. Padding is
 * part of that in all regions: what was measured for one holds for all. */
static size_t window_bytes(const struct region *region) {
    size_t bytes = SMALL_WINDOW_LEAST;
    size_t live = flow_now(&region->used) - region->large_used + region->padding;
    while (bytes < WINDOW_MOST && bytes < live / 8)
        bytes *= 2;
    return bytes;
}

/* A map for a window and a place for it in the large lane, or NULL: then neither was taken. */
static struct ebb_piece *place_window_of(struct region *region, size_t bytes) {
    uint32_t map = starts_take(&region->starts, bytes);
    if (!map) {
        error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'", region->name);
        return NULL;
    }
    struct ebb_piece *window = large_place(region, bytes, RANGE_SLOT);
    if (!window) {
        starts_give(&region->starts, map, bytes);
        return NULL;
    }
    memset(&window->window, 0, sizeof window->window);
    window->window.map = map;
    return window;
}

static struct ebb_piece *place_window(struct region *region) {
    size_t bytes = window_bytes(region);
    struct ebb_piece *window = NULL;
    if (bytes > SMALL_WINDOW_LEAST) {
        error_mute();
        window = place_window_of(region, bytes);
        error_unmute();
    }
    return window ? window : place_window_of(region, SMALL_WINDOW_LEAST);
}

static void open_window(struct region *region, struct ebb_piece *window) {
    window->state = PIECE_WINDOW;
    window->pins = 0;
    window->flag = false;
    piece_push(&region->windows, window);
    range_name_window(window);
    if (!region->hollow)
        poison_unused(window->addr, window->bytes);
    set_room(region, window, window->addr, piece_end(window));
}

/* ---- room ---- */

static void adopt(struct region *region, struct ebb_piece *window, const struct hole *hole) {
    small_drop_padding(region, window, hole->padding);
    window->window.scanned = (uint16_t)((hole->to - window->addr) / RANGE_GRANULE);
    set_room(region, window, hole->from, hole->to);
}

/* All blocks of the current window are gone: begin again at its start. */
static bool restart(struct region *region) {
    struct ebb_piece *window = region->window;
    if (!window || window->pins || small_live_blocks(window) > 0)
        return false;
    small_drop_padding(region, window, small_live_bytes(window));
    holes_leave(region, window);
    set_room(region, window, window->addr, piece_end(window));
    return true;
}

/* The empty window that was kept becomes the current one. */
static bool use_spare(struct region *region) {
    struct ebb_piece *window = region->spare;
    if (!window)
        return false;
    region->spare = NULL;
    leave_window(region);
    set_room(region, window, window->addr, piece_end(window));
    return true;
}

/* Room for `step` bytes at the cursor. While marks are set, blocks only go into new windows. The
 * present room is left only when there is another. */
static bool refill(struct region *region, size_t step) {
    struct hole hole;
    remote_look(region);
    small_fold(region);
    if (restart(region))
        return true;
    if (!region->marks && use_spare(region))
        return true;
    struct ebb_piece *window = region->marks ? NULL : holes_find(region, step, &hole);
    if (window) {
        leave_window(region);
        adopt(region, window, &hole);
        return true;
    }
    window = place_window(region);
    if (!window)
        return false;
    leave_window(region);
    open_window(region, window);
    return true;
}

/* ---- blocks ---- */

static void *bump(struct region *region, uintptr_t start, size_t bytes) {
    size_t step = small_step(bytes);
    region->lane.cursor = start + step;
    *small_entry(region->window, start) = (uint16_t)(bytes + 1);
    region->lane.tally += (uint64_t)bytes << 16 | 1;
    if (!region->hollow)
        poison_opened(start, bytes);
    return (void *)start;
}

/* Asks the budgets before pages are taken for a block that they would refuse. */
static bool is_affordable(struct region *region, size_t step) {
    if (count_charge(region, step) != 0)
        return false;
    count_uncharge(region, step);
    return true;
}

/* The cursor comes to `start`, and what it passes is padding that is not charged. */
static void pass_padding(struct region *region, uintptr_t start) {
    size_t bytes = start - region->lane.cursor;
    small_fold(region);
    region->window->window.live += bytes;
    region->padding += bytes;
    region->lane.cursor = region->folded = start;
}

void *small_alloc(struct region *region, size_t bytes, size_t align) {
    size_t step = small_step(bytes), slack = align > RANGE_GRANULE ? align - RANGE_GRANULE : 0;
    if (region->metered)
        remote_look(region); /* what others released must not be in the way of a limit */
    uintptr_t start = size_align(region->lane.cursor, align);
    if (start + step > region->limit) {
        if (region->metered && !is_affordable(region, step))
            return NULL;
        if (!refill(region, step + slack))
            return NULL;
        start = size_align(region->lane.cursor, align);
    }
    if (region->metered) {
        if (count_charge(region, step) != 0)
            return NULL;
        pass_padding(region, start);
    }
    return bump(region, start, bytes);
}

/* A block is about to leave, so as much may come before a counter passes its peak. */
static void expect_room(struct region *region, uintptr_t addr, size_t bytes) {
    if (region->calm_blocks < UINT16_MAX)
        region->calm_blocks++;
    if (region->calm && !small_is_top(region, addr, addr + small_step(bytes)))
        region->calm += bytes;
}

int small_leave_top(struct region *region, struct ebb_piece *window, uintptr_t addr,
                    uint16_t *entry) {
    size_t bytes = small_entry_bytes(*entry), step = small_step(bytes);
    small_count_out(region, window, bytes, step);
    if (addr >= region->room) {
        *entry = 0;
        region->lane.cursor = region->folded = addr;
        region->calm -= size_smaller(region->calm, step - bytes); /* what comes may have less */
    } else {
        *entry |= STARTS_RELEASED; /* it ends where the room begins */
    }
    return small_look_after(region, window);
}

/* The same where more must be seen to than the counters. */
static __attribute__((noinline)) int release_closely(struct region *region,
                                                     struct ebb_piece *window, uintptr_t addr,
                                                     uint16_t *entry) {
    size_t bytes = small_entry_bytes(*entry), step = small_step(bytes);
    small_fold(region);
    expect_room(region, addr, bytes);
    count_uncharge(region, step);
    region_poison(region, addr, step);
    return small_leave(region, window, addr, entry, bytes, step);
}

int small_release_noting(struct region *region, struct ebb_piece *window, uintptr_t addr,
                         uint16_t *entry) {
    if (region->track || is_watched(region))
        return release_closely(region, window, addr, entry);
    size_t bytes = (size_t)*entry - 1, blocks;
    small_count_in(region, &blocks);
    note_peaks(region, false);
    expect_room(region, addr, bytes);
    return small_leave(region, window, addr, entry, bytes, small_step(bytes));
}

int small_settle(struct region *region, struct ebb_piece *window) {
    if (window == region->window || window->pins)
        return 0; /* refill() begins an empty window again when its room is used up */
    if (small_live_blocks(window) > 0) {
        if (!window->flag)
            holes_enter(region, window);
    } else if (!region->spare) {
        small_drop_padding(region, window, small_live_bytes(window));
        holes_leave(region, window);
        region->spare = window;
    } else {
        give_window(region, window);
    }
    return 0;
}

int small_no_block(const struct region *region, const struct ebb_piece *window, uintptr_t addr) {
    bool room = window == region->window && addr >= region->lane.cursor && addr < region->limit;
    uint16_t entry = *small_entry(window, addr);
    if (addr % RANGE_GRANULE == 0 && (room || entry & STARTS_RELEASED))
        return error_set(EBB_E_RELEASED, "block %p of region '%s' was released before",
                         (void *)addr, region->name);
    return error_set(EBB_E_INTERIOR, "%p is inside region '%s' but starts no block", (void *)addr,
                     region->name);
}

/* The entry of the live block at `addr`, or NULL with an error. Room has no entries. */
static uint16_t *live_entry(const struct region *region, const struct ebb_piece *window,
                            uintptr_t addr) {
    uint16_t *entry = small_entry(window, addr);
    if (small_is_live(entry, addr))
        return entry;
    small_no_block(region, window, addr);
    return NULL;
}

/* A block changes its size, and with it its padding, by less than a granule: that much more may
 * have come than the cursor tells. */
static void expect_padding(struct region *region) {
    region->calm -= size_smaller(region->calm, RANGE_GRANULE);
}

/* Grows or shrinks the last block of the room by moving the cursor. */
static int move_top(struct region *region, struct ebb_piece *window, uintptr_t addr, size_t old,
                    size_t bytes) {
    size_t step = small_step(bytes), old_step = small_step(old);
    if (step > region->limit - addr)
        return error_set(EBB_E_NO_ROOM, "block %p: %zu bytes asked, %zu are free behind it",
                         (void *)addr, bytes, (size_t)(region->limit - addr));
    if (step > old_step && region->metered && count_charge(region, step - old_step) != 0)
        return error_latest();
    if (step < old_step)
        count_uncharge(region, old_step - step);
    expect_padding(region);
    region->lane.cursor = region->folded = addr + step;
    flow_change(&region->requested, old, bytes);
    flow_change(&region->used, old_step, step);
    window->window.live += step - old_step;
    return 0;
}

/* A block inside the room gets smaller: its end becomes a released entry. */
static void shrink_inner(struct region *region, struct ebb_piece *window, uintptr_t addr,
                         size_t old, size_t bytes) {
    size_t step = small_step(bytes), rest = small_step(old) - step;
    expect_padding(region);
    flow_change(&region->requested, old, bytes);
    if (!rest)
        return;
    flow_leave(&region->used, rest);
    window->window.live -= rest;
    count_uncharge(region, rest);
    *small_entry(window, addr + step) = (uint16_t)(STARTS_RELEASED | (rest + 1));
}

int small_resize(struct region *region, struct ebb_piece *window, uintptr_t addr, size_t bytes) {
    uint16_t *entry = live_entry(region, window, addr);
    if (!entry)
        return error_latest();
    size_t old = small_entry_bytes(*entry), old_step = small_step(old), step = small_step(bytes);
    bool top = small_is_top(region, addr, addr + old_step);
    if (bytes > SMALL_MOST)
        return error_set(EBB_E_NO_ROOM, "block %p of the small lane cannot grow to %zu bytes",
                         (void *)addr, bytes);
    if (step > old_step && !top)
        return error_set(EBB_E_NO_ROOM, "block %p is not the last one: %zu bytes stay %zu",
                         (void *)addr, bytes, old);
    small_fold(region);
    if (top) {
        int result = move_top(region, window, addr, old, bytes);
        if (result)
            return result;
    } else {
        shrink_inner(region, window, addr, old, bytes);
    }
    *entry = (uint16_t)(bytes + 1);
    if (!region->hollow) {
        poison_unused(addr, old_step);
        poison_opened(addr, bytes);
    }
    return 0;
}

int small_find(struct region *region, const struct ebb_piece *window, uintptr_t addr,
               size_t *requested) {
    const uint16_t *entry = live_entry(region, window, addr);
    if (!entry)
        return error_latest();
    *requested = small_entry_bytes(*entry);
    return 0;
}

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
    small_drop_padding(region, region->window, padding);
    set_room(region, region->window, cursor, region->limit);
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
        leave_window(region);
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
        small_drop_padding(ending->region, ending->window, RANGE_GRANULE);
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
        leave_window(region);
    while (region->windows != kept) {
        struct ebb_piece *window = region->windows;
        if (window != region->spare)
            end_blocks(region, window, window->addr);
        give_window(region, window);
    }
    if (!kept || mark->mark.cursor == piece_end(kept))
        return;
    end_blocks(region, kept, mark->mark.cursor);
    holes_leave(region, kept);
    clear_entries(kept, mark->mark.cursor, used_end(region, kept)); /* behind, they are clear */
    go_to_room(region, kept, mark->mark.cursor, piece_end(kept));
}

/* ---- forgetting ---- */

void small_forget(struct region *region) {
    small_fold(region);
    region->windows = NULL;
    region->padding = 0;
    region->holes = region->spare = NULL;
    starts_forget_all(&region->starts);
    no_room(region);
}
