// SPDX-License-Identifier: Apache-2.0
/* tracks_play.c - one step is played; what it should have done is known. */
#include "region/block.h"
#include "model/tracks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

void play_fail(const struct dice *dice, const char *what) {
    fprintf(stderr, "# not so: %s (%s)\n# replay: EBB_SEED=%llu\n", what, ebb_last_error_text(),
            (unsigned long long)dice->seed);
    abort();
}

#define KEPT_EVERY 7 /* one in so many blocks is always promoted at the end, if it is there */

struct block {
    unsigned char *at; /* NULL: not alive */
    uint32_t bytes, fill;
};

struct step {
    struct dice *dice;
    ebb_region region, parent;
    struct block blocks[2 * STREAM_MOST];
    struct block kept[STREAM_MOST]; /* promoted */
    uint32_t kept_count;
    uint64_t alive, alive_bytes; /* without what other threads released meanwhile */
    uint64_t peak, peak_bytes;
    uint32_t filled;
    bool limited; /* the pool may have no pages */
    uint64_t refused;
    bool loose; /* peaks are not known: releases take their time, moves need both places */
};

static void fill(struct block *block, uint32_t seed) {
    block->fill = seed * 0x9e3779b1u;
    for (uint32_t i = 0; i < block->bytes; i++)
        block->at[i] = (unsigned char)(block->fill >> 8 * (i % 4));
}

static bool is_whole(const struct block *block) {
    for (uint32_t i = 0; i < block->bytes; i++)
        if (block->at[i] != (unsigned char)(block->fill >> 8 * (i % 4)))
            return false;
    return true;
}

static void check_counters(struct step *step) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    PLAY_DEMAND(step->dice, ebb_region_read_stats(step->region, &stats) == 0);
    PLAY_DEMAND(step->dice, stats.used.peak >= stats.used.current);
    PLAY_DEMAND(step->dice, step->loose || stats.blocks.peak == step->peak);
    PLAY_DEMAND(step->dice, step->loose || stats.requested.peak == step->peak_bytes);
    PLAY_DEMAND(step->dice, stats.blocks.current == step->alive);
    PLAY_DEMAND(step->dice, stats.requested.current == step->alive_bytes);
}

static bool is_born(const struct step *step, const struct block *block) {
    ebb_region owner = ebb_region_of(block->at);
    return owner.lane != step->region.lane;
}

static void leave(struct step *step, struct block *block) {
    if (!is_born(step, block)) {
        step->alive--;
        step->alive_bytes -= block->bytes;
    }
    block->at = NULL;
}

static void come(struct step *step, const struct block *block) {
    if (is_born(step, block))
        return;
    step->alive++;
    step->alive_bytes += block->bytes;
    if (step->alive > step->peak)
        step->peak = step->alive;
    if (step->alive_bytes > step->peak_bytes)
        step->peak_bytes = step->alive_bytes;
}

/* Nothing was had, for a reason. */
static void be_refused(struct step *step) {
    int code = ebb_last_error();
    PLAY_DEMAND(step->dice, code == EBB_E_SEALED || (step->limited && code == EBB_E_POOL_LIMIT));
    step->refused += code == EBB_E_POOL_LIMIT;
}

static void play_alloc(struct step *step, const struct event *event) {
    struct block *block = &step->blocks[event->number];
    if (block->at)
        return; /* an extra one of this number is there */
    block->bytes = event->bytes;
    block->at = event->key ? block_allocate_keyed((struct region *)step->region.lane,
                                                  event->bytes, event->align, event->key, NULL)
                           : ebb_region_alloc(step->region, event->bytes, event->align);
    if (!block->at) {
        be_refused(step);
        return;
    }
    PLAY_DEMAND(step->dice, (uintptr_t)block->at % event->align == 0);
    PLAY_DEMAND(step->dice, ebb_region_block_bytes(step->region, block->at) == event->bytes);
    fill(block, ++step->filled);
    come(step, block);
}

struct elsewhere {
    ebb_region region;
    void *block;
};

static void *release_elsewhere(void *argument) {
    struct elsewhere *elsewhere = argument;
    return ebb_region_release_remote(elsewhere->region, elsewhere->block) ? elsewhere : NULL;
}

