// SPDX-License-Identifier: Apache-2.0
/*
 * check.c - the walker over one region: everything that is counted is counted again.
 *
 * Called at the doors (close, reset, rewind, promotion) in fully checked builds and by
 * ebb_check_pool(). A law that does not hold ends the process: it is a bug in ebb, or somebody
 * wrote where nothing is his. Time is linear in blocks and runs, and for each limit in the regions
 * that it covers.
 */
#include "base/check.h"
#include "pool/shared.h"
#include "region/hold.h"
#include "region/relinked.h"
#include "region/small.h"

struct sums {
    uint64_t blocks, requested, used;
    uint64_t large; /* of used: in no window */
    uint64_t guests; /* of large: in runs of descendants */
    uint64_t padding; /* in windows */
};

struct window_walk {
    struct sums *sums;
    size_t live_bytes;
    uint32_t live_blocks;
};

static void add_small(void *context, uintptr_t addr, size_t bytes, bool block) {
    struct window_walk *walk = context;
    (void)addr;
    walk->live_bytes += block ? small_step(bytes) : RANGE_GRANULE;
    walk->live_blocks += block;
    walk->sums->blocks += block;
    walk->sums->requested += bytes;
    walk->sums->padding += block ? 0 : RANGE_GRANULE;
}

static void check_window(const struct region *region, const struct ebb_piece *window,
                         struct sums *sums) {
    struct window_walk walk = {sums, 0, 0};
    CHECK_ALWAYS(range_block_at(window->addr) == window);
    CHECK_ALWAYS(range_block_at(piece_end(window) - 1) == window);
    small_each_live(region, window, add_small, &walk);
    CHECK_ALWAYS(walk.live_blocks == small_live_blocks(window));
    CHECK_ALWAYS(walk.live_bytes == small_live_bytes(window));
    CHECK_ALWAYS(walk.live_blocks || window == region->window || window == region->spare ||
                 window->pins);
    sums->used += walk.live_bytes;
}

static void check_block(const struct region *region, const struct ebb_piece *block,
                        struct sums *sums) {
    CHECK_ALWAYS(range_block_at(block->addr) == block);
    CHECK_ALWAYS(block->block.requested <= block->bytes && block->owner == region->owner);
    if (block->block.run)
        relinked_check(block->block.run, block);
    sums->blocks++;
    sums->requested += block->block.requested;
    sums->used += block->bytes;
    sums->large += block->bytes;
    sums->guests += block->block.spare ? block->bytes : 0;
}

static void add_planned(void *context, uintptr_t addr, size_t bytes, size_t room) {
    struct sums *sums = context;
    CHECK_ALWAYS(range_block_at(addr)->state == PIECE_ARENA && bytes <= room);
    sums->blocks++;
    sums->requested += bytes;
    sums->used += room;
    sums->large += room;
}

static void check_piece(const struct region *region, const struct ebb_piece *piece) {
    const struct ebb_piece *after = piece->after;
    bool free = piece->state == PIECE_FREE || piece->state == PIECE_TOP;
    CHECK_ALWAYS(piece->bytes > 0 && piece->bytes % EBB_UNIT == 0);
    CHECK_ALWAYS(free || piece->state == PIECE_BLOCK || piece->state == PIECE_WINDOW ||
                 piece->state == PIECE_ARENA || piece->state == PIECE_LOOSE);
    CHECK_ALWAYS((piece->state == PIECE_TOP) == (piece == region->top));
    CHECK_ALWAYS((piece->state == PIECE_LOOSE) == (piece == region->loose));
    CHECK_ALWAYS(!after || (after->before == piece && after->addr == piece_end(piece)));
    CHECK_ALWAYS(!after || !free || (after->state != PIECE_FREE && after->state != PIECE_TOP));
}

/* The result: its pieces that have to be in the region's bins. */
static size_t check_run(const struct region *region, const struct ebb_piece *run) {
    size_t binned = 0;
    CHECK_ALWAYS(run->state == PIECE_RUN && run->owner == region->owner);
    if (run->flag) {
        CHECK_ALWAYS(run->relinked.live_blocks > 0 && run->relinked.used <= run->bytes);
        return 0;
    }
    uintptr_t at = run->addr;
    CHECK_ALWAYS(!run->run.first->before);
    for (const struct ebb_piece *piece = run->run.first; piece != run->run.end;
         piece = piece->after) {
        CHECK_ALWAYS(piece->addr == at);
        check_piece(region, piece);
        binned += piece->state == PIECE_FREE;
        at = piece_end(piece);
    }
    CHECK_ALWAYS(at == piece_end(run) && run->run.end->addr == at && !run->run.end->after);
    CHECK_ALWAYS(run->run.end->end.run == run);
    return binned;
}

