// SPDX-License-Identifier: Apache-2.0
/*
 * large.c - the large lane: best fit with split and merge over the region's runs of pages.
 *
 *     main run    | block | free | window | block |   top    |   top: grows with the run
 *     other run   | free | block |
 *     relinked    |  survivor  |                                 not part of the lane
 *
 * Free pieces are in the fit, except the top, which is cut only when nothing else fits: so a
 * region is as long as what it had to hold at once, and a measuring region, whose top never
 * ends, measures exactly. A run that is wholly free goes back to the pool, except the main run.
 *
 * Invariant: pieces tile each run that is not relinked; no two free ones touch. A function that
 * fails has taken nothing.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/os.h"
#include "region/small.h"

#define GROWTH_LEAST ((size_t)16 << 10)
#define GROWTH_MOST ((size_t)1 << 20)
#define LARGE_LEAST RANGE_SLOT /* smaller blocks would share an entry of block_at */

/* ---- growing ---- */

static size_t clamp(size_t value, size_t least, size_t most) {
    return size_smaller(size_larger(value, least), most);
}

/* How much more than needed is asked for: pages that are hot cost nothing. */
static void wish_for_growth(const struct region *region, struct pages_wish *wish) {
    size_t reserved = region->reserved.current;
    size_t cold = size_align(clamp(reserved / 8, GROWTH_LEAST, GROWTH_MOST), EBB_PAGE);
    size_t hot = region->depth ? size_align(size_larger(reserved / 2, cold), EBB_PAGE) : cold;
    wish->want = size_larger(hot, wish->least);
    wish->want_cold = size_larger(cold, wish->least);
    wish->most_cold = 0;
    wish->scrape = region->depth == 0;
    if (region->measuring)
        wish->least = wish->want = wish->want_cold =
            size_larger(wish->least, size_align(range.bytes / 64, EBB_PAGE));
}

static struct ebb_piece *new_top(struct region *region, uintptr_t addr, size_t bytes) {
    struct ebb_piece *top = piece_take(&region->store);
    CHECK(top);
    *top = (struct ebb_piece){
        .addr = addr, .bytes = bytes, .state = PIECE_TOP};
    piece_set_owner(top, region->owner);
    return top;
}

static void retire_top(struct region *region) {
    if (!region->top)
        return;
    region->top->state = PIECE_FREE;
    fit_insert(&region->fit, region->top);
    region->top = NULL;
}

static void add_run(struct region *region, struct ebb_piece *run) {
    retire_top(region);
    struct ebb_piece *top = new_top(region, run->addr, run->bytes);
    run->run.first = top;
    piece_set_owner(run, region->owner);
    piece_push(&region->runs, run);
    region->run_count++;
    region->main_run = run;
    region->highest = run->addr;
    region->top = top;
    meter_add(&region->reserved, run->bytes);
}

/* The main run became longer by `gained`. */
static void lengthen_top(struct region *region, size_t gained) {
    meter_add(&region->reserved, gained);
    if (region->top) {
        region->top->bytes += gained;
        return;
    }
    struct ebb_piece *run = region->main_run, *last = region->last;
    struct ebb_piece *top = new_top(region, piece_end(run) - gained, gained);
    top->before = last;
    last->after = top;
    region->top = top;
}

static int take_pages(struct region *region, const struct pages_wish *wish) {
    size_t gained;
    if (!piece_prepare(&region->store, 1))
        return error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'", region->name);
    struct ebb_piece *run =
        pool_take(region->pool, region->main_run, region->owner, wish, &gained);
    if (run)
        add_run(region, run);
    else if (gained)
        lengthen_top(region, gained);
    else
        return ebb_last_error();
    return 0;
}

/* Makes the top long enough for `bytes` at `align`. */
static int grow(struct region *region, size_t bytes, size_t align) {
    struct pages_wish wish = {0};
    size_t slack = align > EBB_PAGE ? align - EBB_PAGE : 0, total;
    if (!size_add(bytes, slack, &total) || !size_round_up(total, EBB_PAGE, &wish.least))
        return error_set(EBB_E_SIZE, "%zu bytes at alignment %zu overflow", bytes, align);
    uintptr_t from = region->top        ? region->top->addr
                     : region->main_run ? piece_end(region->main_run)
                                        : 0;
    uintptr_t have = region->main_run ? piece_end(region->main_run) : 0;
    size_t need = size_align(from, align) + bytes - have;
    wish.extend = size_align(need, EBB_PAGE);
    wish_for_growth(region, &wish);
    return take_pages(region, &wish);
}

