// SPDX-License-Identifier: Apache-2.0
/*
 * promote.c - blocks move to an ancestor: by copy, or by relinking their run of pages.
 *
 * Relinking moves no byte and, at first, no page: the block's entry is replaced by one of the
 * heir's, and the block is listed as departed in its host. Only when the host closes are the
 * pages around departed blocks cut out of its runs and given to the heir; by then all their
 * other blocks are dead.
 *
 *     host's run    | dead | D1 | dead | D2 | dead |  free       |
 *     pages         |    |    |    |    |    |    |    |    |    |
 *     after close   | pool    |  heir's run (pinned: rest) | pool |
 *
 * A region has one heir at a time; blocks promoted to another ancestor meanwhile are copied.
 * A list is checked first, then everything that can fail is acquired, then all is committed:
 * a failure leaves both regions, and their counters, as they were.
 */
#include <ebb/promote.h>

#include "base/check.h"
#include "base/error.h"
#include "region/small.h"

#include <string.h>

#define RELINK_LEAST EBB_PAGE
#define LISTED ((uint16_t)0x4000) /* flag in `starts` while a list is checked */

struct promotion {
    struct region *source, *target;
    struct ebb_survivor *list;
    size_t count;
    const void *site; /* who promotes: the site of copies */
    struct ebb_promoted cost;
};

/* ---- checking ---- */

static bool is_listed(const struct ebb_piece *piece, uintptr_t addr) {
    return piece->state == PIECE_BLOCK ? piece->flag : (*small_entry(piece, addr) & LISTED) != 0;
}

static void set_listed(struct ebb_piece *piece, uintptr_t addr, bool listed) {
    if (piece->state == PIECE_BLOCK)
        piece->flag = listed;
    else if (listed)
        *small_entry(piece, addr) |= LISTED;
    else
        *small_entry(piece, addr) &= (uint16_t)~LISTED;
}

/* The piece under a block that already is the target's, or NULL. */
static struct ebb_piece *owned_by_target(const struct promotion *promotion, const void *block) {
    struct ebb_piece *piece = NULL;
    size_t requested;
    if (!range_holds((uintptr_t)block) ||
        range_block_at((uintptr_t)block)->owner != promotion->target->owner)
        return NULL;
    return block_find(promotion->target, block, &piece, &requested) == 0 ? piece : NULL;
}

static void unlist(const struct promotion *promotion, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uintptr_t addr = (uintptr_t)promotion->list[i].block;
        set_listed(range_block_at(addr), addr, false);
    }
}

/* A small block that is listed does not look alive: its entry has the flag. */
static bool is_listed_small(const struct region *source, uintptr_t addr) {
    if (!range_holds(addr) || addr % RANGE_GRANULE != 0)
        return false;
    const struct ebb_piece *window = range_block_at(addr);
    return window->state == PIECE_WINDOW && window->owner == source->owner &&
           addr - window->addr < window->bytes &&
           (*small_entry(window, addr) & (STARTS_RELEASED | LISTED)) == LISTED;
}

static int check_survivor(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    struct ebb_piece *piece = owned_by_target(promotion, survivor->block);
    size_t requested;
    if (survivor->mode < EBB_PROMOTE_AUTO || survivor->mode > EBB_PROMOTE_RELINK)
        return error_set(EBB_E_ARGUMENT, "promotion mode %d is none", survivor->mode);
    if (survivor->align && (!size_is_power_of_two(survivor->align) ||
                            survivor->align > EBB_ALIGN_MAX))
        return error_set(EBB_E_ALIGNMENT, "alignment %zu is no power of two up to %zu",
                         survivor->align, EBB_ALIGN_MAX);
    if (!survivor->block)
        return error_set(EBB_E_ARGUMENT, "a survivor is NULL");
    uintptr_t addr = (uintptr_t)survivor->block;
    if (!piece && is_listed_small(promotion->source, addr))
        return error_set(EBB_E_DUPLICATE, "block %p is listed twice", survivor->block);
    if (!piece && block_find(promotion->source, survivor->block, &piece, &requested) != 0)
        return error_latest();
    if (is_listed(piece, addr))
        return error_set(EBB_E_DUPLICATE, "block %p is listed twice", survivor->block);
    set_listed(piece, addr, true);
    return 0;
}

