// SPDX-License-Identifier: Apache-2.0
/*
 * contour.c - segments in a row and in a heap (see contour.h).
 *
 * Invariant: heap[segments[s].place].start == s for each segment s of the row, and no entry of
 * the heap is lower than its parent. Among equals any may be the lowest, the same in every run.
 */
#include "plan/contour.h"

/* ---- the heap */

static void set(struct contour *contour, uint32_t place, struct low low) {
    contour->heap[place] = low;
    contour->segments[low.start].place = place;
}

static void move_up(struct contour *contour, uint32_t place, struct low low) {
    while (place > 0 && low.height < contour->heap[(place - 1) / 2].height) {
        set(contour, place, contour->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    set(contour, place, low);
}

static void move_down(struct contour *contour, uint32_t place, struct low low) {
    const struct low *heap = contour->heap;
    for (uint32_t child; (child = 2 * place + 1) < contour->heap_count; place = child) {
        if (child + 1 < contour->heap_count && heap[child + 1].height < heap[child].height)
            child++;
        if (low.height <= heap[child].height)
            break;
        set(contour, place, heap[child]);
    }
    set(contour, place, low);
}

static void take_out(struct contour *contour, uint32_t place) {
    struct low last = contour->heap[--contour->heap_count];
    if (place == contour->heap_count)
        return;
    if (last.height < contour->heap[place].height)
        move_up(contour, place, last);
    else
        move_down(contour, place, last);
}

/* ---- the row */

void contour_clear(struct contour *contour) {
    uint32_t width = contour->width;
    contour->segments[width] = (struct segment){.height = UINT64_MAX};
    contour->segments[0] = (struct segment){.next = width, .prev = width};
    contour->heap_count = 1;
    contour->heap[0] = (struct low){0, 0};
}

static void insert_after(struct contour *contour, uint32_t prev, uint32_t start, uint64_t height) {
    struct segment *segments = contour->segments;
    uint32_t next = segments[prev].next;
    segments[start] = (struct segment){.height = height, .next = next, .prev = prev};
    segments[prev].next = segments[next].prev = start;
    move_up(contour, contour->heap_count++, (struct low){height, start});
}

/* The segment becomes part of the one before it. */
static void join_prev(struct contour *contour, uint32_t start) {
    struct segment *segments = contour->segments, *segment = &segments[start];
    segments[segment->prev].next = segment->next;
    segments[segment->next].prev = segment->prev;
    take_out(contour, segment->place);
}

/* The lowest segment, as it is before its neighbours are looked at, gets another height. */
static void lift(struct contour *contour, uint32_t start, uint64_t height) {
    struct segment *segments = contour->segments, *segment = &segments[start];
    segment->height = height;
    if (segments[segment->next].height == height)
        join_prev(contour, segment->next);
    if (segments[segment->prev].height == height)
        join_prev(contour, start);
    else
        move_down(contour, 0, (struct low){height, start});
}

void contour_put(struct contour *contour, uint32_t first, uint32_t end, uint64_t height) {
    struct segment *segments = contour->segments;
    uint32_t start = contour_lowest(contour);
    uint64_t floor = segments[start].height;
    if (end < segments[start].next)
        insert_after(contour, start, end, floor);
    if (first == start) {
        lift(contour, start, height);
        return;
    }
    uint32_t next = segments[start].next;
    if (segments[next].height == height)
        join_prev(contour, next);
    insert_after(contour, start, first, height);
}

void contour_raise(struct contour *contour) {
    const struct segment *segments = contour->segments;
    uint32_t start = contour_lowest(contour);
    uint64_t prev = segments[segments[start].prev].height;
    uint64_t next = segments[segments[start].next].height;
    lift(contour, start, prev < next ? prev : next);
}
