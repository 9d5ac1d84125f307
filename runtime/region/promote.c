// SPDX-License-Identifier: Apache-2.0
/*
 * promote.c - blocks move to an ancestor: by copy, or by relinking (see relink.h).
 *
 *     check all    each survivor is found, and listed so that none is there twice
 *     acquire all  copies and entries: all that can fail
 *     commit all   cannot fail
 *
 * So a failure leaves both regions, and their counters, as they were. Where nothing moves, since
 * all survivors were born in the target or are its own, there is nothing to acquire.
 *
 * Refuses targets that are not above the source, and sealed ones.
 */
#include "region/promote.h"
#include "base/check.h"
#include "base/error.h"
#include "region/block.h"
#include "region/count.h"
#include "region/relink.h"
#include "region/small.h"
#include "region/survivor.h"
#include "region/undo.h"
#include "region/weigh.h"

#include <string.h>

struct promotion {
    struct region *source, *target;
    struct ebb_survivor *list;
    size_t count;
    const void *site; /* who promotes: the site of copies */
    bool objects;     /* what they consist of; else blocks of users */
    bool anywhere;    /* the target is any region: copies only */
    bool ends_step;   /* the source is a step's and closes next */
    int mode_most;    /* what may be asked for */
    unsigned percent; /* of what auto relinks, so much may be pinned; 0: nothing is auto */
    size_t moving;    /* survivors that do not stay where they are */
    uint64_t apart;   /* that were copied from a safe */
    struct ebb_promoted cost;
};

/* ---- checking ---- */

/* The list was refused: takes all marks of the check back. */
static void unlist(const struct promotion *promotion, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct ebb_survivor *survivor = &promotion->list[i];
        survivor_list(survivor, false);
        survivor->mode &= SURVIVOR_MODE;
    }
}

/* True if an object needs the block that the caller named: it is copied then, not relinked. */
static bool is_needed(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    return !promotion->objects && survivor_is_needed(promotion->source, survivor);
}

/* Finds and lists a valid survivor; changes nothing on failure. */
static int check_survivor(const struct promotion *promotion, struct ebb_survivor *survivor) {
    int mode = survivor->mode, result = survivor_check(survivor, promotion->mode_most);
    if (result)
        return result;
    survivor->mode |= is_needed(promotion, survivor) ? SURVIVOR_NEEDED : 0;
    result = survivor_find(promotion->source, promotion->target, survivor);
    if (!result && survivor_list(survivor, true))
        result = error_set(EBB_E_DUPLICATE, "block %p is listed twice", survivor->block);
    survivor->mode = result ? mode : survivor->mode;
    return result;
}

/* True if the pages under a large block may be the target's once the source has ended. */
static bool can_move_pages(const struct promotion *promotion, const struct ebb_piece *piece) {
    const struct region *source = promotion->source;
    if (source->track && track_was_arena(source->track, piece->addr))
        return false;
    if (piece->owner != source->owner || piece->block.spare || piece->pins || promotion->anywhere)
        return false;
    if (piece->block.run)
        return piece->block.run->relinked.live_blocks == 1;
    return !source->heir || source->heir == promotion->target;
}

/* True if a large block may be relinked: as the caller asked, and as it lies. */
static bool can_relink(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    int mode = survivor->mode & SURVIVOR_MODE;
    return mode != EBB_PROMOTE_COPY && mode != PROMOTE_APART &&
           !(survivor->mode & SURVIVOR_NEEDED) && survivor_is_aligned(survivor) &&
           can_move_pages(promotion, survivor->scratch);
}

static bool may_relink(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    return survivor_is(survivor, SURVIVOR_LARGE) && can_relink(promotion, survivor);
}

/* True if it may be relinked and has no run of its own to take along. */
static bool is_weighable(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    const struct ebb_piece *piece = survivor->scratch;
    return may_relink(promotion, survivor) && !piece->block.run;
}

/* The least percentage of all survivors in a list applies. */
static void allow(struct promotion *promotion, const struct ebb_survivor *survivor) {
    unsigned percent = survivor->pin_percent ? survivor->pin_percent : EBB_PIN_PERCENT;
    bool counts = (survivor->mode & SURVIVOR_MODE) == EBB_PROMOTE_AUTO;
    if (counts && (!promotion->percent || percent < promotion->percent))
        promotion->percent = percent;
}

/* Unlists a valid list, except what is to be weighed; true if anything is. */
static bool unlist_rest(const struct promotion *promotion) {
    bool weighs = false;
    for (size_t i = 0; i < promotion->count; i++) {
        const struct ebb_survivor *survivor = &promotion->list[i];
        if (promotion->percent && is_weighable(promotion, survivor))
            weighs = true;
        else
            survivor_list(survivor, false);
    }
    return weighs;
}

