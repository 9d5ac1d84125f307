// SPDX-License-Identifier: Apache-2.0
/*
 * large.c - the large lane: best fit with split and merge in the region's runs of pages.
 *
 *     run         | block | free | window | block |  top  |end
 *
 * Free pieces are in the fit, except the top, which is cut only when nothing else fits, or where it
 * was used before and suits a small block best: so a region is as long as what it had to hold at
 * once, and a measuring region, whose top never ends, measures exactly. A run that is wholly free
 * goes back to the pool, except the main run; of roots that go on see keeper.c.
 *
 * The block that was released last is *loose*: the next one gets it as it is if it has that size.
 * Otherwise it is merged with its neighbours before anything looks for room, so that it changes no
 * placement.
 *
 * Invariant: no two free pieces touch. A function that fails has taken nothing.
 */
#include "region/large.h"
#include "base/check.h"
#include "base/error.h"
#include "region/block.h"
#include "region/count.h"
#include "region/keeper.h"
#include "region/relink.h"
#include "region/relinked.h"
#include "region/remote.h"
#include "region/runs.h"
#include "region/small.h"

/* Each allocation is one function: a call within would cost as much as what it does. */
#define ONE_BODY static inline __attribute__((always_inline))

#define LARGE_LEAST RANGE_SLOT /* smaller blocks would share an entry of block_at */

#define SMALL_PART 64 /* of a region: up to this a block is small beside it */
#define BESIDE_PART 8 /* of a region: the most that its other runs have */

/* ---- placing ---- */

static bool fits_at(const struct ebb_piece *piece, size_t bytes, size_t align) {
    uintptr_t start = size_align(piece->addr, align);
    return start < piece_end(piece) && bytes <= piece_end(piece) - start;
}

/* True if the block is small beside the used part of the main run. */
static inline bool is_small_there(const struct region *region, size_t bytes) {
    const struct ebb_piece *run = region->main_run;
    return run && bytes <= (region->highest - run->addr) / SMALL_PART;
}

/* Where the used part of the top ends. */
static inline uintptr_t used_end(const struct region *region, const struct ebb_piece *top) {
    return size_smaller(region->highest, piece_end(top));
}

/* False if the used part of the top has no room for the block, or is no smaller than the gap. */
static inline bool may_suit_top(const struct region *region, const struct ebb_piece *gap,
                                size_t bytes) {
    const struct ebb_piece *top = region->top;
    return top && used_end(region, top) - top->addr - bytes < gap->bytes - bytes;
}

/* True if the used part of the top fits a small block better than any gap, so that larger gaps stay
 * whole. Not where blocks outlive steps, nor beside other runs, whose gaps would be left instead.
 * */
static bool suits_top(const struct region *region, const struct ebb_piece *gap, size_t bytes,
                      size_t align) {
    const struct ebb_piece *top = region->top, *run = region->main_run;
    uint64_t all = region->reserved.current;
    bool keeps = region->keeper && !region->hinted && !region->measuring; /* measured as played */
    if (keeps || run->bytes < all - all / BESIDE_PART || !may_suit_top(region, gap, bytes))
        return false;
    uintptr_t start = size_align(top->addr, align), end = used_end(region, top);
    return start < end && bytes <= end - start && bytes <= (end - run->addr) / SMALL_PART;
}

/* The smallest free piece that fits, or the top, if it suits better or none does; else NULL. */
ONE_BODY struct ebb_piece *find_place(const struct region *region, size_t bytes, size_t align) {
    struct ebb_piece *piece = NULL;
    if (!fit_is_empty(&region->fit)) /* where blocks come and go like a stack, it mostly is */
        piece = fit_find(&region->fit, bytes);
    if (piece && align > EBB_UNIT && !fits_at(piece, bytes, align))
        piece = fit_find(&region->fit, bytes + align - EBB_UNIT);
    if (piece && is_small_there(region, bytes) && suits_top(region, piece, bytes, align))
        return region->top;
    if (!piece && region->top && fits_at(region->top, bytes, align))
        piece = region->top;
    return piece;
}

/* Notes how high the top has begun, which a measuring region has to know. */
static void note_highest(struct region *region, uintptr_t addr) {
    if (addr > region->highest)
        region->highest = addr;
}