static void play_release(struct step *step, const struct event *event, unsigned kind,
                         struct totals *totals) {
    struct block *block = &step->blocks[event->number];
    if (!block->at)
        return;
    PLAY_DEMAND(step->dice, is_whole(block));
    void *at = block->at;
    leave(step, block);
    if ((kind & PLAY_REMOTE) && dice_chance(step->dice, 2)) {
        struct elsewhere elsewhere = {step->region, at};
        PLAY_DEMAND(step->dice, !release_elsewhere(&elsewhere));
        totals->remote++;
        return;
    }
    PLAY_DEMAND(step->dice, ebb_region_release(step->region, at) == 0);
    if (dice_chance(step->dice, 64)) /* once more is once too often */
        PLAY_DEMAND(step->dice, ebb_region_release(step->region, at) != 0);
}

static void play_promote(struct step *step, struct block *block) {
    struct ebb_survivor survivor = {.block = block->at,
                                    .mode = (int)dice_below(step->dice, 3)};
    bool born = is_born(step, block);
    if (ebb_promote(step->region, step->parent, &survivor, 1, NULL) != 0) {
        be_refused(step);
        PLAY_DEMAND(step->dice, survivor.block == block->at && is_whole(block));
        return;
    }
    struct block promoted = *block;
    promoted.at = survivor.block;
    PLAY_DEMAND(step->dice, is_whole(&promoted));
    if (step->kept_count == STREAM_MOST)
        PLAY_DEMAND(step->dice, ebb_region_release(step->parent, promoted.at) == 0);
    else
        step->kept[step->kept_count++] = promoted;
    if (born) {
        PLAY_DEMAND(step->dice, survivor.block == block->at);
        block->at = NULL;
    } else if (survivor.block == block->at) { /* relinked */
        step->alive--;
        step->alive_bytes -= block->bytes;
        block->at = NULL;
    }
}

static void play_resize(struct step *step, struct block *block) {
    uint32_t bytes = dice_below(step->dice, 2 * block->bytes + 2), old = block->bytes;
    bool born = is_born(step, block);
    void *at = ebb_region_realloc(step->region, block->at, bytes, 1);
    if (!at) {
        be_refused(step);
        return;
    }
    struct block moved = {at, old < bytes ? old : bytes, block->fill};
    PLAY_DEMAND(step->dice, is_whole(&moved));
    if (!born) {
        step->alive--;
        step->alive_bytes -= old;
    }
    block->at = at;
    block->bytes = bytes;
    fill(block, ++step->filled);
    come(step, block);
}

/* Something that a plan does not expect. False: the step has no blocks any more. */
static bool play_stop(struct step *step) {
    switch (dice_below(step->dice, 3)) {
    case 0:
        PLAY_DEMAND(step->dice, ebb_region_mark(step->region).serial != 0);
        return true;
    case 1:
        PLAY_DEMAND(step->dice, ebb_region_seal(step->region) == 0);
        return true;
    default:
        PLAY_DEMAND(step->dice, ebb_region_reset(step->region, EBB_KEEP_ALL) == 0);
        memset(step->blocks, 0, sizeof step->blocks);
        step->alive = step->alive_bytes = 0;
        return false;
    }
}

static void play_beside(struct step *step, uint32_t blocks, unsigned kind) {
    struct block *block = &step->blocks[dice_below(step->dice, blocks)];
    if ((kind & PLAY_STOP) && dice_chance(step->dice, 200))
        play_stop(step);
    if (!block->at)
        return;
    PLAY_DEMAND(step->dice, is_whole(block));
    if ((kind & PLAY_PROMOTE) && dice_chance(step->dice, 8))
        play_promote(step, block);
    else if ((kind & PLAY_RESIZE) && dice_chance(step->dice, 8))
        play_resize(step, block);
}

/* One after the other, from anywhere on. */
static void play_keep(struct step *step, uint32_t blocks) {
    uint32_t from = blocks ? dice_below(step->dice, blocks) : 0;
    for (uint32_t i = 0; i < blocks; i++) {
        struct block *block = &step->blocks[(from + i) % blocks];
        if (block->at && (from + i) % blocks % KEPT_EVERY == 0)
            play_promote(step, block);
    }
}