/* Finds and lists a valid survivor that was born in the target, as nearly all are in a step that
 * has been learnt. False, with nothing changed: it must be checked in full. */
static bool stays_where_born(const struct promotion *promotion, const struct track *births,
                             struct ebb_survivor *survivor) {
    size_t align = survivor->align ? survivor->align : 1;
    bool plain = (unsigned)survivor->mode <= EBB_PROMOTE_RELINK && size_is_power_of_two(align) &&
                 align <= EBB_ALIGN_MAX;
    struct record_entry *born =
        plain ? track_find_born(births, (uintptr_t)survivor->block) : NULL;
    if (!born || born->listed || is_needed(promotion, survivor) ||
        !survivor_may_stay(births->region, survivor))
        return false;
    born->listed = true;
    survivor->scratch = born;
    survivor->mode |= SURVIVOR_BORN | SURVIVOR_STAYS;
    return true;
}

static int check_in_full(struct promotion *promotion, struct ebb_survivor *survivor) {
    int result = check_survivor(promotion, survivor);
    if (result)
        return result;
    promotion->moving += (survivor->mode & SURVIVOR_WAY) != SURVIVOR_STAYS;
    return 0;
}

static int check_list(struct promotion *promotion) {
    const struct region *source = promotion->source, *target = promotion->target;
    const struct track *births =
        target == source->parent && !target->marks ? source->track : NULL;
    for (size_t i = 0; i < promotion->count; i++) {
        struct ebb_survivor *survivor = &promotion->list[i];
        if (births && stays_where_born(promotion, births, survivor))
            continue;
        int result = check_in_full(promotion, survivor);
        if (!result)
            continue;
        unlist(promotion, i);
        return result;
    }
    return 0;
}

static int check_regions(const struct promotion *promotion) {
    const struct region *source = promotion->source, *target = promotion->target;
    if (promotion->count && !promotion->list)
        return error_set(EBB_E_ARGUMENT, "list of %zu survivors is NULL", promotion->count);
    if (source->measuring || (source->hollow && promotion->count))
        return region_refuse_hollow(source, "bytes to promote are none of the host's");
    if (source != target && !promotion->anywhere && !region_is_above(target, source))
        return error_set(EBB_E_NOT_ANCESTOR, "region '%s' is no ancestor of '%s'", target->name,
                         source->name);
    if (target->sealed && source != target)
        return error_set(EBB_E_SEALED, "region '%s' is sealed: promotion from '%s' refused",
                         target->name, source->name);
    return 0;
}

/* ---- acquiring ---- */

/* One that stays may be gone meanwhile, by the hand of another thread. */
static void forget_weight(const struct ebb_survivor *survivor) {
    struct ebb_piece *piece = survivor->scratch;
    if (survivor_is(survivor, SURVIVOR_LARGE) && piece->state == PIECE_BLOCK)
        piece->flag = false;
}

/* A large block that leaves is relinked if that was asked for, if it has a run of its own, or if it
 * was weighed and found worth it. */
static void choose_way(const struct promotion *promotion, struct ebb_survivor *survivor) {
    struct ebb_piece *piece = survivor->scratch;
    bool asked = (survivor->mode & SURVIVOR_MODE) == EBB_PROMOTE_RELINK;
    if ((asked || piece->flag || piece->block.run) && can_relink(promotion, survivor))
        survivor->mode ^= SURVIVOR_COPIED ^ SURVIVOR_RELINKED;
    piece->flag = false;
}

/* True if the copy must not lie in shared memory: of objects only elements that lay there may. */
static bool is_private(const struct promotion *promotion, const void *block) {
    return promotion->objects && !region_of_piece(range_block_at((uintptr_t)block))->shared;
}

static void *allocate_copy(const struct promotion *promotion, const struct ebb_survivor *survivor,
                           size_t bytes) {
    size_t align = survivor_align(survivor);
    void *copy = block_quickly(promotion->target, bytes, align);
    if (copy)
        return copy;
    return is_private(promotion, survivor->block)
               ? block_allocate_private(promotion->target, bytes, align, promotion->site)
               : block_allocate(promotion->target, bytes, align, promotion->site);
}

static void *copy_block(struct promotion *promotion, const struct ebb_survivor *survivor) {
    size_t requested = survivor_requested(promotion->source, survivor);
    void *copy = allocate_copy(promotion, survivor, requested);
    if (!copy)
        return NULL;
    memcpy(copy, survivor->block, requested);
    promotion->cost.copied_blocks++;
    promotion->cost.copied_bytes += requested;
    promotion->apart += survivor_is_apart(survivor);
    return copy;
}