/* Splits what lies behind [piece->addr, +bytes) off and leaves it free. */
ONE_BODY void cut_rest(struct region *region, struct ebb_piece *piece, size_t bytes) {
    bool was_top = piece == region->top;
    if (was_top) {
        note_highest(region, piece->addr + bytes);
        region->top = NULL;
    }
    if (piece->bytes == bytes)
        return;
    struct ebb_piece *rest = piece_take(&region->store);
    piece_split(piece, rest, piece->addr + bytes);
    rest->word = piece->word; /* free, or the top; and still idle, see keeper.c */
    if (was_top)
        region->top = rest;
    else
        fit_insert(&region->fit, rest);
}

/* Takes the first `bytes` of a piece in the fit; `rest` is the store's next entry. */
ONE_BODY void cut_begin(struct region *region, struct ebb_piece *piece, struct ebb_piece *rest,
                        size_t bytes) {
    uintptr_t addr = piece->addr + bytes;
    size_t left = piece->bytes - bytes;
    fit_leave(&region->fit, piece);
    if (!left) {
        region->fit.count--;
        return;
    }
    struct ebb_piece *after = piece->after;
    region->store.free = rest->next;
    region->store.ready--;
    piece_put_addr(rest, addr);
    piece_put_bytes(rest, left);
    rest->word = piece->word;
    rest->after = after;
    after->before = rest;
    rest->before = piece;
    piece->after = rest;
    piece_put_bytes(piece, bytes);
    fit_enter(&region->fit, rest, left);
}

/* The piece, without what lies before `start`, which stays free. */
static __attribute__((noinline)) struct ebb_piece *cut_front(struct region *region,
                                                             struct ebb_piece *piece,
                                                             uintptr_t start) {
    struct ebb_piece *place = piece_take(&region->store);
    piece_split(piece, place, start);
    if (piece == region->top)
        region->top = place;
    piece->state = PIECE_FREE;
    piece->flag = false; /* it is as long again when the place is free */
    fit_insert(&region->fit, piece);
    return place;
}

/* Takes [start, +bytes) of a free piece; two entries are prepared. */
ONE_BODY struct ebb_piece *cut_place(struct region *region, struct ebb_piece *piece,
                                     uintptr_t start, size_t bytes) {
    if (piece != region->top)
        fit_remove(&region->fit, piece);
    if (start > piece->addr)
        piece = cut_front(region, piece, start);
    cut_rest(region, piece, bytes);
    return piece;
}

/* The top, grown to have room. */
static struct ebb_piece *grow_top(struct region *region, size_t bytes, size_t align) {
    if (runs_grow(region, bytes, align) != 0)
        return NULL;
    CHECK(region->top && fits_at(region->top, bytes, align));
    return region->top;
}

/* True if the loose piece, once it is free, would be found for a block of its size: nothing free
 * lies behind it, and no piece fits as well; if it would be the top, none at all. */
static bool is_best(const struct region *region, const struct ebb_piece *loose) {
    const struct ebb_piece *after = loose->after, *other = NULL;
    if (!fit_is_empty(&region->fit))
        other = fit_find(&region->fit, loose->bytes);
    if (after == region->top || (region->main_run && after == region->main_run->run.end))
        return !other;
    return after->state != PIECE_FREE &&
           !(other && other->bytes == loose->bytes && other->addr < loose->addr);
}

/* The loose piece, if it is such a place; else it is free. */
static struct ebb_piece *take_loose(struct region *region, size_t bytes, size_t align) {
    struct ebb_piece *loose = region->loose;
    region->loose = NULL;
    if (loose->bytes == bytes && (loose->addr & (align - 1)) == 0 && is_best(region, loose))
        return loose;
    large_free(region, loose);
    return NULL;
}

/* A place where none is free: with pages that are free to have, if need be, else new ones. */
static __attribute__((noinline)) struct ebb_piece *make_place(struct region *region, size_t bytes,
                                                              size_t align) {
    struct ebb_piece *piece =
        runs_claim(region, bytes, align) ? find_place(region, bytes, align) : NULL;
    return piece ? piece : grow_top(region, bytes, align);
}

