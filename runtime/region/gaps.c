// SPDX-License-Identifier: Apache-2.0
/*
 * gaps.c - the pages of a region that nothing lies in.
 *
 *     run      | block | free | window | top |        gaps: free, top
 *     arena    | live | ... | live | ... |            gaps: what lies between live slots
 *
 * The region keeps them, and may put something there at any time; whoever has it to himself for a
 * moment can give their memory back to the system meanwhile. Pieces that touch are seen as one
 * where they have been merged, so what was released last, and waits for another of its size, is a
 * gap of its own.
 *
 * Invariant: no block comes, goes or moves. But what a step along a table has not noted is noted
 * first (region_track()): else slots have no marks, and live ones look like gaps. Runs that hold a
 * relinked survivor have no gaps.
 */
#include "region/gaps.h"
#include "base/size.h"
#include "region/region.h"
#include "region/track.h"

#define LOOKS 64u /* at pieces or places, in one call */

/* The whole pages of it, if there are any. */
static void show(struct region_gap *gap, uintptr_t from, uintptr_t to) {
    from = size_align(from, EBB_PAGE);
    to = size_align_down(to, EBB_PAGE);
    if (from < to) {
        gap->from = from;
        gap->to = to;
    }
}

static bool is_gap(const struct ebb_piece *piece) {
    return piece->state == PIECE_FREE || piece->state == PIECE_TOP || piece->state == PIECE_LOOSE;
}

/* False: there was none left. */
static bool pass_piece(struct region_gap *gap) {
    const struct ebb_piece *piece = gap->piece;
    if (piece == gap->run->run.end)
        return false;
    if (is_gap(piece))
        show(gap, piece->addr, piece_end(piece));
    gap->piece = piece->after;
    return true;
}

/* The same of a place; the rest of the arena counts as one behind the last. */
static bool pass_place(const struct track *track, struct region_gap *gap) {
    const struct plan *plan = track->plan;
    uint32_t place = gap->place;
    if (place > plan->placed_count)
        return false;
    gap->place++;
    if (place == plan->placed_count) {
        show(gap, gap->passed, piece_end(track->arena));
        return true;
    }
    const struct track_slot *slot = &track->slots[plan->places[place].slot];
    if (track_is_live(track, slot)) {
        show(gap, gap->passed, slot->addr);
        gap->passed = slot->addr + slot->room;
    }
    return true;
}

static void enter(const struct region *region, struct region_gap *gap) {
    const struct track *track = region_track(region);
    const struct ebb_piece *arena = track ? track->arena : NULL;
    bool is_arena = arena && piece_covers(gap->run, arena->addr);
    gap->piece = is_arena ? NULL : gap->run->run.first;
    gap->place = 0;
    gap->passed = is_arena ? arena->addr : 0;
}

/* A piece of the run, or a place of the arena, has been seen. False: all have. */
static bool look(const struct region *region, struct region_gap *gap) {
    if (gap->run->flag)
        return false;
    return gap->piece ? pass_piece(gap) : pass_place(region_track(region), gap);
}

bool region_next_gap(struct region *region, struct region_gap *gap) {
    gap->from = gap->to = 0;
    if (!gap->run && (gap->run = region->runs))
        enter(region, gap);
    for (unsigned i = 0; i < LOOKS && gap->run && gap->from == gap->to; i++)
        if (!look(region, gap) && (gap->run = gap->run->next))
            enter(region, gap);
    return gap->run;
}

bool region_find_arena(const struct region *region, uintptr_t *addr, size_t *bytes) {
    const struct track *track = region->track;
    if (!track || !(track->arena || track->taken_over))
        return false;
    *addr = track->base;
    *bytes = track->span;
    return true;
}