static void check_all(struct step *step) {
    for (uint32_t i = 0; i < 2 * STREAM_MOST; i++)
        PLAY_DEMAND(step->dice, !step->blocks[i].at || is_whole(&step->blocks[i]));
    for (uint32_t i = 0; i < step->kept_count; i++)
        PLAY_DEMAND(step->dice, is_whole(&step->kept[i]));
    check_counters(step);
    region_check((struct region *)step->region.lane);
}

static void end_kept(struct step *step) {
    for (uint32_t i = 0; i < step->kept_count; i++) {
        PLAY_DEMAND(step->dice, is_whole(&step->kept[i]));
        PLAY_DEMAND(step->dice, ebb_region_release(step->parent, step->kept[i].at) == 0);
    }
    struct ebb_region_stats stats = {.size = sizeof stats};
    PLAY_DEMAND(step->dice, ebb_region_read_stats(step->parent, &stats) == 0);
    PLAY_DEMAND(step->dice, stats.blocks.current == 0 && stats.requested.current == 0);
    region_check((struct region *)step->parent.lane);
}

static void add_seen(struct totals *totals, const struct track_seen *seen) {
    totals->hits += seen->hits;
    totals->missed += seen->missed;
    totals->takeovers += seen->taken_over;
    totals->given_up += seen->given_up;
    totals->born += seen->tenured_right + seen->tenured_wrong;
    totals->guests += seen->guests;
}

/* From now on a few pages may come. */
static void limit(struct step *step) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    ebb_pool *pool = ((struct region *)step->region.lane)->pool;
    (void)ebb_pool_trim(pool, 0);
    PLAY_DEMAND(step->dice, ebb_pool_read_stats(pool, &stats) == 0);
    size_t more = dice_chance(step->dice, 2) ? 0 : dice_below(step->dice, 8) * EBB_PAGE;
    PLAY_DEMAND(step->dice,
                ebb_pool_set_reserved_limit(pool, stats.reserved.current + more) == 0);
    step->limited = true;
}

void stream_play(struct dice *dice, const struct stream *stream, struct track *track,
                 ebb_region parent, bool serve, unsigned kind, struct totals *totals) {
    static struct step step;
    struct track_seen seen;
    memset(&step, 0, sizeof step);
    step.dice = dice;
    step.parent = parent;
    step.loose = (kind & (PLAY_REMOTE | PLAY_RESIZE)) != 0;
    step.region = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = parent));
    track_tie(track, (struct region *)step.region.lane, serve, !serve);
    if ((kind & PLAY_LIMIT) && serve)
        limit(&step);
    for (uint32_t i = 0; i < stream->count; i++) {
        const struct event *event = &stream->events[i];
        if (event->alloc)
            play_alloc(&step, event);
        else
            play_release(&step, event, kind, totals);
        if (kind)
            play_beside(&step, stream->blocks, kind);
        totals->allocations += event->alloc;
    }
    totals->steps++;
    if (kind & PLAY_KEEP)
        play_keep(&step, stream->blocks);
    check_all(&step);
    if (!(kind & PLAY_ABANDON) || !dice_chance(dice, 4)) {
        track_finish(track, &seen);
        add_seen(totals, &seen);
        totals->wandered += track->wander.on;
        totals->strayed += track->wander.blocks;
        for (uint32_t i = 0; i < 2 * STREAM_MOST; i++) /* what was born and not promoted is gone */
            if (step.blocks[i].at && is_born(&step, &step.blocks[i]))
                step.blocks[i].at = NULL;
        check_all(&step);
    }
    ebb_pool *pool = ((struct region *)parent.lane)->pool;
    PLAY_DEMAND(dice, !step.limited || ebb_pool_set_reserved_limit(pool, 0) == 0);
    totals->refused += step.refused;
    PLAY_DEMAND(dice, ebb_region_close(step.region) == 0);
    PLAY_DEMAND(dice, !track->region);
    end_kept(&step);
}
