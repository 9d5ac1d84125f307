// SPDX-License-Identifier: Apache-2.0
/*
 * relinked.c - runs of relinked survivors, and what of their pages goes back before the last one.
 *
 *     run         |  survivor  |   dead   | survivor |  survivor  |
 *     after       |  survivor |           | survivor |  survivor  |     two runs
 *                             | to the pool|
 *
 * Survivors share a run because they shared pages. When one of them is released, the whole pages
 * between its neighbours go back, and the shorter side becomes a run of its own: its pages are
 * renamed and its survivors counted again. Since it is the shorter side, each survivor is counted
 * again a few times at most, whatever the order. The pages go back once they are a fair part of the
 * run: small parts are of no use to anybody. But if a region pins much, any page goes: otherwise a
 * few long-lived survivors in each run would hold many times their bytes.
 *
 * Invariant: the survivors of a run are linked by address with before and after.
 */
#include "base/check.h"
#include "region/relinked.h"
#include "region/runs.h"

#define GAP_LEAST ((size_t)16 * EBB_PAGE)
#define GAP_PART 256 /* of the run */
#define PINNED_LEAST ((size_t)1 << 20)
#define PINNED_PART 8 /* of all that the region has reserved */

void relinked_begin(struct ebb_piece *run) {
    run->flag = true;
    run->relinked.none = NULL; /* it has no pieces that tile it */
    run->relinked.used = 0;
    run->relinked.live_blocks = run->relinked.holds = 0;
}

void relinked_count_in(struct ebb_piece *run, struct ebb_piece *block) {
    block->block.run = run;
    run->relinked.used += block->bytes;
    run->relinked.live_blocks++;
}

/* The pages between two survivors, or at one end of a run, of which none is under a survivor. */
struct gap {
    struct ebb_piece *run, *last, *next; /* the survivors beside it; NULL at an end of the run */
    uintptr_t from, to;
};

/* True if less of the run lies before the gap than behind. */
static bool is_near_start(const struct gap *gap) {
    return gap->from - gap->run->addr <= piece_end(gap->run) - gap->to;
}

/* Takes the pages out of the run; *other is the run of what lies on the shorter side, or NULL. */
static struct ebb_piece *take_gap_locked(struct pages *pages, const struct gap *gap,
                                         bool near_start, struct ebb_piece **other) {
    if (near_start && gap->last)
        *other = pages_split_before(pages, gap->run, gap->from);
    if (!near_start && gap->next)
        *other = pages_split(pages, gap->run, gap->to);
    if (*other)
        relinked_begin(*other);
    return near_start ? pages_split_before(pages, gap->run, gap->to)
                      : pages_split(pages, gap->run, gap->from);
}

/* The survivors on that side of the gap are in another run from now on. */
static void settle(struct ebb_piece *other, const struct gap *gap, bool near_start) {
    struct ebb_piece *block = near_start ? gap->last : gap->next;
    while (block) {
        gap->run->relinked.used -= block->bytes;
        gap->run->relinked.live_blocks--;
        relinked_count_in(other, block);
        block = near_start ? block->before : block->after;
    }
}

static void sever(const struct gap *gap) {
    if (gap->last)
        gap->last->after = NULL;
    if (gap->next)
        gap->next->before = NULL;
}

static void give_gap(struct region *region, const struct gap *gap) {
    struct pages *pages = &region->pool->pages;
    bool near_start = is_near_start(gap);
    struct ebb_piece *other = NULL, *given = NULL;
    pthread_mutex_lock(&region->pool->lock);
    if (pages_prepare_cut(pages)) { /* else its pages wait for the last survivor */
        given = take_gap_locked(pages, gap, near_start, &other);
        given->next = NULL;
        pool_give_list_locked(region->pool, given);
    }
    pthread_mutex_unlock(&region->pool->lock);
    if (!given)
        return;
    meter_subtract(&region->reserved, gap->to - gap->from);
    region->pinned -= gap->to - gap->from;
    sever(gap);
    if (!other)
        return;
    piece_push(&region->runs, other);
    region->run_count++;
    settle(other, gap, near_start);
}

/* True if the gap is large enough to be of use to others. */
static bool is_large(const struct gap *gap) {
    return gap->to - gap->from >= size_larger(GAP_LEAST, gap->run->bytes / GAP_PART);
}

static bool pins_much(const struct region *region) {
    return region->pinned >= size_larger(PINNED_LEAST, region->reserved.current / PINNED_PART);
}

/* The whole pages between the two, if they are worth it. */
static bool find_gap(const struct region *region, struct gap *gap) {
    uintptr_t from = gap->last ? piece_end(gap->last) : gap->run->addr;
    uintptr_t to = gap->next ? gap->next->addr : piece_end(gap->run);
    gap->from = size_align(from, EBB_PAGE);
    gap->to = size_align_down(to, EBB_PAGE);
    return gap->from < gap->to && (is_large(gap) || pins_much(region));
}

static void unlink_survivor(const struct ebb_piece *block) {
    if (block->before)
        block->before->after = block->after;
    if (block->after)
        block->after->before = block->before;
}

bool relinked_leave(struct region *region, struct ebb_piece *run) {
    if (--run->relinked.live_blocks)
        return false;
    region->pinned -= run->bytes;
    runs_give(region, run);
    return true;
}

void relinked_release(struct region *region, struct ebb_piece *block) {
    struct gap gap = {.run = block->block.run, .last = block->before, .next = block->after};
    region->pinned += block->bytes;
    gap.run->relinked.used -= block->bytes;
    unlink_survivor(block);
    piece_give(&region->store, block);
    if (relinked_leave(region, gap.run) || gap.run->relinked.holds)
        return; /* holds say which run they are in */
    if (find_gap(region, &gap))
        give_gap(region, &gap);
}

void relinked_check(const struct ebb_piece *run, const struct ebb_piece *block) {
    const struct ebb_piece *last = block->before, *next = block->after;
    CHECK_ALWAYS(run->flag && run->relinked.live_blocks > 0);
    CHECK_ALWAYS(block->addr >= run->addr && piece_end(block) <= piece_end(run));
    CHECK_ALWAYS(!last || (last->after == block && last->block.run == run));
    CHECK_ALWAYS(!next || (next->before == block && next->block.run == run));
    CHECK_ALWAYS(!next || piece_end(block) <= next->addr);
}
