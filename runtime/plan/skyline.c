// SPDX-License-Identifier: Apache-2.0
/*
 * skyline.c - lowest place first, largest key that fits (see skyline.h).
 *
 * Take the lowest segment of the contour, at whose ends higher ones stand. A tile fits if it lives
 * within the segment. The best one is put there, and the segment is split; if there is none, the
 * segment rises to its lower neighbour, and what is below is lost. So a tile never lies over a
 * hole that it could have filled when it was laid.
 *
 * Invariant: no laid tile ends above the contour at any time of its life, and no tile is laid
 * below it. Heights stay at or below the limit, so nothing here overflows.
 */
#include "plan/skyline.h"

#include "base/size.h"

enum { TILES_A_LOOK = 1024 };

static void start(struct skyline *skyline, const uint32_t *keys, uint32_t *left) {
    struct candidate *leaves = skyline->candidates.nodes + skyline->count;
    *left = 0;
    for (uint32_t i = 0; i < skyline->count; i++) {
        leaves[i] = (struct candidate){keys[i], keys[i] ? skyline->tiles[i].end : CANDIDATE_NONE};
        skyline->offsets[i] = 0;
        *left += keys[i] != 0;
    }
    candidates_build(&skyline->candidates);
    contour_clear(&skyline->contour);
}

/* Lays the tile on the lowest segment; its end, or UINT64_MAX if that is above the limit. */
static uint64_t lay(struct skyline *skyline, uint32_t index, uint64_t floor, uint64_t limit) {
    const struct tile *tile = &skyline->tiles[index];
    uint64_t offset = size_align(floor, tile->align);
    if (offset > limit || tile->bytes > limit - offset)
        return UINT64_MAX;
    skyline->offsets[index] = offset;
    candidates_remove(&skyline->candidates, index);
    contour_put(&skyline->contour, tile->first, tile->end, offset + tile->bytes);
    return offset + tile->bytes;
}

/* A look at the clock takes as long as laying a tile. */
static bool is_time_up(const struct skyline *skyline, uint32_t left) {
    return skyline->clock_ns && left > 0 && left % TILES_A_LOOK == 0 &&
           skyline->clock_ns() >= skyline->until_ns;
}

bool skyline_lay(struct skyline *skyline, const uint32_t *keys, uint64_t limit,
                 uint64_t *height) {
    const struct segment *segments = skyline->contour.segments;
    uint32_t left;
    *height = 0;
    start(skyline, keys, &left);
    while (left > 0) {
        uint32_t first = contour_lowest(&skyline->contour);
        uint32_t index = candidates_find(&skyline->candidates, first, segments[first].next);
        if (index == CANDIDATE_NONE) {
            contour_raise(&skyline->contour);
            continue;
        }
        uint64_t end = lay(skyline, index, segments[first].height, limit);
        if (end == UINT64_MAX)
            return false;
        *height = end > *height ? end : *height;
        if (is_time_up(skyline, --left))
            return false;
    }
    return true;
}
