// SPDX-License-Identifier: Apache-2.0
/*
 * depart.c - a region ends: the pages around what outlives it are cut out of its runs.
 *
 * That is departed blocks, which belong to its heir, and bytes that are held for others (hold.h).
 * Both are sorted by address; those that share pages form a group, whose pages become a run: of
 * the heir if a block of the heir is among them, else of the pool. All other blocks of the region
 * are dead by then, so what lies between goes back to the pool. Nothing here can fail: without
 * entries for a cut the whole run goes, which pins more.
 */
#include "base/check.h"
#include "pool/shared.h"
#include "region/hold.h"
#include "region/relinked.h"

/* Merges two lists that are sorted by address. */
static struct ebb_piece *merge(struct ebb_piece *a, struct ebb_piece *b) {
    struct ebb_piece *first = NULL, **end = &first;
    while (a && b) {
        struct ebb_piece **lower = a->addr < b->addr ? &a : &b;
        *end = *lower;
        end = &(*end)->next;
        *lower = (*lower)->next;
    }
    *end = a ? a : b;
    return first;
}

/* Sorts a singly linked list by address: bottom up, runs of 2^n in slot n. */
static struct ebb_piece *sort(struct ebb_piece *list) {
    struct ebb_piece *slots[48];
    unsigned used = 0;
    while (list) {
        struct ebb_piece *sorted = list;
        list = list->next;
        sorted->next = NULL;
        unsigned n = 0;
        for (; n < used && slots[n]; n++) {
            sorted = merge(slots[n], sorted);
            slots[n] = NULL;
        }
        slots[n] = sorted;
        used += n == used;
    }
    struct ebb_piece *all = NULL;
    for (unsigned n = 0; n < used; n++)
        all = merge(slots[n], all);
    return all;
}

/* What shares pages: sorted by address, from `first` to before `to`. */
struct group {
    struct ebb_piece *first;
    uintptr_t from, to;
    bool departs; /* a block of the heir is among them */
};

/* The group of the first item; all items of the run if that cannot be cut. */
static struct group find_group(struct ebb_piece *item, const struct ebb_piece *run, bool whole) {
    struct group group = {.first = item, .from = size_align_down(item->addr, EBB_PAGE)};
    group.to = size_align(piece_end(item), EBB_PAGE);
    if (whole)
        group.from = run->addr, group.to = piece_end(run);
    for (; item && item->addr < group.to && item->addr < piece_end(run); item = item->next) {
        group.to = size_larger(group.to, size_align(piece_end(item), EBB_PAGE));
        group.departs |= item->state != PIECE_HELD;
    }
    return group;
}

/* Nobody may touch the pages but where something goes on; what survives may be in use just now. */
static void poison_rest(const struct group *group) {
    uintptr_t at = group->from;
    for (struct ebb_piece *item = group->first; item && item->addr < group->to;
         item = item->next) {
        if (item->addr > at)
            poison_unused(at, item->addr - at);
        at = size_larger(at, piece_end(item));
    }
    if (group->to > at)
        poison_unused(at, group->to - at);
}

/* Behind `last`, the survivor before it in the run, or NULL. */
static void settle_block(struct region *heir, struct ebb_piece *run, struct ebb_piece *last,
                         struct ebb_piece *block) {
    block->block.spare = NULL;
    block->before = last;
    block->after = NULL;
    if (last)
        last->after = block;
    relinked_count_in(run, block);
    heir->guests -= block->bytes;
    heir->pinned -= block->bytes;
}

static void inherit(struct region *heir, struct ebb_piece *run) {
    piece_put_owner(run, heir->owner);
    relinked_begin(run);
    piece_push(&heir->runs, run);
    heir->run_count++;
    heir->pinned += run->bytes;
    meter_add(&heir->reserved, run->bytes);
}

