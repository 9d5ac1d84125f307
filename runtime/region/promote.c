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
#include "region/undo.h"

#include <string.h>

/* A run of its own costs as much as copying 3 KiB, its way back included; auto asks for a page. */
#define RUN_WORTH EBB_PAGE
#define LISTED ((uint16_t)0x4000) /* flag in `starts` while a list is checked */

struct promotion {
    struct region *source, *target;
    struct ebb_survivor *list;
    size_t count;
    const void *site; /* who promotes: the site of copies */
    bool objects;     /* what they consist of; else blocks of users */
    bool anywhere;    /* the target is any region: copies only */
    int mode_most;    /* what may be asked for */
    unsigned percent; /* of what auto relinks, so much may be pinned; 0: nothing is auto */
    struct ebb_promoted cost;
};

/* ---- checking ---- */

static struct track_slot *slot_at(const struct ebb_piece *arena, uintptr_t addr) {
    return track_find(region_of_piece(arena)->track, addr);
}

static bool enlist_slot(struct track_slot *slot) {
    bool is_new = !(slot->align & TRACK_LISTED);
    slot->align |= TRACK_LISTED;
    return is_new;
}

static bool enlist_small(uint16_t *entry) {
    bool is_new = !(*entry & LISTED);
    *entry |= LISTED;
    return is_new;
}

/* False if it is listed already. */
static bool enlist(struct ebb_piece *piece, uintptr_t addr) {
    if (piece->state == PIECE_ARENA)
        return enlist_slot(slot_at(piece, addr));
    if (piece->state != PIECE_BLOCK)
        return enlist_small(small_entry(piece, addr));
    bool is_new = !piece->flag;
    piece->flag = true;
    return is_new;
}

static void delist(struct ebb_piece *piece, uintptr_t addr) {
    if (piece->state == PIECE_BLOCK)
        piece->flag = false;
    else if (piece->state == PIECE_ARENA)
        slot_at(piece, addr)->align &= ~TRACK_LISTED;
    else
        *small_entry(piece, addr) &= (uint16_t)~LISTED;
}

/* The piece under a block that already is the target's, or NULL. */
static struct ebb_piece *owned_by_target(const struct promotion *promotion, const void *block) {
    struct ebb_piece *piece = NULL;
    size_t requested;
    uintptr_t addr = (uintptr_t)block;
    if (!range_holds(addr) || range_block_at(addr)->owner != promotion->target->owner ||
        block_owner(promotion->target, addr) != promotion->target)
        return NULL;
    return block_find(promotion->target, block, &piece, &requested) == 0 ? piece : NULL;
}

