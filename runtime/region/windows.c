// SPDX-License-Identifier: Apache-2.0
/*
 * windows.c - windows and the room in them (see windows.h).
 *
 * Invariant: from the start of a window to the cursor (to its end, if it is not the current one)
 * entries of the start map tile the granules: a live block, a released one, or a granule of
 * padding, which is 0.
 */
#include "region/windows.h"
#include "base/check.h"
#include "base/error.h"
#include "region/holes.h"
#include "region/large.h"
#include "region/remote.h"
#include "region/small.h"

#include <string.h>

#ifndef WINDOW_MOST
#define WINDOW_MOST ((size_t)131072)
#endif
#define FILLER_MOST ((size_t)32768 - 2 * RANGE_GRANULE) /* fits 15 bits */

/* ---- where the cursor is ---- */

void windows_set_inline(struct region *region) {
    bool shut = small_is_watched(region) || region->sealed;
    shut |= region->shared; /* what is quickly made is an object: its head is not for others */
    region->lane.limit = shut ? 0 : region->limit;
}

/* The cursor goes elsewhere. It may come as far there before the peaks must be looked at. */
static void move_cursor(struct region *region, uintptr_t to) {
    uintptr_t cursor = region->lane.cursor, calm = region->calm;
    region->calm = calm > cursor ? to + (calm - cursor) : 0;
    region->lane.cursor = region->folded = region->room = to;
    region->rooms++;
}

void windows_clear(const struct ebb_piece *window, uintptr_t from, uintptr_t to) {
    memset(small_entry(window, from), 0, (to - from) / RANGE_GRANULE * sizeof(uint16_t));
}

void windows_go_to(struct region *region, struct ebb_piece *window, uintptr_t from, uintptr_t to) {
    region->lane.start_map = (uintptr_t)starts_entries(window->window.map) - window->addr / 8;
    region->window = window;
    move_cursor(region, from);
    region->limit = to;
    window->window.act_blocks = 0;
    windows_set_inline(region);
}

void windows_set_room(struct region *region, struct ebb_piece *window, uintptr_t from,
                      uintptr_t to) {
    windows_clear(window, from, to);
    windows_go_to(region, window, from, to);
}

static void no_room(struct region *region) {
    region->window = NULL;
    move_cursor(region, 0);
    region->limit = region->lane.limit = 0;
}

/* ---- leaving and giving back ---- */

void windows_drop_padding(struct region *region, struct ebb_piece *window, size_t bytes) {
    if (!bytes)
        return;
    window->window.live -= bytes;
    if (region->metered)
        region->padding -= bytes;
    else
        flow_leave(&region->used, bytes);
}

void windows_give(struct region *region, struct ebb_piece *window) {
    if (region->spare == window)
        region->spare = NULL;
    windows_drop_padding(region, window, small_live_bytes(window));
    holes_leave(region, window);
    piece_unlink(&region->windows, window);
    starts_give(&region->starts, window->window.map, window->bytes);
    large_free(region, window);
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

/* What remains of the room becomes a released entry. */
void windows_leave(struct region *region) {
    struct ebb_piece *window = region->window;
    CHECK(region->folded == region->lane.cursor);
    if (!window)
        return;
    uintptr_t rest = region->limit - region->lane.cursor;
    uintptr_t cursor = region->lane.cursor;
    no_room(region);
    write_filler(window, cursor, rest);
    if (small_live_blocks(window) == 0 && !window->pins)
        windows_give(region, window);
    else if (!window->flag && window->bytes - small_live_bytes(window) - rest >= window->bytes / 2)
        holes_enter(region, window);
    else if (!window->flag)
        holes_await(window);
}

int windows_settle(struct region *region, struct ebb_piece *window) {
    if (window == region->window || window->pins)
        return 0; /* windows_refill() begins an empty window again when its room is used up */
    if (small_live_blocks(window) > 0) {
        if (!window->flag)
            holes_enter(region, window);
    } else if (!region->spare) {
        windows_drop_padding(region, window, small_live_bytes(window));
        holes_leave(region, window);
        region->spare = window;
    } else {
        windows_give(region, window);
    }
    return 0;
}

/* ---- new ones ---- */

/* Windows are an eighth of what lives in the lane, so that an unused one wastes little. Padding is
 * part of that in all regions: what was measured for one holds for all. */
static size_t window_bytes(const struct region *region) {
    size_t bytes = WINDOWS_LEAST;
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
    if (bytes > WINDOWS_LEAST) {
        error_mute();
        window = place_window_of(region, bytes);
        error_unmute();
    }
    return window ? window : place_window_of(region, WINDOWS_LEAST);
}

static void open_window(struct region *region, struct ebb_piece *window) {
    window->state = PIECE_WINDOW;
    window->pins = 0;
    window->flag = false;
    piece_push(&region->windows, window);
    range_name_window(window);
    if (!region->hollow)
        poison_unused(window->addr, window->bytes);
    windows_set_room(region, window, window->addr, piece_end(window));
}

/* ---- room ---- */

static void adopt(struct region *region, struct ebb_piece *window, const struct hole *hole) {
    windows_drop_padding(region, window, hole->padding);
    window->window.scanned = (uint16_t)((hole->to - window->addr) / RANGE_GRANULE);
    windows_set_room(region, window, hole->from, hole->to);
}

/* All blocks of the current window are gone: begin again at its start. */
static bool restart(struct region *region) {
    struct ebb_piece *window = region->window;
    if (!window || window->pins || small_live_blocks(window) > 0)
        return false;
    windows_drop_padding(region, window, small_live_bytes(window));
    holes_leave(region, window);
    windows_set_room(region, window, window->addr, piece_end(window));
    return true;
}

/* The empty window that was kept becomes the current one. */
static bool use_spare(struct region *region) {
    struct ebb_piece *window = region->spare;
    if (!window)
        return false;
    region->spare = NULL;
    windows_leave(region);
    windows_set_room(region, window, window->addr, piece_end(window));
    return true;
}

/* While marks are set, blocks only go into new windows. The present room is left only when there is
 * another. */
bool windows_refill(struct region *region, size_t bytes) {
    struct hole hole;
    remote_look(region);
    small_fold(region);
    if (restart(region))
        return true;
    if (!region->marks && use_spare(region))
        return true;
    struct ebb_piece *window = region->marks ? NULL : holes_find(region, bytes, &hole);
    if (window) {
        windows_leave(region);
        adopt(region, window, &hole);
        return true;
    }
    window = place_window(region);
    if (!window)
        return false;
    windows_leave(region);
    open_window(region, window);
    return true;
}

void windows_forget(struct region *region) {
    small_fold(region);
    region->windows = NULL;
    region->padding = 0;
    region->holes = region->spare = NULL;
    starts_forget_all(&region->starts);
    no_room(region);
}
