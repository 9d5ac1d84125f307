// SPDX-License-Identifier: Apache-2.0
/*
 * tables.h - what holds of a track's tables between two steps, whatever these did (region/due.c).
 */
#ifndef KIT_TABLES_H
#define KIT_TABLES_H

#include "kit/test.h"

#include "region/track.h"

enum { SPAN_BYTES = 56 }; /* of a struct due_span */

static inline struct track *track_of(ebb_step step) {
    return ((struct region *)step.region.lane)->track;
}

/* Tables may be those of where the arena was before. */
static inline uintptr_t addr_in_tables(const struct track *track, uint32_t id) {
    return track->slots[id].addr - track->base + track->due.base;
}

static inline void assert_block_is_due(const struct track *track, uint32_t id) {
    const struct track_slot *slot = &track->slots[id];
    const struct ebb_due_block *block = &track->due.blocks[id];
    assert_int_equal(block->align, slot->room ? slot->align & (TRACK_LISTED - 1) : 0);
    if (!slot->room)
        return;
    assert_int_equal(block->addr, addr_in_tables(track, id));
    assert_true(block->bytes <= slot->room);
    assert_true(!track->due.sizes_right || block->bytes == slot->bytes);
}

static inline void assert_release_is_due(const struct track *track, uint32_t passed) {
    const struct ebb_due_release *release = &track->due.releases[passed];
    uint32_t id = track->plan->order[passed];
    bool guest = !track->slots[id].room;
    assert_int_equal(release->addr, guest ? (uintptr_t)release : addr_in_tables(track, id));
    uint32_t before = (uint32_t)(release->before - track->due.blocks);
    assert_true(before > id && before <= track->plan->slot_count);
    assert_true(track->plan->slots[before - 1].passed <= passed);
    assert_true(before == track->plan->slot_count || track->plan->slots[before].passed > passed);
}

static inline size_t bytes_of_tables(const struct due *due) {
    return (size_t)((char *)due->spans - (char *)due->blocks) + due->stops_most * SPAN_BYTES;
}

static inline void assert_tables_hold(const struct track *track) {
    const struct due *due = &track->due;
    assert_true(!track->region && !due->on && !due->tried && !due->unmarked);
    if (!due->blocks)
        return;
    uint32_t blocks = track->plan->slot_count, releases = track->plan->order_count;
    assert_ptr_equal(due->releases, due->blocks + blocks + 1);
    assert_ptr_equal(due->spans, due->releases + releases + 1);
    assert_true(due->stops <= due->stops_most && due->span_count <= due->stops_most);
    for (uint32_t i = 0; i < blocks; i++)
        assert_block_is_due(track, i);
    for (uint32_t i = 0; i < releases; i++)
        assert_release_is_due(track, i);
    assert_int_equal(due->blocks[blocks].align, 0);
    assert_null(due->releases[releases].before);
    assert_true(bytes_of_tables(due) <= track->plan->height_bytes / 8);
    assert_true(bytes_of_tables(due) <= stats_of(due->memory).requested.current);
}

#endif