int large_reserve(struct region *region, size_t bytes) {
    struct pages_wish wish = {0};
    if (!size_round_up(bytes, EBB_PAGE, &wish.least))
        return error_set(EBB_E_SIZE, "hint of %zu bytes overflows", bytes);
    wish.extend = wish.want = wish.want_cold = wish.least;
    return take_pages(region, &wish);
}

/* ---- placing ---- */

static bool fits_at(const struct ebb_piece *piece, size_t bytes, size_t align) {
    uintptr_t start = size_align(piece->addr, align);
    return start < piece_end(piece) && bytes <= piece_end(piece) - start;
}

static struct ebb_piece *find_place(const struct region *region, size_t bytes, size_t align) {
    struct ebb_piece *piece = fit_find(&region->fit, bytes);
    if (!piece || align <= EBB_UNIT || fits_at(piece, bytes, align))
        return piece;
    return fit_find(&region->fit, bytes + align - EBB_UNIT);
}

/* Splits what lies behind [piece->addr, +bytes) off and leaves it free. */
static void cut_rest(struct region *region, struct ebb_piece *piece, size_t bytes) {
    bool was_top = piece == region->top;
    if (was_top && piece->addr + bytes > region->highest)
        region->highest = piece->addr + bytes;
    if (piece->bytes == bytes) {
        if (was_top) {
            region->top = NULL;
            region->last = piece;
        }
        return;
    }
    struct ebb_piece *rest = piece_take(&region->store);
    piece_split(piece, rest, piece->addr + bytes);
    rest->state = was_top ? PIECE_TOP : PIECE_FREE;
    if (was_top)
        region->top = rest;
    else
        fit_insert(&region->fit, rest);
}

/* Takes [aligned start, +bytes) of a free piece; two entries are prepared. */
static struct ebb_piece *cut_place(struct region *region, struct ebb_piece *piece, size_t bytes,
                                   size_t align) {
    uintptr_t start = size_align(piece->addr, align);
    if (piece != region->top)
        fit_remove(&region->fit, piece);
    if (start > piece->addr) {
        struct ebb_piece *place = piece_take(&region->store);
        piece_split(piece, place, start);
        if (piece == region->top)
            region->top = place;
        piece->state = PIECE_FREE;
        fit_insert(&region->fit, piece);
        piece = place;
    }
    cut_rest(region, piece, bytes);
    return piece;
}

struct ebb_piece *large_place(struct region *region, size_t bytes, size_t align) {
    if (!piece_prepare(&region->store, 2)) {
        error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'", region->name);
        return NULL;
    }
    struct ebb_piece *piece = find_place(region, bytes, align);
    if (!piece) {
        if ((!region->top || !fits_at(region->top, bytes, align)) &&
            grow(region, bytes, align) != 0)
            return NULL;
        if (!piece_prepare(&region->store, 2)) {
            error_set(EBB_E_MEMORY, "no bookkeeping left for region '%s'", region->name);
            return NULL;
        }
        piece = region->top;
        CHECK(piece && fits_at(piece, bytes, align));
    }
    return cut_place(region, piece, bytes, align);
}

/* ---- freeing ---- */

static void give_run(struct region *region, struct ebb_piece *run) {
    piece_unlink(&region->runs, run);
    region->run_count--;
    meter_subtract(&region->reserved, run->bytes);
    pool_give(region->pool, run);
}

/* A free piece that fills its run: the run goes back. */
static void give_empty_run(struct region *region, struct ebb_piece *piece) {
    struct ebb_piece *run = range_run_at(piece->addr);
    CHECK(run && run->addr == piece->addr && run->bytes == piece->bytes);
    piece_give(&region->store, piece);
    give_run(region, run);
}

static void absorb_free_after(struct region *region, struct ebb_piece *piece) {
    struct ebb_piece *after = piece->after;
    if (!after || after->state != PIECE_FREE)
        return;
    fit_remove(&region->fit, after);
    piece_absorb_after(piece, &region->store);
}

/* The piece borders on the growing end of the main run: it becomes the top. */
static void become_top(struct region *region, struct ebb_piece *piece) {
    if (region->top)
        piece_absorb_after(piece, &region->store);
    piece->state = PIECE_TOP;
    region->top = piece;
}

void large_free(struct region *region, struct ebb_piece *piece) {
    struct ebb_piece *before = piece->before;
    if (before && before->state == PIECE_FREE) {
        fit_remove(&region->fit, before);
        piece_absorb_after(before, &region->store);
        piece = before;
    }
    absorb_free_after(region, piece);
    piece->state = PIECE_FREE;
    bool at_top = region->top ? piece->after == region->top
                              : piece_end(piece) == piece_end(region->main_run);
    if (at_top)
        become_top(region, piece);
    else if (!piece->before && !piece->after)
        give_empty_run(region, piece);
    else
        fit_insert(&region->fit, piece);
}

