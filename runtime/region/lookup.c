// SPDX-License-Identifier: Apache-2.0
/*
 * lookup.c - the live block at an address, or the error that says what is there.
 *
 * block_at names the piece that starts there, or the window or arena around it. The entry may be
 * stale, so the piece must agree on address, state and owner before it is believed.
 */
#include "region/lookup.h"
#include "base/error.h"
#include "region/hold.h"
#include "region/small.h"

static struct ebb_piece *piece_over(const struct ebb_piece *run, uintptr_t addr) {
    struct ebb_piece *piece = run->run.first;
    while (piece && addr >= piece_end(piece))
        piece = piece->after;
    return piece;
}

/* The same in a relinked run, whose survivors are only on the region's list. */
static struct ebb_piece *survivor_over(const struct region *region, const struct ebb_piece *run,
                                       uintptr_t addr) {
    struct ebb_piece *block = region->blocks;
    while (block && (block->state != PIECE_BLOCK || block->block.run != run ||
                     addr < block->addr || addr >= piece_end(block)))
        block = block->next;
    return block;
}

static int report_inside(const struct region *region, const struct ebb_piece *run,
                         uintptr_t addr) {
    const struct ebb_piece *piece = piece_over(run, addr);
    if (run->flag)
        piece = survivor_over(region, run, addr);
    if (piece && piece->state == PIECE_BLOCK && piece->owner != region->owner)
        return error_set(EBB_E_FOREIGN, "%p was promoted from region '%s' to '%s'", (void *)addr,
                         region->name, region_of_piece(piece)->name);
    if (piece && (piece->state == PIECE_BLOCK || piece->state == PIECE_WINDOW))
        return error_set(EBB_E_INTERIOR, "%p is inside a block of region '%s', %zu bytes from %p",
                         (void *)addr, region->name,
                         addr - piece->addr, (void *)piece->addr);
    return error_set(EBB_E_RELEASED, "%p is in free memory of region '%s': released before",
                     (void *)addr, region->name);
}

int lookup_refuse(const struct region *region, uintptr_t addr) {
    const struct region *step = track_of_step(region, addr);
    if (step)
        return error_set(EBB_E_FOREIGN, "%p was born in region '%s' for a step '%s' below it, and "
                         "was not promoted yet", (void *)addr, region->name, step->name);
    if (!range_holds(addr))
        return error_set(EBB_E_FOREIGN, "%p is not memory of ebb, asked in region '%s'",
                         (void *)addr, region->name);
    const struct ebb_piece *run = range_run_at(addr);
    if (!run)
        return error_set(EBB_E_FOREIGN, "%p belongs to no open region (asked in '%s')",
                         (void *)addr, region->name);
    if (run->owner != region->owner)
        return error_set(EBB_E_FOREIGN, "%p belongs to region '%s', not to '%s'", (void *)addr,
                         region_of_piece(run)->name, region->name);
    return report_inside(region, run, addr);
}

struct region *block_owner(struct region *place, uintptr_t addr) {
    if (!place->mixed)
        return place;
    if (place->safe_of)
        return place->safe_of;
    struct region *step = track_of_step(place, addr);
    return step ? step : place;
}

int lookup_in(struct region *region, struct ebb_piece *piece, uintptr_t addr,
              struct block_place *place) {
    place->owner = region;
    place->piece = piece;
    if (piece->state == PIECE_BLOCK) {
        place->requested = piece->block.requested;
        return 0;
    }
    if (piece->state == PIECE_WINDOW)
        return small_find(region, piece, addr, &place->requested);
    place->slot = track_find(region_track(region), addr);
    if (!place->slot)
        return track_no_block(region->track, addr);
    place->requested = place->slot->bytes;
    return 0;
}

int block_find(struct region *region, const void *address, struct block_place *place) {
    uintptr_t addr = (uintptr_t)address;
    struct region *home = lookup_home(region, addr), *owner = home ? home : region;
    struct ebb_piece *piece = home ? lookup_piece(home, addr) : lookup_own_piece(region, addr);
    if (!piece && region->safe) {
        owner = region->safe;
        piece = lookup_piece(owner, addr);
    }
    return piece ? lookup_in(owner, piece, addr, place) : lookup_refuse(region, addr);
}

int block_find_unheld(struct region *region, const void *block, struct block_place *place) {
    int result = block_find(region, block, place);
    if (result)
        return result;
    result = hold_check_block(region, place->piece, (uintptr_t)block);
    return result > 0 ? block_find_unheld(region, block, place) : result; /* it is held no more */
}