static int check_list(const struct promotion *promotion) {
    int result = 0;
    size_t i = 0;
    while (i < promotion->count && (result = check_survivor(promotion, &promotion->list[i])) == 0)
        i++;
    unlist(promotion, i);
    return result;
}

static int check_regions(const struct promotion *promotion) {
    const struct region *source = promotion->source, *target = promotion->target;
    if (promotion->count && !promotion->list)
        return error_set(EBB_E_ARGUMENT, "list of %zu survivors is NULL", promotion->count);
    if (source->measuring)
        return error_set(EBB_E_MEASURING, "region '%s' measures: it has no bytes to promote",
                         source->name);
    if (source != target && !region_is_above(target, source))
        return error_set(EBB_E_NOT_ANCESTOR, "region '%s' is no ancestor of '%s'", target->name,
                         source->name);
    if (target->sealed && source != target)
        return error_set(EBB_E_SEALED, "region '%s' is sealed: promotion from '%s' refused",
                         target->name, source->name);
    return 0;
}

/* ---- choosing ---- */

static size_t pages_around(const struct ebb_piece *block) {
    return size_align(piece_end(block), EBB_PAGE) - size_align_down(block->addr, EBB_PAGE);
}

/* Relinking is worth it if it saves copying at least twice the bytes that it pins. */
static bool should_relink(const struct promotion *promotion, const struct ebb_piece *piece,
                          int mode) {
    const struct region *source = promotion->source;
    if (piece->state != PIECE_BLOCK || piece->block.spare || mode == EBB_PROMOTE_COPY)
        return false;
    if (piece->block.run)
        return piece->block.run->relinked.live_blocks == 1;
    if (source->heir && source->heir != promotion->target)
        return false;
    if (mode == EBB_PROMOTE_RELINK)
        return true;
    size_t bytes = piece->block.requested;
    return bytes >= RELINK_LEAST && bytes >= 2 * (pages_around(piece) - bytes);
}

/* ---- acquiring ---- */

static size_t natural_align(const struct ebb_survivor *survivor) {
    if (survivor->align)
        return survivor->align;
    uintptr_t addr = (uintptr_t)survivor->block;
    return size_smaller((size_t)(addr & (~addr + 1)), EBB_SMALL_MAX_ALIGN);
}

/* Counters of the target that a failed promotion must not have moved. */
struct undo {
    struct flow counted, requested, used;
    uint64_t large_blocks;
    size_t large_used;
    uintptr_t room, cursor;
};

static struct undo remember(struct region *target) {
    small_fold(target);
    return (struct undo){target->counted, target->requested, target->used,
                         target->large_blocks, target->large_used,
                         target->room,         target->lane.cursor};
}

/* All copies are released by now. Padding in front of them may stay, in rooms that were left. */
static void restore(struct region *target, const struct undo *undo) {
    small_take_back(target, undo->room, undo->cursor);
    uint64_t used = flow_now(&target->used);
    target->calm = 0;
    target->counted = undo->counted;
    target->requested = undo->requested;
    target->used = undo->used;
    flow_change(&target->used, flow_now(&undo->used), used);
    target->large_blocks = undo->large_blocks;
    target->large_used = undo->large_used;
}

/* Bytes asked for a live block of which the address is known to be right. */
static size_t block_requested(const void *block) {
    const struct ebb_piece *piece = range_block_at((uintptr_t)block);
    return piece->state == PIECE_BLOCK ? piece->block.requested
                                       : (size_t)*small_entry(piece, (uintptr_t)block) - 1;
}

static void *copy_block(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    size_t requested = block_requested(survivor->block);
    void *copy = block_allocate(promotion->target, requested, natural_align(survivor),
                                promotion->site);
    if (copy)
        memcpy(copy, survivor->block, requested);
    return copy;
}

/* Between acquiring and committing, the plan stands beside the mode that was asked for. */
enum plan { PLAN_STAY = 0, PLAN_COPY = 1 << 4, PLAN_RELINK = 2 << 4, PLAN_MASK = 3 << 4 };

static enum plan choose(const struct promotion *promotion, const struct ebb_piece *piece,
                        int mode) {
    if (promotion->source == promotion->target || piece->owner == promotion->target->owner)
        return PLAN_STAY;
    return should_relink(promotion, piece, mode) ? PLAN_RELINK : PLAN_COPY;
}