/* Cuts the pages of one group out of its run. */
static struct ebb_piece *cut_group(struct region *region, struct ebb_piece *run,
                                   const struct group *group, struct ebb_piece **right) {
    *right = NULL;
    if (group->from == run->addr) {
        piece_unlink(&region->runs, run);
        if (region->main_run == run)
            region->main_run = NULL; /* it is another's: what it never used is not counted here */
    }
    struct ebb_piece *cut =
        pages_cut_out(&region->pool->pages, run, group->from, group->to, right);
    if (*right)
        piece_push(&region->runs, *right);
    return cut;
}

/* The group's run is the heir's. Held bytes beside its blocks keep the run as a block would. */
static void give_to_heir(struct region *heir, struct ebb_piece *run, const struct group *group) {
    struct ebb_piece *next, *last = NULL;
    inherit(heir, run);
    for (struct ebb_piece *item = group->first; item && item->addr < group->to; item = next) {
        next = item->next;
        if (item->state != PIECE_HELD) {
            settle_block(heir, run, last, item->block.spare);
            last = item->block.spare;
        } else {
            hold_move(hold_of(item), run);
            hold_enlist(heir, hold_of(item));
        }
    }
    heir->pinned_by_ends += run->bytes - run->relinked.used;
}

/* Those of a group's holds that were not dropped meanwhile. */
static struct ebb_piece *keep_holds(struct region *region, const struct group *group) {
    struct ebb_piece *kept = NULL, *next;
    for (struct ebb_piece *item = group->first; item && item->addr < group->to; item = next) {
        next = item->next;
        if (hold_keep(hold_of(item)))
            piece_push(&kept, item);
        else
            hold_orphan(region, hold_of(item));
    }
    return kept;
}

static void give_to_pool(struct ebb_pool *pool, struct ebb_piece *run, struct ebb_piece *holds) {
    hold_keep_run(pool, run);
    for (; holds; holds = holds->next)
        hold_move(hold_of(holds), run);
}

/*
 * The run that an item lies in. Names of pages lead to it at once, however many runs there are, but
 * not to what is left of a run behind a cut: that is `right`, since items come by address.
 */
static struct ebb_piece *run_with(const struct ebb_piece *item, struct ebb_piece *right) {
    struct ebb_piece *run =
        right && piece_covers(right, item->addr) ? right : range_run_at(item->addr);
    CHECK(run);
    return run;
}

/* Settles what comes first and what shares pages with it; returns what comes next. */
static struct ebb_piece *settle_first(struct region *region, struct region *heir,
                                      struct ebb_piece *item, struct ebb_piece **right) {
    struct ebb_piece *run = run_with(item, *right), *next = item;
    struct group group = find_group(item, run, !pages_prepare_cut(&region->pool->pages));
    while (next && next->addr < group.to)
        next = next->next;
    if (!pool_is_leased(region->pool))
        poison_rest(&group);
    struct ebb_piece *kept = group.departs ? NULL : keep_holds(region, &group);
    if (group.departs)
        give_to_heir(heir, cut_group(region, run, &group, right), &group);
    else if (kept)
        give_to_pool(region->pool, cut_group(region, run, &group, right), kept);
    return next;
}

/* The region's holds; those that were dropped stay with it, of no use to anybody. */
static struct ebb_piece *take_holds(struct region *region) {
    struct ebb_piece *at = region->holds, *taken = NULL, *next;
    region->holds = NULL;
    region->hold_count = 0;
    for (; at; at = next) {
        next = at->next;
        if (hold_is_dropped(hold_of(at)))
            hold_orphan(region, hold_of(at));
        else
            piece_push(&taken, at);
    }
    return taken;
}

void depart_locked(struct region *region) {
    if (!region->departed && !region->holds)
        return;
    struct ebb_piece *item = merge(sort(region->departed), sort(take_holds(region)));
    struct ebb_piece *right = NULL;
    struct region *heir = region->heir;
    region->departed = NULL;
    region->heir = NULL;
    while (item)
        item = settle_first(region, heir, item, &right);
    region->lent = 0;
}
