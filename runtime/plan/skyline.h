// SPDX-License-Identifier: Apache-2.0
/*
 * skyline.h - one try at a plan: lays all buffers by a given order.
 *
 * Buffers become tiles, numbered by birth, and time becomes such a number too: t stands for how
 * many buffers were born before t. So the tiles that are born in a stretch of time are a range of
 * numbers, and the axis has no moment without a birth. Two tiles overlap in time exactly if their
 * buffers do.
 */
#ifndef EBB_PLAN_SKYLINE_H
#define EBB_PLAN_SKYLINE_H

#include "plan/candidates.h"
#include "plan/contour.h"
#include "plan/packing.h"

#include <stdbool.h>

struct tile {
    uint64_t bytes;
    uint32_t first, end; /* alive at first <= t < end; as many tiles are born before */
    uint32_t align;
    uint32_t index; /* of the buffer */
};

struct skyline {
    uint32_t count;
    uint32_t peak;                    /* when most bytes are alive: at the birth of this tile */
    struct tile *tiles;
    uint64_t *offsets;                /* of the tiles, by the last try; work space between two */
    struct candidates candidates;     /* work space of a try */
    struct contour contour;           /* the same */
    uint64_t (*clock_ns)(void);       /* looked at during a try; NULL: none is broken off */
    uint64_t until_ns;                /* the try is, when the clock says this */
};

/*
 * Lays the tiles: always in the lowest place, the tile with the largest key of those that fit
 * there. keys[i] is 0 exactly for tiles without bytes. False if a tile would end above `limit`, or
 * time is up.
 */
bool skyline_lay(struct skyline *skyline, const uint32_t *keys, uint64_t limit,
                 uint64_t *height);

#endif