/* Acquires what one survivor needs into its scratch; a failure leaves its block as it was. */
static int acquire(struct promotion *promotion, struct ebb_survivor *survivor) {
    if ((survivor->mode & SURVIVOR_WAY) == SURVIVOR_STAYS)
        forget_weight(survivor);
    else if (survivor_is(survivor, SURVIVOR_LARGE))
        choose_way(promotion, survivor);
    int way = survivor->mode & SURVIVOR_WAY;
    if (way == SURVIVOR_RELINKED) {
        survivor->scratch = piece_take(&promotion->target->store);
        if (!survivor->scratch)
            return error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'",
                             promotion->target->name);
    } else if (way == SURVIVOR_COPIED) {
        survivor->scratch = copy_block(promotion, survivor);
        if (!survivor->scratch)
            return error_latest();
    }
    return 0;
}

static void abandon(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    int way = survivor->mode & SURVIVOR_WAY;
    if (way == SURVIVOR_RELINKED)
        piece_give(&promotion->target->store, survivor->scratch);
    else if (way == SURVIVOR_COPIED)
        ebb_region_release(region_handle(promotion->target), survivor->scratch);
}

/* ---- committing ---- */

static void relink(struct promotion *promotion, void *block, struct ebb_piece *entry) {
    struct region *source = promotion->source, *target = promotion->target;
    promotion->cost.pinned_bytes +=
        relink_block(source, target, range_block_at((uintptr_t)block), entry);
    if (target->sites && !source->sites)
        *range_site(entry->addr) = (uintptr_t)promotion->site;
    promotion->cost.relinked_blocks++;
    promotion->cost.relinked_bytes += entry->block.requested;
}

/* The block stays where it is; if it was born there, it is the parent's from here on. */
static void commit_stay(const struct promotion *promotion, struct ebb_survivor *survivor) {
    if (survivor_is(survivor, SURVIVOR_BORN) && promotion->source != promotion->target)
        track_leave_to_parent(promotion->source->track, survivor->scratch,
                              (uintptr_t)survivor->block);
    survivor->mode = EBB_PROMOTE_COPY;
}

static void commit(struct promotion *promotion, struct ebb_survivor *survivor) {
    const struct region *source = promotion->source;
    int way = survivor->mode & SURVIVOR_WAY, mode = survivor->mode & SURVIVOR_MODE;
    if (way == SURVIVOR_STAYS) {
        commit_stay(promotion, survivor);
        return;
    }
    bool further = mode == PROMOTE_APART || promotion->target != source->parent ||
                   !survivor_may_stay(source, survivor);
    survivor->mode = way == SURVIVOR_RELINKED ? EBB_PROMOTE_RELINK : EBB_PROMOTE_COPY;
    if (source->track)
        track_note_survivor(region_track(source), (uintptr_t)survivor->block, further);
    if (way == SURVIVOR_RELINKED)
        relink(promotion, survivor->block, survivor->scratch);
    else
        survivor->block = survivor->scratch;
}

static int acquire_all(struct promotion *promotion) {
    for (size_t i = 0; i < promotion->count; i++) {
        int result = acquire(promotion, &promotion->list[i]);
        if (!result)
            continue;
        for (size_t left = i + 1; left < promotion->count; left++)
            forget_weight(&promotion->list[left]);
        undo_begin(promotion->target);
        while (i--)
            abandon(promotion, &promotion->list[i]);
        for (size_t left = 0; left < promotion->count; left++)
            promotion->list[left].mode &= SURVIVOR_MODE;
        return result;
    }
    return 0;
}

/* Nothing moves, so nothing can fail. */
static void commit_stays(const struct promotion *promotion) {
    for (size_t i = 0; i < promotion->count; i++) {
        survivor_list(&promotion->list[i], false);
        commit_stay(promotion, &promotion->list[i]);
    }
}

static int acquire_and_commit(struct promotion *promotion) {
    struct undo undo;
    undo_remember(promotion->target, &undo);
    for (size_t i = 0; i < promotion->count; i++)
        allow(promotion, &promotion->list[i]);
    if (unlist_rest(promotion))
        weigh_survivors(promotion->list, promotion->count, promotion->percent,
                        promotion->ends_step ? promotion->source : NULL);
    int result = acquire_all(promotion);
    if (result)
        undo_restore(promotion->target, &undo);
    for (size_t i = 0; i < promotion->count && !result; i++)
        commit(promotion, &promotion->list[i]);
    return result;
}