ONE_BODY struct ebb_piece *place(struct region *region, size_t bytes, size_t align) {
    struct ebb_piece *piece;
    if (region->loose && (piece = take_loose(region, bytes, align)) != NULL)
        return piece;
    if (!(piece = find_place(region, bytes, align)) && !(piece = make_place(region, bytes, align)))
        return NULL;
    if (!piece_prepare(&region->store, 2)) {
        error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'", region->name);
        return NULL;
    }
    return cut_place(region, piece, size_align(piece->addr, align), bytes);
}

/* Where a place in a free piece ends at the latest: in the top, behind what has been used, for
 * no pages are touched behind that yet. */
static uintptr_t last_end(const struct region *region, const struct ebb_piece *piece, size_t bytes,
                          size_t align) {
    uintptr_t least = size_align(piece->addr, align) + bytes;
    if (piece != region->top)
        return piece_end(piece);
    return size_smaller(size_larger(region->highest, least), piece_end(piece));
}

/* As place(), but at the end of what is free there. */
static struct ebb_piece *place_behind(struct region *region, size_t bytes, size_t align) {
    large_settle(region);
    struct ebb_piece *piece = find_place(region, bytes, align);
    if ((!piece && !(piece = make_place(region, bytes, align))) ||
        !piece_prepare(&region->store, 2))
        return NULL;
    uintptr_t start = last_end(region, piece, bytes, align) - bytes;
    return cut_place(region, piece, size_align_down(start, align), bytes);
}

struct ebb_piece *large_place(struct region *region, size_t bytes, size_t align) {
    return place(region, bytes, align);
}

/* ---- freeing ---- */

void large_settle(struct region *region) {
    struct ebb_piece *loose = region->loose;
    region->loose = NULL;
    if (loose)
        large_free(region, loose);
}

/* Nothing lies behind the piece in its run. */
static void free_last(struct region *region, struct ebb_piece *piece, bool top) {
    const struct ebb_piece *main_run = region->main_run;
    if (top || (main_run && piece->after == main_run->run.end)) {
        piece->state = PIECE_TOP;
        region->top = piece;
    } else if (!piece->before && !piece->after->end.run->pins) {
        runs_give_empty(region, piece);
    } else {
        fit_insert(&region->fit, piece);
    }
}

/* Merges a place with its neighbours, none of which is the loose one. */
static inline void free_apart(struct region *region, struct ebb_piece *piece) {
    struct ebb_piece *before = piece->before, *after = piece->after;
    bool top = after == region->top;
    if (after->state == PIECE_FREE)
        fit_remove(&region->fit, after);
    if (after->state == PIECE_FREE || top) {
        if (after->flag)
            keeper_joins_idle(region, piece, after);
        piece_absorb_after(piece, &region->store);
    }
    if (before && before->state == PIECE_FREE) {
        fit_remove(&region->fit, before);
        before->flag = piece->flag;
        piece_absorb_after(before, &region->store);
        piece = before;
    }
    piece->state = PIECE_FREE;
    if (top || piece->after->state == PIECE_END)
        free_last(region, piece, top);
    else
        fit_insert(&region->fit, piece);
}

/* Not inlined where it is rare: what is always done needs fewer registers then. */
__attribute__((noinline)) void large_free(struct region *region, struct ebb_piece *piece) {
    if (region->loose && (region->loose == piece->before || region->loose == piece->after))
        large_settle(region); /* both together may be a whole run */
    free_apart(region, piece);
}

/* The same out of the way: in line it needs registers that nobody else does. */
static __attribute__((noinline)) void free_elsewhere(struct region *region,
                                                     struct ebb_piece *piece) {
    free_apart(region, piece);
}

/* True if the block is the first of a run that may go back to the pool. */
static bool leads_a_run(const struct region *region, const struct ebb_piece *block) {
    const struct ebb_piece *run = region->main_run;
    return !block->before && block->after != region->top && !(run && block->after == run->run.end);
}

