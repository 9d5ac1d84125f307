// SPDX-License-Identifier: Apache-2.0
/*
 * survivor.c - blocks that are to be promoted are looked up, once each.
 *
 * What says that a block is live has room for a flag, which finds out blocks that are listed twice,
 * and the size that was asked for. So `scratch` leads there: to the piece of a large block, the
 * entry of a small one in its start map, the slot of one in an arena, or the entry in the record of
 * one that was born in the parent, wherever it lies there.
 *
 * Invariant: nothing is listed but between the two calls of one promotion.
 */
#include "region/survivor.h"
#include "base/check.h"
#include "base/error.h"
#include "region/lookup.h"
#include "region/promote.h"
#include "region/small.h"

#define LISTED ((uint16_t)0x4000) /* in start maps */

static bool list_large(struct ebb_piece *piece, bool listed) {
    bool was_listed = piece->flag;
    piece->flag = listed;
    return was_listed;
}

static bool list_small(uint16_t *entry, bool listed) {
    bool was_listed = (*entry & LISTED) != 0;
    *entry = (uint16_t)((*entry & ~LISTED) | (listed ? LISTED : 0));
    return was_listed;
}

static bool list_slot(struct track_slot *slot, bool listed) {
    bool was_listed = (slot->align & TRACK_LISTED) != 0;
    slot->align = (slot->align & ~TRACK_LISTED) | (listed ? TRACK_LISTED : 0);
    return was_listed;
}

static bool list_born(struct record_entry *entry, bool listed) {
    bool was_listed = entry->listed;
    entry->listed = listed;
    return was_listed;
}

bool survivor_list(const struct ebb_survivor *survivor, bool listed) {
    switch (survivor->mode & SURVIVOR_FOUND) {
    case SURVIVOR_SMALL: return list_small(survivor->scratch, listed);
    case SURVIVOR_SLOT: return list_slot(survivor->scratch, listed);
    case SURVIVOR_BORN: return list_born(survivor->scratch, listed);
    default: return list_large(survivor->scratch, listed);
    }
}

/* True if the region may have a block there: of its own, or born in its parent. */
static bool may_have(const struct region *region, uintptr_t addr) {
    return range_block_at(addr)->owner == region->owner ||
           (region->track && track_home(region->track, addr));
}

/* Finds the block if it is the region's own. */
static bool is_of(struct region *region, const void *block, struct block_place *place) {
    uintptr_t addr = (uintptr_t)block;
    return range_holds(addr) && may_have(region, addr) &&
           block_find(region, block, place) == 0; /* which knows what is a step's below it */
}

static int note(struct ebb_survivor *survivor, void *found, int what, bool copied) {
    survivor->scratch = found;
    survivor->mode |= what | (copied ? SURVIVOR_COPIED : SURVIVOR_STAYS);
    return 0;
}

void block_claim(struct region *region, const void *block) {
    uintptr_t addr = (uintptr_t)block;
    struct record_entry *born = region->track ? track_find_born(region->track, addr) : NULL;
    struct ebb_piece *piece = range_block_at(addr);
    if (born)
        born->claimed = true;
    else if (piece->state == PIECE_BLOCK)
        piece->claimed = true;
}

bool block_is_claimed(const struct region *region, const void *block) {
    uintptr_t addr = (uintptr_t)block;
    const struct record_entry *born =
        region->track ? track_find_born(region->track, addr) : NULL;
    if (born || !range_holds(addr))
        return born && born->claimed;
    const struct ebb_piece *piece = range_block_at(addr);
    return piece_key(piece) == region->block_key && piece->addr == addr && piece->claimed;
}

int survivor_check(const struct ebb_survivor *survivor, int mode_most) {
    if (survivor->mode < EBB_PROMOTE_AUTO || survivor->mode > mode_most)
        return error_set(EBB_E_ARGUMENT, "promotion mode %d is none", survivor->mode);
    if (survivor->align && (!size_is_power_of_two(survivor->align) ||
                            survivor->align > EBB_ALIGN_MAX))
        return error_set(EBB_E_ALIGNMENT, "alignment %zu is no power of two up to %zu",
                         survivor->align, EBB_ALIGN_MAX);
    if (!survivor->block)
        return error_set(EBB_E_ARGUMENT, "a survivor is NULL");
    return 0;
}

int survivor_find(struct region *source, struct region *target, struct ebb_survivor *survivor) {
    uintptr_t addr = (uintptr_t)survivor->block;
    struct record_entry *born = source->track ? track_find_born(source->track, addr) : NULL;
    struct block_place place;
    /* a mark is newer than what was born there: what is promoted must be newer than the mark */
    bool there = born ? target == source->parent && !target->marks &&
                            survivor_may_stay(source, survivor)
                      : is_of(target, survivor->block, &place);
    bool copied = source != target && (!there || survivor->mode == PROMOTE_APART);
    if (born)
        return note(survivor, born, SURVIVOR_BORN, copied);
    if (!there && block_find(source, survivor->block, &place) != 0)
        return error_latest();
    if (place.piece->state == PIECE_BLOCK)
        return note(survivor, place.piece, SURVIVOR_LARGE, copied);
    if (place.piece->state == PIECE_ARENA)
        return note(survivor, place.slot, SURVIVOR_SLOT, copied);
    return note(survivor, small_entry(place.piece, addr), SURVIVOR_SMALL, copied);
}

/* What is born in the parent is the only kind that has to be looked up again. */
static size_t born_bytes(struct region *source, const void *block) {
    struct block_place place;
    CHECK_ALWAYS(block_find(source, block, &place) == 0);
    return place.requested;
}

size_t survivor_requested(struct region *source, const struct ebb_survivor *survivor) {
    const struct ebb_piece *piece = survivor->scratch;
    const struct track_slot *slot = survivor->scratch;
    const uint16_t *entry = survivor->scratch;
    switch (survivor->mode & SURVIVOR_FOUND) {
    case SURVIVOR_SMALL: return small_entry_bytes(*entry);
    case SURVIVOR_SLOT: return slot->bytes;
    case SURVIVOR_BORN: return born_bytes(source, survivor->block);
    default: return piece->block.requested;
    }
}