static int promote(struct promotion *promotion) {
    int result = check_regions(promotion);
    if (result)
        return result;
    hold_look(promotion->target); /* what came with survivors before */
    result = check_list(promotion);
    if (!result && promotion->moving)
        result = acquire_and_commit(promotion);
    else if (!result)
        commit_stays(promotion);
    if (!result && EBB_CHECK_FULL) {
        region_check_blocks(promotion->source);
        region_check_blocks(promotion->target);
    }
    return result;
}

void promoted_add(struct ebb_promoted *cost, const struct ebb_promoted *more) {
    if (!cost)
        return;
    cost->copied_blocks += more->copied_blocks;
    cost->copied_bytes += more->copied_bytes;
    cost->relinked_blocks += more->relinked_blocks;
    cost->relinked_bytes += more->relinked_bytes;
    cost->pinned_bytes += more->pinned_bytes;
}

int promote_blocks(struct region *source, struct region *target, struct ebb_survivor *list,
                   size_t count, bool anywhere, const void *site, struct ebb_promoted *cost) {
    struct promotion promotion = {.source = source, .target = target, .list = list};
    promotion.count = count;
    promotion.site = site;
    promotion.anywhere = anywhere;
    promotion.objects = true;
    promotion.mode_most = PROMOTE_APART;
    int result = promote(&promotion);
    if (!result)
        promoted_add(cost, &promotion.cost);
    return result;
}

/* What is promoted out of which regions, as the caller names them: false if one is not open. */
static bool find_regions(struct promotion *promotion, ebb_region source, ebb_region target) {
    promotion->mode_most = EBB_PROMOTE_RELINK;
    promotion->source = region_find(source);
    promotion->target = promotion->source ? region_find(target) : NULL;
    return promotion->target != NULL;
}

/* Promotes blocks that the caller names, once what other threads have released is gone. Objects do
 * not need that: nobody else releases their blocks, and these were found before. */
static int promote_named(struct promotion *promotion, ebb_region source, ebb_region target,
                         struct ebb_promoted *cost) {
    if (!find_regions(promotion, source, target))
        return EBB_E_STALE;
    remote_settle(promotion->source);
    int result = promote(promotion);
    if (result)
        return result;
    promoted_count(promotion->source, &promotion->cost);
    promoted_add(cost, &promotion->cost);
    return 0;
}

int ebb_promote(ebb_region source, ebb_region target, struct ebb_survivor *survivors,
                size_t count, struct ebb_promoted *cost) {
    struct promotion promotion = {
        .list = survivors, .count = count, .site = __builtin_return_address(0)};
    return promote_named(&promotion, source, target, cost);
}

int promote_at_end_of_step(ebb_region source, ebb_region target, struct ebb_survivor *list,
                           size_t count, const void *site, struct ebb_promoted *cost,
                           uint64_t *apart) {
    const struct promotion asked = {.list = list, .count = count, .site = site};
    struct promotion promotion = asked;
    promotion.ends_step = true;
    error_mute();
    int result = promote_named(&promotion, source, target, cost);
    error_unmute();
    if (result) { /* where there are no pages for copies, relinking needs none */
        promotion = asked;
        result = promote_named(&promotion, source, target, cost);
    }
    if (!result)
        *apart = promotion.apart;
    return result;
}

int ebb_close_keeping(ebb_region source, ebb_region target, struct ebb_survivor *survivors,
                      size_t count, struct ebb_promoted *cost, uint64_t *lost_blocks) {
    struct promotion promotion = {
        .list = survivors, .count = count, .site = __builtin_return_address(0)};
    if (!find_regions(&promotion, source, target))
        return EBB_E_STALE;
    if (promotion.source == promotion.target)
        return error_set(EBB_E_NOT_ANCESTOR, "region '%s' cannot close and keep into itself",
                         promotion.source->name);
    if (promotion.source->closing)
        return region_refuse_closing(promotion.source);
    remote_settle_below(promotion.source); /* not later: what was copied would count as gone */
    int result = promote(&promotion);
    if (result)
        return result;
    struct ebb_closed closed = {0, 0};
    size_t before = promotion.target->pinned_by_ends;
    uint64_t copied = promotion.cost.copied_blocks - promotion.apart;
    if (lost_blocks)
        *lost_blocks = count_live_blocks(promotion.source) - copied;
    region_close(promotion.source, &closed);
    promotion.cost.pinned_bytes += promotion.target->pinned_by_ends - before;
    promoted_add(cost, &promotion.cost);
    return region_closed(&closed);
}