/* The block joins the free piece before it, and nothing free lies behind. */
ONE_BODY void free_behind(struct region *region, struct ebb_piece *before,
                          struct ebb_piece *block) {
    struct ebb_piece *after = block->after;
    size_t bytes = before->bytes + block->bytes;
    fit_leave(&region->fit, before);
    before->flag = false;
    piece_put_bytes(before, bytes);
    before->after = after;
    after->before = before;
    piece_give(&region->store, block);
    fit_enter(&region->fit, before, bytes);
}

/* A block that was released is loose. Where free pages are in front of it there is nothing to wait
 * for, and where there is nothing at all its run may be wholly free. */
ONE_BODY void let_loose(struct region *region, struct ebb_piece *block) {
    struct ebb_piece *before = block->before;
    if (before && before->state == PIECE_FREE) {
        if (block->after->state == PIECE_BLOCK)
            free_behind(region, before, block);
        else
            free_elsewhere(region, block);
    } else if (leads_a_run(region, block)) {
        free_elsewhere(region, block);
    } else {
        block->state = PIECE_LOOSE;
        region->loose = block;
    }
}

/* ---- blocks ---- */

/* There is more to see to than the block that comes or goes: what was bumped is not in the counters
 * yet, what was released waits, a budget wants to hear of it. */
static inline bool has_more_to_do(const struct region *region) {
    /* relaxed: as in remote_look() */
    void *remote = atomic_load_explicit(&region->remote, memory_order_relaxed);
    uintptr_t folded = region->lane.cursor ^ region->folded;
    return ((uintptr_t)region->loose | (uintptr_t)remote | folded | region->metered) != 0;
}

/* The budget is charged, and the block has its place; or NULL with an error. */
ONE_BODY struct ebb_piece *begin_block(struct region *region, size_t bytes, size_t align,
                                       bool behind, size_t *used) {
    if (!size_round_up(size_larger(bytes, LARGE_LEAST), EBB_UNIT, used)) {
        error_set(EBB_E_SIZE, "%zu bytes are more than half the address space", bytes);
        return NULL;
    }
    remote_look(region); /* not later: nothing may end while a place is between two states */
    if (region->metered && count_charge(region, *used) != 0)
        return NULL;
    size_t needed = size_larger(align, EBB_UNIT);
    struct ebb_piece *block =
        behind ? place_behind(region, *used, needed) : place(region, *used, needed);
    if (!block)
        count_uncharge(region, *used);
    return block;
}

/* What was bumped is in the counters. */
ONE_BODY void *enter_block(struct region *region, struct ebb_piece *block, size_t bytes,
                           size_t used) {
    block->state = PIECE_BLOCK;
    block->flag = false;
    block->claimed = false;
    block->pins = 0;
    block->block.requested = bytes;
    block->block.run = block->block.spare = NULL;
    piece_push(&region->blocks, block);
    range_name_block(block);
    count_block(region, bytes, used);
    region->large_used += used;
    region->large_blocks++;
    if (!region->hollow) {
        poison_unused(block->addr, used);
        poison_opened(block->addr, bytes);
    }
    return (void *)block->addr;
}

ONE_BODY void *fold_and_enter(struct region *region, struct ebb_piece *block, size_t bytes,
                              size_t used) {
    small_fold(region);
    return enter_block(region, block, bytes, used);
}

/* Most blocks begin a free piece. What is not so simple goes the long way, and nothing was done. */
void *large_alloc_plain(struct region *region, size_t bytes) {
    size_t used = size_align(bytes, EBB_UNIT);
    if (has_more_to_do(region) || fit_is_empty(&region->fit))
        return large_alloc(region, bytes, EBB_UNIT, true);
    struct ebb_piece *piece = fit_find_here(&region->fit, used), *rest;
    if (!piece || (rest = region->store.free) == NULL ||
        (is_small_there(region, used) && may_suit_top(region, piece, used)))
        return large_alloc(region, bytes, EBB_UNIT, true);
    cut_begin(region, piece, rest, used);
    return enter_block(region, piece, bytes, used);
}

void *large_alloc(struct region *region, size_t bytes, size_t align, bool alone) {
    size_t used;
    struct ebb_piece *block = begin_block(region, bytes, align, false, &used);
    if (block)
        return fold_and_enter(region, block, bytes, used);
    return alone ? block_refused(region, bytes, align) : NULL;
}

