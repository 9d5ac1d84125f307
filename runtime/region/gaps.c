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
 * Invariant: nothing is changed. Runs that hold a relinked survivor have no gaps.
 */
#include "base/size.h"
#include "region/region.h"
#include "region/track.h"

struct walk {
    region_gap *visit;
    void *context;
};

/* The whole pages of it. False: that is enough. */
static bool visit_between(const struct walk *walk, uintptr_t from, uintptr_t to) {
    from = size_align(from, EBB_PAGE);
    to = size_align_down(to, EBB_PAGE);
    return from >= to || walk->visit(walk->context, from, to);
}

static bool is_gap(const struct ebb_piece *piece) {
    return piece->state == PIECE_FREE || piece->state == PIECE_TOP || piece->state == PIECE_LOOSE;
}

static bool walk_run(const struct walk *walk, const struct ebb_piece *run) {
    for (const struct ebb_piece *piece = run->run.first; piece != run->run.end;
         piece = piece->after)
        if (is_gap(piece) && !visit_between(walk, piece->addr, piece_end(piece)))
            return false;
    return true;
}

static bool walk_arena(const struct walk *walk, const struct track *track) {
    const struct plan *plan = track->plan;
    uintptr_t from = track->arena->addr;
    for (uint32_t at = 0; at < plan->placed_count; at++) {
        const struct track_slot *slot = &track->slots[plan->places[at].slot];
        if (!track_is_live(track, slot))
            continue;
        if (!visit_between(walk, from, slot->addr))
            return false;
        from = slot->addr + slot->room;
    }
    return visit_between(walk, from, piece_end(track->arena));
}

bool region_each_gap(const struct region *region, region_gap *visit, void *context) {
    const struct walk walk = {visit, context};
    const struct track *track = region->track;
    const struct ebb_piece *arena = track ? track->arena : NULL;
    for (const struct ebb_piece *run = region->runs; run; run = run->next) {
        bool is_arena = arena && piece_covers(run, arena->addr);
        if (run->flag)
            continue;
        if (!(is_arena ? walk_arena(&walk, track) : walk_run(&walk, run)))
            return false;
    }
    return true;
}