/* Acquires what one survivor needs into its scratch; a failure leaves it as it was. */
static int acquire(const struct promotion *promotion, struct ebb_survivor *survivor) {
    struct ebb_piece *piece = range_block_at((uintptr_t)survivor->block);
    enum plan plan = choose(promotion, piece, survivor->mode);
    survivor->scratch = NULL;
    if (plan == PLAN_RELINK) {
        survivor->scratch = piece_take(&promotion->target->store);
        if (!survivor->scratch)
            return error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'",
                             promotion->target->name);
    } else if (plan == PLAN_COPY) {
        survivor->scratch = copy_block(promotion, survivor);
        if (!survivor->scratch)
            return error_latest();
    }
    survivor->mode |= (int)plan;
    return 0;
}

static void abandon(const struct promotion *promotion, struct ebb_survivor *survivor) {
    int plan = survivor->mode & PLAN_MASK;
    if (plan == PLAN_RELINK)
        piece_give(&promotion->target->store, survivor->scratch);
    else if (plan == PLAN_COPY)
        ebb_region_release(region_handle(promotion->target), survivor->scratch);
    survivor->mode &= ~PLAN_MASK;
}

/* ---- committing ---- */

/* The heir's entry takes the place of the host's in the chain of addresses. */
static void replace_entry(struct ebb_piece *old, struct ebb_piece *entry) {
    *entry = *old;
    if (entry->before)
        entry->before->after = entry;
    if (entry->after)
        entry->after->before = entry;
}

static void fix_run_first(const struct region *host, struct ebb_piece *entry) {
    if (!entry->before)
        runs_around(host, entry->addr)->run.first = entry;
}

/* A block that has a run of its own takes it along at once; returns the bytes that it pins. */
static size_t move_run(struct region *source, struct region *target, struct ebb_piece *old,
                     struct ebb_piece *entry) {
    struct ebb_piece *run = entry->block.run;
    size_t pinned = run->bytes - entry->bytes;
    piece_give(&source->store, old);
    piece_push(&target->blocks, entry);
    piece_unlink(&source->runs, run);
    piece_push(&target->runs, run);
    pthread_mutex_lock(&source->pool->lock);
    piece_set_owner(run, target->owner);
    pthread_mutex_unlock(&source->pool->lock);
    source->run_count--;
    target->run_count++;
    meter_subtract(&source->reserved, run->bytes);
    meter_add(&target->reserved, run->bytes);
    source->pinned -= pinned;
    target->pinned += pinned;
    return pinned;
}

/* A block between others stays where it is until its host closes. */
static void depart(struct region *source, struct region *target, struct ebb_piece *old,
                   struct ebb_piece *entry) {
    fix_run_first(source, entry);
    entry->block.spare = old;
    old->block.spare = entry;
    old->state = PIECE_UNUSED;
    piece_push(&source->departed, old);
    piece_push(&target->blocks, entry);
    source->heir = target;
    source->lent += entry->bytes;
    target->guests += entry->bytes;
}

static void relink(struct promotion *promotion, void *block, struct ebb_piece *entry) {
    struct region *source = promotion->source, *target = promotion->target;
    struct ebb_piece *old = range_block_at((uintptr_t)block);
    piece_unlink(&source->blocks, old);
    replace_entry(old, entry);
    piece_set_owner(entry, target->owner);
    range_name_block(entry);
    if (target->sites && !source->sites)
        *range_site(entry->addr) = (uintptr_t)promotion->site;
    if (entry->block.run)
        promotion->cost.pinned_bytes += move_run(source, target, old, entry);
    else
        depart(source, target, old, entry);
    small_fold(source);
    small_fold(target);
    source->large_used -= entry->bytes;
    target->large_used += entry->bytes;
    target->large_blocks++;
    count_block_gone(source, entry->block.requested, entry->bytes);
    count_uncharge_below(source, target, entry->bytes);
    count_block(target, entry->block.requested, entry->bytes);
    promotion->cost.relinked_blocks++;
    promotion->cost.relinked_bytes += entry->block.requested;
}