void *large_alloc_behind(struct region *region, size_t bytes, size_t align) {
    size_t used;
    struct ebb_piece *block = begin_block(region, bytes, align, true, &used);
    return block ? fold_and_enter(region, block, bytes, used) : NULL;
}

/* The block leaves the counters, and its bytes. */
ONE_BODY void leave_block(struct region *region, struct ebb_piece *block) {
    region->large_used -= block->bytes;
    count_block_gone(region, block->block.requested, block->bytes);
    region_poison(region, block->addr, block->bytes);
}

int large_release(struct region *region, struct ebb_piece *block) {
    small_fold(region);
    leave_block(region, block);
    count_uncharge(region, block->bytes);
    if (block->block.spare) {
        relink_return(region, block);
        return 0;
    }
    piece_unlink(&region->blocks, block);
    if (block->block.run) {
        relinked_release(region, block);
        return 0;
    }
    large_settle(region);
    let_loose(region, block);
    return 0;
}

int large_release_plain(struct region *region, struct ebb_piece *block) {
    if (region->track || has_more_to_do(region) ||
        ((uintptr_t)block->block.run | (uintptr_t)block->block.spare))
        return large_release(region, block);
    leave_block(region, block);
    piece_unlink(&region->blocks, block);
    let_loose(region, block);
    return 0;
}

/* Takes `extra` bytes from the free piece behind the block. */
static bool take_from_after(struct region *region, struct ebb_piece *block, size_t extra) {
    struct ebb_piece *after = block->after;
    if ((after->state != PIECE_FREE && after->state != PIECE_TOP) || after->bytes < extra)
        return false;
    bool top = after == region->top;
    if (top)
        note_highest(region, after->addr + extra);
    else
        fit_remove(&region->fit, after);
    if (after->bytes == extra) {
        piece_absorb_after(block, &region->store);
        if (top)
            region->top = NULL;
        return true;
    }
    after->addr += extra;
    after->bytes -= extra;
    block->bytes += extra;
    if (!top)
        fit_insert(&region->fit, after);
    return true;
}

static int extend_block(struct region *region, struct ebb_piece *block, size_t used) {
    size_t extra = used - block->bytes;
    if (block->block.run || block->block.spare)
        return error_set(EBB_E_NO_ROOM, "block %p was promoted by relinking: it cannot grow",
                         (void *)block->addr);
    if (region->metered && count_charge(region, extra) != 0)
        return error_latest();
    if (take_from_after(region, block, extra))
        return 0;
    count_uncharge(region, extra);
    return error_set(EBB_E_NO_ROOM, "block %p: %zu bytes asked, %zu are there and too few free",
                     (void *)block->addr, used, block->bytes);
}

/* What lies behind the first `used` bytes becomes free; without an entry for it, it stays. */
static size_t cut_block(struct region *region, struct ebb_piece *block, size_t used) {
    if (block->block.run || block->block.spare)
        return 0;
    struct ebb_piece *rest = piece_take(&region->store);
    if (!rest)
        return 0;
    size_t freed = block->bytes - used;
    piece_split(block, rest, block->addr + used);
    large_free(region, rest);
    count_uncharge(region, freed);
    return freed;
}

int large_resize(struct region *region, struct ebb_piece *block, size_t bytes) {
    size_t used, before = block->bytes;
    large_settle(region); /* it may be what lies behind */
    small_fold(region);
    region->calm = 0; /* after the fold, which sets it: counters may grow below */
    if (!size_round_up(size_larger(bytes, LARGE_LEAST), EBB_UNIT, &used))
        return error_set(EBB_E_SIZE, "%zu bytes are more than half the address space", bytes);
    if (used > before) {
        int result = extend_block(region, block, used);
        if (result)
            return result;
        flow_enter(&region->used, used - before);
        region->large_used += used - before;
    } else if (used < before) {
        size_t cut = cut_block(region, block, used);
        flow_leave(&region->used, cut);
        region->large_used -= cut;
    }
    flow_change(&region->requested, block->block.requested, bytes);
    block->block.requested = bytes;
    if (!region->hollow) {
        poison_unused(block->addr, size_larger(before, block->bytes));
        poison_opened(block->addr, bytes);
    }
    return 0;
}
