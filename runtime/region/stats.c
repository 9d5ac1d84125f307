// SPDX-License-Identifier: Apache-2.0
/*
 * stats.c - reading counters: of a region, a pool, the process.
 *
 * Sums are made when they are asked for. The lock keeps regions from opening and closing
 * meanwhile, not from allocating: what an open region bumped since its last slow call is added
 * from its tally, which is exact when its thread is not in the middle of an allocation. Else that
 * one reading is wrong, and none after it: of what is read here nothing is written.
 */
#include "base/error.h"
#include "pool/shared.h"
#include "region/count.h"
#include "region/lookup.h"
#include "region/remote.h"
#include "region/runs.h"
#include "region/small.h"

int ebb_region_read_stats(ebb_region handle, struct ebb_region_stats *stats) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    if (!stats || stats->size != sizeof *stats)
        return error_set(EBB_E_ARGUMENT, "region stats: size field is %zu, expected %zu",
                         stats ? stats->size : 0, sizeof *stats);
    remote_settle(region);
    small_fold(region);
    *stats = (struct ebb_region_stats){
        .size = sizeof *stats,
        .blocks = flow_read(&region->counted),
        .requested = flow_read(&region->requested),
        .used = flow_read(&region->used),
        .reserved = region->reserved,
        .waste = count_waste(region),
        .pinned = region->pinned,
        .small_blocks = region->counted.in - region->large_blocks,
        .large_blocks = region->large_blocks,
        .runs = region->run_count,
        .children = region->child_count,
        .limit = region->limit_bytes,
        .subtree_used = region->limit_bytes ? region->charged : flow_now(&region->used),
    };
    return 0;
}

struct region_cost region_read_cost(struct region *region) {
    remote_look(region);
    small_fold(region);
    return (struct region_cost){
        .blocks = region->counted.in,
        .bytes = region->requested.in,
        .bytes_peak = region->requested.peak,
        .used_peak = region->used.peak,
        .reserved_peak = region->reserved.peak,
    };
}

size_t ebb_region_measured(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region)
        return 0;
    return region->measuring ? runs_measured(region) : region->reserved.peak;
}

size_t ebb_region_block_bytes(ebb_region handle, const void *block) {
    struct region *region = region_find(handle);
    struct block_place place;
    if (!region || block_find(region, block, &place) != 0)
        return 0;
    return place.requested;
}

/* Nobody knows when that was, so the whole may never have been at the sum of such peaks. */
static void include_flow(struct ebb_meter *whole, const struct flow *flow) {
    whole->current += flow_now(flow);
    whole->total += flow->in;
    whole->peak = size_larger(whole->peak, flow->peak);
}

/* Read once: it may be untied meanwhile, and can be looked at nevertheless. */
static const struct track *track_now(const volatile struct region *region) {
    return region->track;
}

/* Adds what an open region did inline since its last slow call, without folding it. */
static void include_region(struct ebb_pool_stats *stats, const struct region *region) {
    uint64_t tally = region->lane.tally;
    size_t advance = region->lane.cursor - region->folded;
    struct flow counted = region->counted, requested = region->requested, used = region->used;
    flow_enter(&counted, tally & 0xffff);
    flow_enter(&requested, tally >> 16);
    flow_enter(&used, advance);
    flow_pass(&counted, region->popped.blocks);
    flow_pass(&requested, region->popped.requested);
    flow_pass(&used, region->popped.used);
    const struct track *track = track_now(region);
    if (track)
        track_include(track, &counted, &requested, &used);
    flow_note_peak(&counted);
    flow_note_peak(&requested);
    flow_note_peak(&used);
    include_flow(&stats->blocks, &counted);
    include_flow(&stats->requested, &requested);
    include_flow(&stats->used, &used);
    stats->pinned += region->pinned;
    stats->open_regions++;
}

/* What all have now is said, and not kept: it may be too much, read of regions in which somebody is
 * at work. */
static void include_closed(struct ebb_meter *whole, const struct ebb_meter *closed) {
    whole->total += closed->total;
    whole->peak = size_larger(size_larger(whole->peak, whole->current), closed->peak);
}

static void read_pool(struct ebb_pool *pool, struct ebb_pool_stats *stats) {
    pthread_mutex_lock(&pool->lock);
    *stats = (struct ebb_pool_stats){.size = sizeof *stats, .reserved = pool->reserved};
    for (struct region *region = pool->slots; region; region = region->list_next)
        if (region_is_live(region) && !region->uncounted)
            include_region(stats, region);
    include_closed(&stats->blocks, &pool->closed_blocks);
    include_closed(&stats->requested, &pool->closed_requested);
    include_closed(&stats->used, &pool->closed_used);
    stats->owned = pool->pages.run_bytes - pool->held_bytes;
    stats->held = pool->held_bytes;
    stats->cached = pool->pages.hot_bytes;
    stats->waste = stats->owned - stats->used.current;
    stats->recent_peak = pool_recent_peak_locked(pool);
    stats->given_back = pool->given_back;
    stats->opened_regions = slot_count_opened(pool);
    pthread_mutex_unlock(&pool->lock);
}

static int check_size(const struct ebb_pool_stats *stats) {
    if (stats && stats->size == sizeof *stats)
        return 0;
    return error_set(EBB_E_ARGUMENT, "pool stats: size field is %zu, expected %zu",
                     stats ? stats->size : 0, sizeof *stats);
}

static void add_pool(void *context, struct ebb_pool *pool) {
    struct ebb_pool_stats *sum = context, one;
    read_pool(pool, &one);
    meter_include(&sum->blocks, &one.blocks);
    meter_include(&sum->requested, &one.requested);
    meter_include(&sum->used, &one.used);
    meter_include(&sum->reserved, &one.reserved);
    sum->owned += one.owned;
    sum->held += one.held;
    sum->cached += one.cached;
    sum->waste += one.waste;
    sum->pinned += one.pinned;
    sum->recent_peak += one.recent_peak;
    sum->given_back += one.given_back;
    sum->open_regions += one.open_regions;
    sum->opened_regions += one.opened_regions;
}

int ebb_pool_read_stats(struct ebb_pool *pool, struct ebb_pool_stats *stats) {
    int result = check_size(stats);
    if (result)
        return result;
    if (!pool)
        return error_set(EBB_E_ARGUMENT, "stats of a NULL pool");
    read_pool(pool, stats);
    if (pool_is_shared(pool))
        shared_each(pool->shared, add_pool, stats);
    return 0;
}

int ebb_process_read_stats(struct ebb_pool_stats *stats) {
    int result = check_size(stats);
    if (result)
        return result;
    *stats = (struct ebb_pool_stats){.size = sizeof *stats};
    pool_each(add_pool, stats);
    return 0;
}
