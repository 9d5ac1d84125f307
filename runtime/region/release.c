// SPDX-License-Identifier: Apache-2.0
/*
 * release.c - the public function that releases blocks.
 *
 * Frequent are the block that a plan expects next, small ones, and large ones that nothing watches:
 * each has a way of its own, so that none saves registers for another.
 */
#include "region/block.h"
#include "region/hold.h"
#include "region/large.h"
#include "region/lookup.h"
#include "region/small.h"

/* The real symbol behind the inline function. */
extern inline int ebb_region_release(ebb_region region, void *block);

/* Every release must be seen, whatever notes say. */
static bool is_seen_closely(const struct region *region) {
    return region->shared || (region->track && region->track->recording);
}

void block_set_quick(struct region *region) {
    struct track *track = region_track(region);
    bool watched = region->bearers || is_seen_closely(region);
    region->mixed = region->bearers || region->shared || region->safe_of;
    region->quick_key = watched ? PIECE_KEY_NONE : region->window_key;
    if (track)
        track_set_paths(track);
}

/* The region has no piece there: the block was born in the parent, or is in the safe, or there is
 * none. */
static int release_born(struct region *region, uintptr_t addr) {
    const struct region *home = lookup_home(region, addr);
    if (!home && region->safe && lookup_piece(region->safe, addr))
        return ebb_region_release(region_handle(region->safe), (void *)addr);
    if (!home)
        return lookup_refuse(region, addr);
    int result = hold_check_block(region, lookup_piece(home, addr), addr);
    if (!result)
        track_end(region_track(region), addr);
    due_resume(region->track);
    return result;
}

static int release_planned(struct region *region, uintptr_t addr) {
    struct track_slot *slot = track_find(region_track(region), addr);
    if (!slot)
        return track_no_block(region->track, addr);
    if (slot->align & TRACK_HELD)
        return hold_check_block(region, range_block_at(addr), addr);
    if (!region_is_leaving(region))
        track_release(region->track, slot);
    due_resume(region->track);
    return 0;
}

/* The same for a block that lies in an ordinary lane. What is being sent stays where it is. */
static int release_placed(struct region *region, struct ebb_piece *piece, uintptr_t addr) {
    struct block_place place;
    int result = hold_check_block(region, piece, addr);
    if (result)
        return result;
    if (region_is_leaving(region))
        return lookup_in(region, piece, addr, &place);
    if (region->track)
        track_note_end(region_track(region), addr); /* while the address is the region's */
    if (piece->state == PIECE_WINDOW)
        return small_release(region, piece, addr);
    return large_release(region, piece);
}

static __attribute__((noinline)) int release_noting(struct track *track, struct track_slot *slot) {
    track_note_peaks(track);
    track_take_back(track, slot);
    return 0;
}

/* The expected block, after a look at the peaks. */
static __attribute__((noinline)) int release_expected(struct track *track,
                                                      struct track_slot *slot) {
    if (!track_is_calm(track))
        return release_noting(track, slot);
    track->looked = track->next;
    track_take_back(track, slot);
    return 0;
}

/* What is not frequent: out of the way of what is. */
static __attribute__((noinline)) int release_other(struct region *region, uintptr_t addr) {
    if (!addr)
        return 0;
    struct ebb_piece *piece = lookup_own_piece(region, addr);
    int result = !piece                        ? release_born(region, addr)
                 : piece->state == PIECE_ARENA ? release_planned(region, addr)
                                               : release_placed(region, piece, addr);
    return result > 0 ? release_other(region, addr) : result; /* it is held no more */
}

/* True if the piece is the large block that begins there, and its end need not be noted. */
static bool ends_quickly(const struct region *region, const struct ebb_piece *piece,
                         uintptr_t addr) {
    return piece_key(piece) == region->block_key && piece->addr == addr && !piece->pins &&
           region->quick_key != PIECE_KEY_NONE;
}

/* True for a small block of the region's own, in a region where steps below have born others. */
static bool is_beside_births(const struct region *region, const struct ebb_piece *piece,
                             uintptr_t addr) {
    return region->bearers && piece_key(piece) == region->window_key &&
           piece_covers(piece, addr) && !is_seen_closely(region) && !track_may_be_born(addr);
}

static __attribute__((noinline)) int release_beside_births(struct region *region,
                                                           struct ebb_piece *window,
                                                           uintptr_t addr) {
    return small_release(region, window, addr);
}

/* All but what a plan expects: a function of its own, so that the latter needs no frame. */
static __attribute__((noinline)) int release_ordinary(struct region *region, uintptr_t addr) {
    if (range_holds(addr)) {
        struct ebb_piece *piece = range_block_at(addr);
        if (piece_key(piece) == region->quick_key && piece_covers(piece, addr))
            return small_release(region, piece, addr);
        if (ends_quickly(region, piece, addr))
            return large_release_plain(region, piece);
        if (is_beside_births(region, piece, addr))
            return release_beside_births(region, piece, addr);
    }
    return release_other(region, addr);
}

static __attribute__((noinline)) int release_nowhere(ebb_region handle) {
    region_not_found(handle);
    return EBB_E_STALE;
}

/* The inline function has read the lane already: it is one, or NULL. */
int ebb_region_release_slow(ebb_region handle, void *block) {
    struct region *region = (struct region *)handle.lane;
    if (!region || region->lane.generation != handle.generation)
        return release_nowhere(handle);
    if (!region->track)
        return release_ordinary(region, (uintptr_t)block);
    struct track_slot *slot = track_expected(region->track, (uintptr_t)block);
    if (!slot)
        return release_ordinary(region, (uintptr_t)block);
    if (track_may_peak(region->track))
        return release_expected(region->track, slot);
    track_take_back(region->track, slot);
    return 0;
}