static bool count_binned(void *context, struct ebb_piece *piece) {
    size_t *count = context;
    CHECK_ALWAYS(piece->state == PIECE_FREE);
    ++*count;
    return true;
}

static void check_runs(const struct region *region) {
    size_t reserved = 0, pinned = 0, count = 0, lent = 0, free = 0, binned = 0;
    for (const struct ebb_piece *run = region->runs; run; run = run->next) {
        free += check_run(region, run);
        reserved += run->bytes;
        pinned += run->flag ? run->bytes - run->relinked.used : 0;
        count++;
    }
    fit_each(&region->fit, count_binned, &binned);
    CHECK_ALWAYS(free == binned);
    CHECK_ALWAYS(!region->main_run || region->main_run->run.end->before->state != PIECE_FREE);
    for (const struct ebb_piece *block = region->departed; block; block = block->next)
        lent += block->bytes;
    CHECK_ALWAYS(reserved == region->reserved.current && pinned == region->pinned);
    CHECK_ALWAYS(count == region->run_count && lent == region->lent);
}

static bool is_born_above(const struct region *region, const struct hold *hold) {
    const struct region *home =
        region->track ? track_home(region->track, (uintptr_t)hold->start) : NULL;
    return hold->block && home && hold->block->owner == home->owner;
}

/* A hold lies in a block of the region, or keeps a run of survivors. */
static void check_holds(const struct region *region) {
    size_t count = 0;
    for (struct ebb_piece *at = region->holds; at; at = at->next, count++) {
        const struct hold *hold = hold_of(at);
        const struct ebb_piece *around = hold->block ? hold->block : hold->run;
        CHECK_ALWAYS(around && (around->owner == region->owner || is_born_above(region, hold)));
        CHECK_ALWAYS(at->addr >= around->addr && piece_end(at) <= piece_end(around));
        CHECK_ALWAYS(hold->block ? around->pins == 1 || around->state == PIECE_ARENA
                                 : around->flag);
    }
    CHECK_ALWAYS(count == region->hold_count);
}

/* What was born in it for steps below: each step has what it counts, and blocks of the region. */
static void check_bearers(const struct region *region) {
    for (const struct track *at = region->bearers; at; at = at->bearer) {
        uint32_t born = 0;
        CHECK_ALWAYS(at->region && at->region->parent == region && at->born);
        for (uint32_t i = 0; i < at->record_count; i++) {
            uintptr_t addr = at->record[i].addr;
            if (!addr)
                continue;
            born++;
            CHECK_ALWAYS(track_home(at, addr) == region &&
                         range_block_at(addr)->owner == region->owner);
        }
        CHECK_ALWAYS(born == at->born);
    }
    CHECK_ALWAYS(!region->bearers || region->quick_key == PIECE_KEY_NONE);
}

static uint64_t used_by(struct region *region) {
    small_fold(region);
    return flow_now(&region->used);
}

/* What is charged to a limit is what the region and all below it use, private things included. */
static void check_budget(struct region *region) {
    uint64_t used = 0;
    if (!region->limit_bytes)
        return;
    for (struct region *at = region; at; at = region_next_below(at, region))
        used += used_by(at) + (at->safe ? used_by(at->safe) : 0);
    CHECK_ALWAYS(used == region->charged && used <= region->limit_bytes);
}

void region_check_blocks(struct region *region) {
    struct sums sums = {0};
    small_fold(region);
    for (struct ebb_piece *block = region->blocks; block; block = block->next)
        if (block->state == PIECE_BLOCK)
            check_block(region, block, &sums);
    for (struct ebb_piece *window = region->windows; window; window = window->next)
        check_window(region, window, &sums);
    if (region->track) {
        track_each_live(region_track(region), add_planned, &sums);
        wander_check(region->track);
    }
    CHECK_ALWAYS(sums.blocks == flow_now(&region->counted));
    CHECK_ALWAYS(sums.requested == flow_now(&region->requested));
    CHECK_ALWAYS(region->padding == (region->metered ? sums.padding : 0));
    CHECK_ALWAYS(sums.used == flow_now(&region->used) + region->padding);
    CHECK_ALWAYS(sums.large == region->large_used);
    CHECK_ALWAYS(sums.guests == region->guests);
    check_runs(region);
    check_budget(region);
    check_holds(region);
    check_bearers(region);
}

void region_check(struct region *region) {
    region_check_blocks(region);
    if (region->hooks && !pool_is_lost(region->pool))
        region->hooks->check(region);
}
