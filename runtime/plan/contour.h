// SPDX-License-Identifier: Apache-2.0
/*
 * contour.h - how high memory is used at each time: a row of segments of equal height.
 *
 *     height          +---+
 *        +-----+      |   |          segments[start] is the segment that begins there; so a
 *        |     +------+   +---+      segment needs no memory of its own. A heap knows the lowest.
 *        0     3      7   9   12 = width, where a wall stands on both sides
 *
 * Neighbours differ in height.
 */
#ifndef EBB_PLAN_CONTOUR_H
#define EBB_PLAN_CONTOUR_H

#include <stdint.h>

struct segment {
    uint64_t height;
    uint32_t next, prev; /* where its neighbours begin; it ends at next */
    uint32_t place;      /* in the heap */
};

struct low {
    uint64_t height;
    uint32_t start;
};

struct contour {
    struct segment *segments; /* width + 1 */
    struct low *heap;         /* width */
    uint32_t heap_count;
    uint32_t width;
};

/* Flat, at height 0. */
void contour_clear(struct contour *contour);

/* Where the lowest segment begins. */
static inline uint32_t contour_lowest(const struct contour *contour) {
    return contour->heap[0].start;
}

/* The part from `first` to `end` of the lowest segment rises to `height`, which is more. */
void contour_put(struct contour *contour, uint32_t first, uint32_t end, uint64_t height);

/* The lowest segment, which is not all there is, rises to its lower neighbour. */
void contour_raise(struct contour *contour);

#endif