static void unlist(const struct promotion *promotion, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct ebb_survivor *survivor = &promotion->list[i];
        delist(survivor->scratch, (uintptr_t)survivor->block);
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

/* What is right is listed; its piece stays in `scratch` until something is acquired. */
static int check_survivor(const struct promotion *promotion, struct ebb_survivor *survivor) {
    struct ebb_piece *piece = owned_by_target(promotion, survivor->block);
    size_t requested;
    if (survivor->mode < EBB_PROMOTE_AUTO || survivor->mode > promotion->mode_most)
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
    if (!enlist(piece, addr))
        return error_set(EBB_E_DUPLICATE, "block %p is listed twice", survivor->block);
    survivor->scratch = piece;
    return 0;
}

static bool can_relink(const struct promotion *promotion, const struct ebb_piece *piece) {
    const struct region *source = promotion->source;
    if (source->track && track_was_arena(source->track, piece->addr))
        return false;
    if (piece->owner != source->owner || piece->state != PIECE_BLOCK || piece->block.spare ||
        piece->pins || promotion->anywhere)
        return false;
    if (piece->block.run)
        return piece->block.run->relinked.live_blocks == 1;
    return !source->heir || source->heir == promotion->target;
}

static bool may_relink(const struct promotion *promotion, const struct ebb_piece *piece, int mode) {
    return mode != EBB_PROMOTE_COPY && mode != PROMOTE_APART && can_relink(promotion, piece);
}

/* It may be relinked, and has no run that it takes along anyway. */
static bool is_weighable(const struct promotion *promotion, const struct ebb_piece *piece,
                         int mode) {
    return may_relink(promotion, piece, mode) && !piece->block.run;
}

/* Of a list the least counts that a survivor says. */
static void allow(struct promotion *promotion, const struct ebb_survivor *survivor) {
    unsigned percent = survivor->pin_percent ? survivor->pin_percent : EBB_PIN_PERCENT;
    if (survivor->mode == EBB_PROMOTE_AUTO && (!promotion->percent || percent < promotion->percent))
        promotion->percent = percent;
}

/* Of a list that is right, what is to be weighed stays listed. */
static void unlist_rest(const struct promotion *promotion) {
    for (size_t i = 0; i < promotion->count; i++) {
        const struct ebb_survivor *survivor = &promotion->list[i];
        struct ebb_piece *piece = survivor->scratch;
        if (!is_weighable(promotion, piece, survivor->mode))
            delist(piece, (uintptr_t)survivor->block);
    }
}

static int check_list(struct promotion *promotion) {
    int result = 0;
    size_t i = 0;
    while (i < promotion->count && (result = check_survivor(promotion, &promotion->list[i])) == 0)
        allow(promotion, &promotion->list[i++]);
    if (result || !promotion->percent)
        unlist(promotion, i);
    else
        unlist_rest(promotion);
    return result;
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

/* ---- choosing ---- */

/* The next block above that is weighed and shares a page with this one, or NULL. */
static struct ebb_piece *weighed_after(const struct ebb_piece *block) {
    uintptr_t end = size_align(piece_end(block), EBB_PAGE);
    for (struct ebb_piece *at = block->after; at && at->addr < end; at = at->after)
        if (at->state == PIECE_BLOCK && at->flag)
            return at;
    return NULL;
}

static bool has_weighed_before(const struct ebb_piece *block) {
    uintptr_t from = size_align_down(block->addr, EBB_PAGE);
    for (struct ebb_piece *at = block->before; at && piece_end(at) > from; at = at->before)
        if (at->state == PIECE_BLOCK && at->flag)
            return true;
    return false;
}

/*
 * A block is relinked as fast as another is placed, whatever its size; a copy is paid by the byte,
 * a run of pages once. So relinking wins where the blocks of a run have RUN_WORTH bytes; then the
 * bytes that it pins must be allowed. Blocks that share pages become one run and are weighed as
 * one; if it is not worth it, none keeps its flag. No product overflows: addresses have 47 bits.
 */
static void weigh(struct ebb_piece *first, unsigned percent) {
    const struct ebb_piece *last = first;
    size_t bytes = 0;
    for (struct ebb_piece *at = first; at; at = weighed_after(at)) {
        bytes += at->block.requested;
        last = at;
    }
    size_t pages = size_align(piece_end(last), EBB_PAGE) - size_align_down(first->addr, EBB_PAGE);
    if (bytes >= RUN_WORTH && (pages - bytes) * 100 <= bytes * percent)
        return;
    for (struct ebb_piece *at = first, *next; at; at = next) {
        next = weighed_after(at);
        at->flag = false;
    }
}

/* Of what is listed, what auto relinks keeps its flag. */
static void weigh_all(const struct promotion *promotion) {
    if (!promotion->percent)
        return;
    for (size_t i = 0; i < promotion->count; i++) {
        struct ebb_piece *piece = promotion->list[i].scratch;
        if (piece->state == PIECE_BLOCK && piece->flag && !has_weighed_before(piece))
            weigh(piece, promotion->percent);
    }
}

static void forget_weight(struct ebb_piece *piece) {
    if (piece->state == PIECE_BLOCK && piece->flag)
        piece->flag = false;
}

static bool should_relink(const struct promotion *promotion, const struct ebb_piece *piece,
                          int mode) {
    if (!may_relink(promotion, piece, mode))
        return false;
    return mode == EBB_PROMOTE_RELINK || piece->block.run || piece->flag;
}

/* ---- acquiring ---- */

static size_t natural_align(const struct ebb_survivor *survivor) {
    if (survivor->align)
        return survivor->align;
    uintptr_t addr = (uintptr_t)survivor->block;
    return size_smaller((size_t)(addr & (~addr + 1)), EBB_SMALL_MAX_ALIGN);
}

/* Bytes asked for a live block of which the address is known to be right. */
static size_t block_requested(const void *block) {
    const struct ebb_piece *piece = range_block_at((uintptr_t)block);
    if (piece->state == PIECE_ARENA)
        return slot_at(piece, (uintptr_t)block)->bytes;
    return piece->state == PIECE_BLOCK ? piece->block.requested
                                       : (size_t)*small_entry(piece, (uintptr_t)block) - 1;
}

/* Of objects only elements that lay in shared memory go there; users' blocks all do. */
static bool is_private(const struct promotion *promotion, const void *block) {
    return promotion->objects && !region_of_piece(range_block_at((uintptr_t)block))->shared;
}

static void *copy_block(const struct promotion *promotion, const struct ebb_survivor *survivor) {
    size_t requested = block_requested(survivor->block), align = natural_align(survivor);
    void *copy = is_private(promotion, survivor->block)
                     ? block_allocate_private(promotion->target, requested, align, promotion->site)
                     : block_allocate(promotion->target, requested, align, promotion->site);
    if (copy)
        memcpy(copy, survivor->block, requested);
    return copy;
}

/* Between acquiring and committing, the way stands beside the mode that was asked for. */
enum way { WAY_STAY = 0, WAY_COPY = 1 << 4, WAY_RELINK = 2 << 4, WAY_MASK = 3 << 4 };

static enum way choose(const struct promotion *promotion, struct ebb_piece *piece, int mode) {
    bool is_there = promotion->source == promotion->target ||
                    (piece->owner == promotion->target->owner && mode != PROMOTE_APART);
    bool relinks = should_relink(promotion, piece, mode);
    forget_weight(piece);
    return is_there ? WAY_STAY : relinks ? WAY_RELINK : WAY_COPY;
}

/* Acquires what one survivor needs into its scratch; a failure leaves it as it was. */
static int acquire(const struct promotion *promotion, struct ebb_survivor *survivor) {
    struct ebb_piece *piece = survivor->scratch;
    enum way way = choose(promotion, piece, survivor->mode);
    survivor->scratch = NULL;
    if (way == WAY_RELINK) {
        survivor->scratch = piece_take(&promotion->target->store);
        if (!survivor->scratch)
            return error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'",
                             promotion->target->name);
    } else if (way == WAY_COPY) {
        survivor->scratch = copy_block(promotion, survivor);
        if (!survivor->scratch)
            return error_latest();
    }
    survivor->mode |= (int)way;
    return 0;
}

static void abandon(const struct promotion *promotion, struct ebb_survivor *survivor) {
    int way = survivor->mode & WAY_MASK;
    if (way == WAY_RELINK)
        piece_give(&promotion->target->store, survivor->scratch);
    else if (way == WAY_COPY)
        ebb_region_release(region_handle(promotion->target), survivor->scratch);
    survivor->mode &= ~WAY_MASK;
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
    const struct region *source = promotion->source, *target = promotion->target;
    int way = survivor->mode & WAY_MASK;
    bool apart = (survivor->mode & ~WAY_MASK) == PROMOTE_APART;
    if (source->track && source != target)
        track_note_survivor(source->track, (uintptr_t)survivor->block, way == WAY_STAY,
                            apart || target != source->parent);
    survivor->mode = way == WAY_RELINK ? EBB_PROMOTE_RELINK : EBB_PROMOTE_COPY;
    if (way == WAY_RELINK) {
        relink(promotion, survivor->block, survivor->scratch);
    } else if (way == WAY_COPY) {
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
        for (size_t left = i + 1; left < promotion->count; left++)
            forget_weight(promotion->list[left].scratch);
        while (i--)
            abandon(promotion, &promotion->list[i]);
        return result;
    }
    return 0;
}

static void check_both(const struct promotion *promotion) {
    region_check_blocks(promotion->source);
    region_check_blocks(promotion->target);
}

static int promote(struct promotion *promotion) {
    int result = check_regions(promotion);
    if (!result)
        result = check_list(promotion);
    if (result)
        return result;
    struct undo undo;
    undo_remember(promotion->target, &undo);
    weigh_all(promotion);
    result = acquire_all(promotion);
    if (result) {
        undo_restore(promotion->target, &undo);
        return result;
    }
    for (size_t i = 0; i < promotion->count; i++)
        commit(promotion, &promotion->list[i]);
    if (EBB_CHECK_FULL)
        check_both(promotion);
    return 0;
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

int ebb_promote(ebb_region source, ebb_region target, struct ebb_survivor *survivors,
                size_t count, struct ebb_promoted *cost) {
    struct promotion promotion = {.source = region_find(source), .list = survivors};
    promotion.count = count;
    promotion.site = __builtin_return_address(0);
    promotion.mode_most = EBB_PROMOTE_RELINK;
    promotion.target = promotion.source ? region_find(target) : NULL;
    int result = promotion.target ? promote(&promotion) : EBB_E_STALE;
    if (!result)
        promoted_add(cost, &promotion.cost);
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
    promotion.mode_most = EBB_PROMOTE_RELINK;
    promotion.target = promotion.source ? region_find(target) : NULL;
    if (!promotion.target)
        return EBB_E_STALE;
    if (promotion.source == promotion.target)
        return error_set(EBB_E_NOT_ANCESTOR, "region '%s' cannot close and keep into itself",
                         promotion.source->name);
    if (promotion.source->closing)
        return region_is_closing(promotion.source);
    int result = promote(&promotion);
    if (result)
        return result;
    struct ebb_closed closed = {0, 0};
    size_t pinned = promotion.target->pinned;
    uint64_t alive = live_blocks(promotion.source);
    if (lost_blocks)
        *lost_blocks = alive - promotion.cost.copied_blocks;
    region_close(promotion.source, &closed);
    promoted_add_pinned(&promotion.cost, promotion.target, pinned);
    promoted_add(cost, &promotion.cost);
    return region_closed(&closed);
}
