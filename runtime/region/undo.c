// SPDX-License-Identifier: Apache-2.0
/*
 * undo.c - a call that takes several blocks and fails at the last leaves no trace.
 *
 * Who takes them remembers the counters first, releases what it got, and restores them. Pages that
 * the region grew by stay, and so does padding in front of small blocks in rooms that were left.
 */
#include "region/undo.h"
#include "region/small.h"

struct undo undo_remember(struct region *region) {
    small_fold(region);
    return (struct undo){region->counted, region->requested, region->used,
                         region->large_blocks, region->large_used,
                         region->room,         region->lane.cursor};
}

void undo_restore(struct region *region, const struct undo *undo) {
    small_take_back(region, undo->room, undo->cursor);
    uint64_t used = flow_now(&region->used);
    region->calm = 0;
    region->counted = undo->counted;
    region->requested = undo->requested;
    region->used = undo->used;
    flow_change(&region->used, flow_now(&undo->used), used);
    region->large_blocks = undo->large_blocks;
    region->large_used = undo->large_used;
}
