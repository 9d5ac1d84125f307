// SPDX-License-Identifier: Apache-2.0
/*
 * tables.h - what holds of a track's tables between two steps, whatever these did (region/due.c).
 */
#ifndef KIT_TABLES_H
#define KIT_TABLES_H

#include "kit/test.h"

#include "region/track.h"

enum { SPAN_BYTES = 64 }; /* of a struct due_span */

static inline struct track *track_of(ebb_step step) {
    return ((struct region *)step.region.lane)->track;
}

/* Tables may be those of where the arena was before. */
static inline uintptr_t addr_in_tables(const struct track *track, uint32_t id) {
    return track->slots[id].addr - track->base + track->due.base;
}

static inline void assert_block_is_due(const struct track *track, uint32_t id) {
    const struct track_slot *slot = &track->slots[id];
    const struct ebb_due *event = &track->due.events[track->due.blocks[id]];
    bool is_birth = (slot->align & TRACK_TENURED) != 0;
    if (!slot->room) {
        assert_int_equal(event->request, is_birth ? DUE_BIRTH : due_nothing.request);
        assert_int_equal(event->addr, is_birth ? id : 0);
        return;
    }
    uint32_t bytes = (uint32_t)event->request;
    assert_int_equal(event->request >> 32, slot->align & (TRACK_LISTED - 1));
    assert_int_equal(event->addr, addr_in_tables(track, id));
    assert_true(bytes <= slot->room);
    assert_true(!track->due.sizes_right || bytes == slot->bytes);
}

/* The event at this place of the order; behind it. */
static inline uint32_t assert_release_is_due(const struct track *track, uint32_t event,
                                             uint32_t slots, uint32_t passed) {
    uint32_t id = track->plan->order[passed];
    if (!track->slots[id].room) /* a guest's */
        return event;
    assert_true(id < slots);
    assert_int_equal(track->due.events[event].addr, addr_in_tables(track, id));
    assert_int_equal(track->due.events[event].request, 0);
    assert_int_equal(track->due.releases[event - slots], passed);
    return event + 1;
}

/* Events are in the order of the plan, allocations of slots and releases of those with a place. */
static inline void assert_events_are_due(const struct track *track) {
    const struct plan *plan = track->plan;
    uint32_t event = 0, passed = 0;
    for (uint32_t i = 0; i <= plan->slot_count; i++) {
        uint32_t before = i < plan->slot_count ? plan->slots[i].passed : plan->order_count;
        for (; passed < before; passed++)
            event = assert_release_is_due(track, event, i, passed);
        if (i == plan->slot_count)
            break;
        assert_int_equal(track->due.blocks[i], event++);
        assert_block_is_due(track, i);
    }
    assert_int_equal(event, track->due.event_count);
    assert_int_equal(track->due.releases[event - plan->slot_count], plan->order_count);
    assert_int_equal(track->due.events[event].request, due_nothing.request);
}

static inline size_t bytes_of_tables(const struct due *due) {
    return (due->event_count + 1) * (sizeof *due->events + sizeof *due->blocks) +
           due->stops_most * SPAN_BYTES;
}

static inline void assert_tables_hold(const struct track *track) {
    const struct due *due = &track->due;
    assert_true(!track->region && !due->on && !due->tried && !due->unmarked);
    if (!due->events)
        return;
    assert_ptr_equal(due->spans, due->events + due->event_count + 1);
    assert_ptr_equal(due->blocks, (char *)due->spans + due->stops_most * SPAN_BYTES);
    assert_ptr_equal(due->releases, due->blocks + track->plan->slot_count);
    assert_true(due->stops <= due->stops_most && due->span_count <= due->stops_most);
    assert_events_are_due(track);
    assert_true(bytes_of_tables(due) <= track->plan->height_bytes / 8);
    assert_true(bytes_of_tables(due) <= stats_of(due->memory).requested.current);
}

#endif
