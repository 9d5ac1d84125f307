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

/* The next hole of at least `least` bytes at or behind granule `scanned`. */
static bool next_hole(const struct ebb_piece *window, size_t least, struct hole *hole) {
    uintptr_t at = window->addr + window->window.scanned * RANGE_GRANULE;
    uintptr_t end = piece_end(window);
    *hole = (struct hole){at, at, 0};
    while (at < end) {
        uint16_t entry = *small_entry(window, at);
        size_t step = entry ? small_step(small_entry_bytes(entry)) : RANGE_GRANULE;
        if (entry && !(entry & STARTS_RELEASED)) {
            if (hole->to - hole->from >= least)
                return true;
            *hole = (struct hole){at + step, at + step, 0};
        } else {
            hole->to += step;
            hole->padding += entry ? 0 : RANGE_GRANULE;
        }
        at += step;
    }
    return hole->to - hole->from >= least;
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
