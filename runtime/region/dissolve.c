// SPDX-License-Identifier: Apache-2.0
/*
 * dissolve.c - a step ends with blocks in its arena that must outlive it where they are.
 *
 *     arena      |      L1 |   L2         |          |  L3   |     L: live
 *     after      | free |B1|   B2   | free           |B3| free     B: ordinary large blocks
 *
 * The arena, or the stretches that a takeover has left, becomes an ordinary run of the region:
 * what is live in it are large blocks like any others, which can be relinked. The next step takes
 * another arena. So this is for who must have it: ordinary promotion copies what a plan served, and
 * the arena stays whole.
 *
 * Invariant: as in large.c. Refuses, with nothing changed, if a slot is no large block (smaller
 * than 1 KiB or not in units), if bytes are held or blocks were born here for steps below, whose
 * notes are those of an arena, and without memory for entries.
 */
#include "base/check.h"
#include "region/large.h"
#include "region/runs.h"
#include "region/small.h"
#include "region/track.h"

static bool is_large(const struct track_slot *slot) {
    return slot->room >= RANGE_SLOT && slot->room % EBB_UNIT == 0 && slot->addr % EBB_UNIT == 0;
}

/* How many slots are live; UINT32_MAX if one of them cannot be a block of its own. */
static uint32_t count_live(const struct track *track) {
    uint32_t cursor = track_cursor(track), count = 0;
    for (uint32_t i = 0; i < cursor; i++) {
        if (!track_is_live(track, &track->slots[i]))
            continue;
        if (!is_large(&track->slots[i]))
            return UINT32_MAX;
        count++;
    }
    return count;
}

/* Cuts [piece->addr, at) off; what lies behind is returned. */
static struct ebb_piece *cut(struct region *region, struct ebb_piece *piece, uintptr_t at) {
    struct ebb_piece *rest = piece_take(&region->store);
    piece_split(piece, rest, at);
    rest->word = piece->word;
    return rest;
}

static void become_block(struct region *region, struct ebb_piece *piece, size_t requested) {
    piece->state = PIECE_BLOCK;
    piece->claimed = false;
    piece->block.requested = requested;
    piece->block.run = piece->block.spare = NULL;
    piece_push(&region->blocks, piece);
    range_name_block(piece);
}

/* The slot's bytes become a block; what lies before it in `rest` is free. The new rest, or NULL. */
static struct ebb_piece *take_out(struct region *region, struct ebb_piece *rest,
                                  struct track_slot *slot) {
    struct ebb_piece *gap = NULL;
    if (slot->addr > rest->addr) {
        gap = rest;
        rest = cut(region, gap, slot->addr);
    }
    struct ebb_piece *block = rest;
    rest = block->bytes > slot->room ? cut(region, block, slot->addr + slot->room) : NULL;
    become_block(region, block, slot->bytes);
    slot->mark |= TRACK_GONE;
    if (gap)
        large_free(region, gap);
    return rest;
}

static void note_escapes(struct track *track) {
    uint32_t cursor = track_cursor(track);
    for (uint32_t i = 0; i < cursor; i++)
        if (track_is_live(track, &track->slots[i]))
            track_note_survivor(track, track->slots[i].addr, false);
}

/* The piece that the slot lies in; the one before, if that is another, is free. */
static struct ebb_piece *advance(struct region *region, struct ebb_piece *rest, uintptr_t addr) {
    if (rest && piece_covers(rest, addr))
        return rest;
    if (rest)
        large_free(region, rest);
    struct ebb_piece *stretch = range_block_at(addr);
    CHECK(stretch->state == PIECE_ARENA && piece_covers(stretch, addr));
    return stretch;
}

static void take_all_out(struct track *track, struct ebb_piece *rest) {
    const struct plan *plan = track->plan;
    for (uint32_t at = 0; at < plan->placed_count; at++) {
        struct track_slot *slot = &track->slots[plan->places[at].slot];
        if (track_is_live(track, slot)) {
            rest = advance(track->region, rest, slot->addr);
            rest = take_out(track->region, rest, slot);
        }
    }
    if (rest)
        large_free(track->region, rest);
}

bool track_dissolve(struct track *track) {
    struct region *region = track->region;
    if (!track->arena && !track->taken_over)
        return true;
    uint32_t live = track->held || region->bearers ? UINT32_MAX : count_live(track);
    if (live == UINT32_MAX || !piece_prepare(&region->store, 2 * live + 3))
        return false;
    track_look(track);
    note_escapes(track);
    track_stop(track);
    pool_leave(region->pool, &track->kept);
    runs_unmark(region, track->arena ? track->arena->after->end.run
                                     : runs_around(region, track->base));
    take_all_out(track, track->arena ? track_become_ordinary(track) : NULL);
    track->taken_over = false;
    track->live_rooms = 0;
    track->named = NULL;
    track->overdue_count = 0;
    track_set_paths(track);
    return true;
}
