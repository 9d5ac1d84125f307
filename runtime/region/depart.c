// SPDX-License-Identifier: Apache-2.0
/*
 * depart.c - a region closes: the pages around departed blocks go to its heir.
 *
 * Departed blocks are sorted by address; those that share pages form a group, whose pages are
 * cut out of their run and become a run of the heir. All other blocks of the region are dead by
 * then, so what lies between goes back to the pool. Nothing here can fail: without entries for a
 * cut the whole run goes to the heir, which pins more.
 */
#include "base/check.h"
#include "region/region.h"

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
    struct ebb_piece *slots[48] = {NULL};
    while (list) {
        struct ebb_piece *sorted = list;
        list = list->next;
        sorted->next = NULL;
        unsigned n = 0;
        for (; slots[n]; n++) {
            sorted = merge(slots[n], sorted);
            slots[n] = NULL;
        }
        slots[n] = sorted;
    }
    struct ebb_piece *all = NULL;
    for (unsigned n = 0; n < 48; n++)
        all = merge(slots[n], all);
    return all;
}

/* The pages of the first departed blocks that share pages. */
static void first_group(struct ebb_piece *block, const struct ebb_piece *run, uintptr_t *from,
                        uintptr_t *to) {
    *from = size_align_down(block->addr, EBB_PAGE);
    *to = size_align(piece_end(block), EBB_PAGE);
    for (block = block->next; block && block->addr < *to && block->addr < piece_end(run);
         block = block->next)
        *to = size_align(piece_end(block), EBB_PAGE);
}

static void settle_block(struct region *heir, struct ebb_piece *run, struct ebb_piece *block) {
    poison_opened(block->addr, block->block.requested);
    block->before = block->after = NULL;
    block->block.run = run;
    block->block.spare = NULL;
    run->relinked.used += block->bytes;
    run->relinked.live_blocks++;
    heir->guests -= block->bytes;
    heir->pinned -= block->bytes;
}

static void inherit(struct region *heir, struct ebb_piece *run) {
    poison_unused(run->addr, run->bytes);
    run->flag = true;
    piece_set_owner(run, heir->owner);
    run->run.first = NULL;
    run->relinked.used = 0;
    run->relinked.live_blocks = 0;
    piece_push(&heir->runs, run);
    heir->run_count++;
    heir->pinned += run->bytes;
    meter_add(&heir->reserved, run->bytes);
}

/* Cuts the pages of one group out of its run. Without entries for the cut the whole run goes. */
static struct ebb_piece *cut_group(struct region *region, struct ebb_piece *run, uintptr_t from,
                                   uintptr_t to, struct ebb_piece **right) {
    *right = NULL;
    if (!pages_prepare_cut(&region->pool->pages))
        from = run->addr, to = piece_end(run);
    if (from == run->addr)
        piece_unlink(&region->runs, run);
    struct ebb_piece *group = pages_cut_out(&region->pool->pages, run, from, to, right);
    if (*right)
        piece_push(&region->runs, *right);
    return group;
}

void depart_locked(struct region *region) {
    if (!region->departed)
        return;
    struct ebb_piece *block = sort(region->departed), *right = NULL;
    struct region *heir = region->heir;
    region->departed = NULL;
    region->heir = NULL;
    while (block) {
        bool in_right = right && block->addr >= right->addr && block->addr < piece_end(right);
        struct ebb_piece *run = in_right ? right : range_run_at(block->addr);
        uintptr_t from, to;
        first_group(block, run, &from, &to);
        struct ebb_piece *group = cut_group(region, run, from, to, &right);
        inherit(heir, group);
        while (block && block->addr < piece_end(group) && block->addr >= group->addr) {
            settle_block(heir, group, block->block.spare);
            block = block->next;
        }
    }
    region->lent = 0;
}
