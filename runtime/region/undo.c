// SPDX-License-Identifier: Apache-2.0
/*
 * undo.c - a call that takes several blocks and fails at the last leaves no trace.
 *
 * Who takes them remembers the counters first, releases what it got, and restores them. Pages that
 * the region grew by stay. Padding in front of small blocks is taken back with the room; in rooms
 * that were left since it is found behind the blocks, and counts no more than before:
 *
 *     window   | live | padding | released | padding | live |
 *                       free                 of the live block
 *
 * Looking for room takes in what other threads have released. That stays released: it leaves the
 * counters once more, and the room, of which it may have been a part, stays as it is.
 */
#include "region/undo.h"
#include "region/small.h"

static inline void remember(struct region *region, struct undo_part *part) {
    const struct track *track = region->track;
    small_fold(region);
    *part = (struct undo_part){.counted = region->counted,
                               .requested = region->requested,
                               .used = region->used,
                               .large_blocks = region->large_blocks,
                               .large_used = region->large_used,
                               .padding = region->padding,
                               .drained = region->drained,
                               .drained_large = region->drained_large,
                               .rooms = region->rooms,
                               .cursor = region->lane.cursor};
    if (track) {
        part->seen = track->seen;
        part->drained_born = track->drained;
    }
}

/* What the plan served, or did not, has gone again, and what was born for it, too. */
static void restore_seen(struct track *track, const struct undo_part *undo) {
    struct track_seen *seen = &track->seen;
    seen->hits = undo->seen.hits;
    seen->hit_bytes = undo->seen.hit_bytes;
    seen->missed = undo->seen.missed;
    seen->missed_bytes = undo->seen.missed_bytes;
    seen->guests = undo->seen.guests;
    seen->guest_bytes = undo->seen.guest_bytes;
    seen->turned_away_bytes = undo->seen.turned_away_bytes;
    seen->tenured_wrong =
        undo->seen.tenured_wrong + (track->drained.blocks - undo->drained_born.blocks);
    seen->tenured_wrong_bytes =
        undo->seen.tenured_wrong_bytes + (track->drained.bytes - undo->drained_born.bytes);
}

/* Padding in a window, as far as it is in one piece. */
struct stretch {
    struct region *region;
    struct ebb_piece *window;
    uintptr_t from, to;
    size_t excess; /* of padding: so much may go */
};

/* It is in front of no live block: released granules from here on. */
static void free_stretch(struct stretch *stretch) {
    for (; stretch->from < stretch->to && stretch->excess; stretch->from += RANGE_GRANULE) {
        *small_entry(stretch->window, stretch->from) = STARTS_RELEASED | (RANGE_GRANULE + 1);
        windows_drop_padding(stretch->region, stretch->window, RANGE_GRANULE);
        stretch->excess -= RANGE_GRANULE;
    }
}

static void visit(void *context, uintptr_t addr, size_t bytes, bool block) {
    struct stretch *stretch = context;
    (void)bytes;
    if (addr != stretch->to)
        free_stretch(stretch);
    if (addr != stretch->to || block)
        stretch->from = addr;
    stretch->to = block ? addr : addr + RANGE_GRANULE;
}

/* More is taken than was before, and all of that is padding of blocks that are gone. */
static void drop_excess(struct region *region, uint64_t before) {
    uint64_t now = flow_now(&region->used) + region->padding;
    struct stretch stretch = {.region = region, .excess = now > before ? now - before : 0};
    for (struct ebb_piece *window = region->windows; window && stretch.excess;
         window = window->next) {
        stretch.window = window;
        stretch.from = stretch.to = 0;
        small_each_live(region, window, visit, &stretch);
        free_stretch(&stretch);
    }
}

static void restore(struct region *region, const struct undo_part *undo) {
    struct popped drained = {region->drained.blocks - undo->drained.blocks,
                             region->drained.requested - undo->drained.requested,
                             region->drained.used - undo->drained.used};
    if (drained.blocks)
        small_fold(region);
    else
        small_take_back(region, undo->rooms, undo->cursor);
    if (region->track)
        restore_seen(region->track, undo);
    drop_excess(region, flow_now(&undo->used) + undo->padding - drained.used);
    uint64_t used = flow_now(&region->used);
    region->calm = 0;
    region->counted = undo->counted;
    region->requested = undo->requested;
    region->used = undo->used;
    flow_leave(&region->counted, drained.blocks);
    flow_leave(&region->requested, drained.requested);
    flow_leave(&region->used, drained.used);
    flow_change(&region->used, flow_now(&region->used), used);
    region->large_blocks = undo->large_blocks;
    region->large_used = undo->large_used - (region->drained_large - undo->drained_large);
}

void undo_remember(struct region *region, struct undo *undo) {
    remember(region, &undo->pages);
    undo->had_safe = region->safe != NULL;
    if (undo->had_safe)
        remember(region->safe, &undo->safe);
}

static void set_undoing(const struct region *region, bool undoing) {
    if (region->shared) /* the pool is of one thread, then */
        region->pool->pages.undoing = undoing;
}

void undo_begin(const struct region *region) {
    set_undoing(region, true);
}

void undo_restore(struct region *region, const struct undo *undo) {
    static const struct undo_part nothing;
    set_undoing(region, false);
    restore(region, &undo->pages);
    if (region->safe)
        restore(region->safe, undo->had_safe ? &undo->safe : &nothing);
}
