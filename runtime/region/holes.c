// SPDX-License-Identifier: Apache-2.0
/*
 * holes.c - the search for holes (see holes.h).
 *
 * Invariant: a window is in the list exactly while its flag is set; granules before `scanned` were
 * looked at since it entered.
 */
#include "region/holes.h"
#include "region/small.h"

#ifndef HOLE_LEAST
#define HOLE_LEAST ((size_t)256)
#endif
#ifndef WINDOWS_LOOKED_AT
#define WINDOWS_LOOKED_AT 4 /* per slow call */
#endif

/* ---- the list ---- */

void holes_leave(struct region *region, struct ebb_piece *window) {
    if (!window->flag)
        return;
    struct ebb_piece *next = range_piece_or_null(window->window.hole_next);
    struct ebb_piece *prev = range_piece_or_null(window->window.hole_prev);
    if (prev)
        prev->window.hole_next = window->window.hole_next;
    else
        region->holes = next;
    if (next)
        next->window.hole_prev = window->window.hole_prev;
    window->flag = false;
}

void holes_enter(struct region *region, struct ebb_piece *window) {
    window->window.hole_prev = 0;
    window->window.hole_next = region->holes ? range_piece_name(region->holes) : 0;
    if (region->holes)
        region->holes->window.hole_prev = range_piece_name(window);
    region->holes = window;
    window->window.scanned = 0;
    window->window.act_blocks = 0;
    window->flag = true;
}

void holes_await(struct ebb_piece *window) {
    window->window.act_blocks = (uint16_t)(small_live_blocks(window) / 2);
}

/* ---- the search ---- */

/* The granules that a block or a released one takes, from its entry; padding takes one. */
static inline size_t granules_of(uint16_t entry) {
    unsigned said = entry & (STARTS_RELEASED - 1u);
    said = said < 2 ? 2 : said;
    return (said + RANGE_GRANULE - 2) / RANGE_GRANULE;
}

/* The next hole of at least `least` bytes at or behind granule `scanned`. Live blocks are the only
 * branch: what is between them is many times as much. */
static bool next_hole(const struct ebb_piece *window, size_t least, struct hole *hole) {
    const uint16_t *entries = starts_entries(window->window.map);
    const uint16_t *end = entries + window->bytes / RANGE_GRANULE;
    const uint16_t *at = entries + window->window.scanned, *from = at;
    size_t padding = 0, room;
    for (; at < end; at += granules_of(*at)) {
        if (small_says_live(*at)) {
            if ((size_t)(at - from) * RANGE_GRANULE >= least)
                break;
            from = at + granules_of(*at);
            padding = 0;
        }
        padding += !*at;
    }
    room = (size_t)(at - from) * RANGE_GRANULE;
    hole->from = window->addr + (size_t)(from - entries) * RANGE_GRANULE;
    hole->to = hole->from + room;
    hole->padding = padding * RANGE_GRANULE;
    return room >= least;
}

struct ebb_piece *holes_find(struct region *region, size_t bytes, struct hole *hole) {
    size_t least = size_larger(bytes, HOLE_LEAST);
    for (unsigned look = 0; region->holes && look < WINDOWS_LOOKED_AT; look++) {
        struct ebb_piece *window = region->holes;
        if (next_hole(window, least, hole))
            return window;
        holes_leave(region, window);
        holes_await(window);
    }
    return NULL;
}