void promote_return(struct region *owner, struct ebb_piece *block) {
    struct ebb_piece *own = block->block.spare;
    struct region *host = region_of_piece(own);
    piece_unlink(&host->departed, own);
    piece_unlink(&owner->blocks, block);
    if (!host->departed)
        host->heir = NULL;
    replace_entry(block, own);
    piece_set_owner(own, host->owner);
    fix_run_first(host, own);
    host->lent -= own->bytes;
    owner->guests -= own->bytes;
    piece_give(&owner->store, block);
    large_free(host, own);
}

static void commit(struct promotion *promotion, struct ebb_survivor *survivor) {
    int plan = survivor->mode & PLAN_MASK;
    survivor->mode = plan == PLAN_RELINK ? EBB_PROMOTE_RELINK : EBB_PROMOTE_COPY;
    if (plan == PLAN_RELINK) {
        relink(promotion, survivor->block, survivor->scratch);
    } else if (plan == PLAN_COPY) {
        promotion->cost.copied_blocks++;
        promotion->cost.copied_bytes += block_requested(survivor->scratch);
        survivor->block = survivor->scratch;
    }
}

static int acquire_all(const struct promotion *promotion) {
    for (size_t i = 0; i < promotion->count; i++) {
        int result = acquire(promotion, &promotion->list[i]);
        if (!result)
            continue;
        while (i--)
            abandon(promotion, &promotion->list[i]);
        return result;
    }
    return 0;
}

static void check_both(const struct promotion *promotion) {
    region_check(promotion->source);
    region_check(promotion->target);
}

static int promote(struct promotion *promotion) {
    int result = check_regions(promotion);
    if (!result)
        result = check_list(promotion);
    if (result)
        return result;
    struct undo undo = remember(promotion->target);
    result = acquire_all(promotion);
    if (result) {
        restore(promotion->target, &undo);
        return result;
    }
    for (size_t i = 0; i < promotion->count; i++)
        commit(promotion, &promotion->list[i]);
    if (EBB_CHECK_FULL)
        check_both(promotion);
    return 0;
}

static void add_cost(struct ebb_promoted *cost, const struct ebb_promoted *more) {
    if (!cost)
        return;
    cost->copied_blocks += more->copied_blocks;
    cost->copied_bytes += more->copied_bytes;
    cost->relinked_blocks += more->relinked_blocks;
    cost->relinked_bytes += more->relinked_bytes;
    cost->pinned_bytes += more->pinned_bytes;
}

int ebb_promote(ebb_region source, ebb_region target, struct ebb_survivor *survivors,
                size_t count, struct ebb_promoted *cost) {
    struct promotion promotion = {.source = region_find(source), .list = survivors};
    promotion.count = count;
    promotion.site = __builtin_return_address(0);
    promotion.target = promotion.source ? region_find(target) : NULL;
    if (!promotion.target)
        return EBB_E_STALE;
    int result = promote(&promotion);
    if (!result)
        add_cost(cost, &promotion.cost);
    return result;
}

/* Blocks alive in a region and all below it. */
static uint64_t live_blocks(struct region *region) {
    uint64_t blocks = 0;
    for (struct region *at = region; at; at = region_next_below(at, region)) {
        small_fold(at);
        blocks += flow_now(&at->counted);
    }
    return blocks;
}

int ebb_close_keeping(ebb_region source, ebb_region target, struct ebb_survivor *survivors,
                      size_t count, struct ebb_promoted *cost, uint64_t *lost_blocks) {
    struct promotion promotion = {.source = region_find(source), .list = survivors};
    promotion.count = count;
    promotion.site = __builtin_return_address(0);
    promotion.target = promotion.source ? region_find(target) : NULL;
    if (!promotion.target)
        return EBB_E_STALE;
    if (promotion.source == promotion.target)
        return error_set(EBB_E_NOT_ANCESTOR, "region '%s' cannot close and keep into itself",
                         promotion.source->name);
    int result = promote(&promotion);
    if (result)
        return result;
    size_t pinned = promotion.target->pinned;
    uint64_t alive = live_blocks(promotion.source);
    if (lost_blocks)
        *lost_blocks = alive - promotion.cost.copied_blocks;
    region_close(promotion.source);
    promotion.cost.pinned_bytes += promotion.target->pinned - pinned;
    add_cost(cost, &promotion.cost);
    return 0;
}