/* ---- blocks ---- */

void *large_alloc(struct region *region, size_t bytes, size_t align) {
    size_t used;
    align = size_larger(align, EBB_UNIT);
    if (!size_round_up(size_larger(bytes, LARGE_LEAST), EBB_UNIT, &used)) {
        error_set(EBB_E_SIZE, "%zu bytes are more than half the address space", bytes);
        return NULL;
    }
    if (region->metered && count_charge(region, used) != 0)
        return NULL;
    struct ebb_piece *block = large_place(region, used, align);
    if (!block) {
        count_uncharge(region, used);
        return NULL;
    }
    block->state = PIECE_BLOCK;
    block->flag = false;
    block->block.requested = bytes;
    block->block.run = block->block.spare = NULL;
    piece_push(&region->blocks, block);
    range_name_block(block);
    count_block(region, bytes, used);
    region->large_used += used;
    region->large_blocks++;
    if (!region->measuring) {
        poison_unused(block->addr, used);
        poison_opened(block->addr, bytes);
    }
    return (void *)block->addr;
}

/* The last survivor of a relinked run is gone: its pages go back. */
static void release_survivor(struct region *region, struct ebb_piece *block) {
    struct ebb_piece *run = block->block.run;
    region->pinned += block->bytes;
    run->run.used -= block->bytes;
    piece_give(&region->store, block);
    if (--run->run.live_blocks)
        return;
    region->pinned -= run->bytes;
    give_run(region, run);
}

void large_release(struct region *region, struct ebb_piece *block) {
    small_fold(region);
    region->large_used -= block->bytes;
    count_block_gone(region, block->block.requested, block->bytes);
    count_uncharge(region, block->bytes);
    if (!region->measuring) {
        poison_released(block->addr, block->bytes);
        poison_opened(block->addr, block->bytes);
    }
    if (block->block.spare) {
        promote_return(region, block);
        return;
    }
    piece_unlink(&region->blocks, block);
    if (block->block.run)
        release_survivor(region, block);
    else
        large_free(region, block);
}

/* Takes `extra` bytes from the free piece behind the block. */
static bool take_from_after(struct region *region, struct ebb_piece *block, size_t extra) {
    struct ebb_piece *after = block->after;
    if (!after || (after->state != PIECE_FREE && after->state != PIECE_TOP) ||
        after->bytes < extra)
        return false;
    bool top = after == region->top;
    if (!top)
        fit_remove(&region->fit, after);
    if (after->bytes == extra) {
        piece_absorb_after(block, &region->store);
        if (top) {
            region->top = NULL;
            region->last = block;
        }
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
        return ebb_last_error();
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
    if (region->last == block)
        region->last = rest;
    large_free(region, rest);
    count_uncharge(region, freed);
    return freed;
}

int large_resize(struct region *region, struct ebb_piece *block, size_t bytes) {
    size_t used, before = block->bytes;
    small_fold(region);
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
    flow_leave(&region->requested, block->block.requested);
    flow_enter(&region->requested, bytes);
    block->block.requested = bytes;
    if (!region->measuring) {
        poison_unused(block->addr, size_larger(before, block->bytes));
        poison_opened(block->addr, bytes);
    }
    return 0;
}

/* ---- forgetting ---- */

void large_forget(struct region *region, size_t keep, struct ebb_piece **given) {
    struct ebb_piece *runs = region->runs, *next;
    piece_forget_all(&region->store);
    fit_clear(&region->fit);
    region->blocks = region->top = region->main_run = region->runs = NULL;
    region->reserved.current = region->run_count = region->pinned = 0;
    size_t held = 0;
    for (; runs; runs = next) {
        next = runs->next;
        if (!runs->flag && runs->bytes <= keep - size_smaller(held, keep) &&
            piece_prepare(&region->store, 1)) {
            held += runs->bytes;
            uint64_t total = region->reserved.total;
            add_run(region, runs);
            region->reserved.total = total;
        } else {
            runs->next = *given;
            *given = runs;
        }
    }
}

/* ---- measuring ---- */

size_t large_measured(const struct region *region) {
    size_t total = 0;
    for (const struct ebb_piece *run = region->runs; run; run = run->next)
        total += run->bytes;
    if (region->main_run)
        total -= piece_end(region->main_run) - size_align(region->highest, EBB_PAGE);
    return total;
}
