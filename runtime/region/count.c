// SPDX-License-Identifier: Apache-2.0
/*
 * count.c - counters and budgets.
 *
 * A budget belongs to the region that declared a limit and covers all its descendants. Where one
 * applies the inline path is shut, so every block passes here and limits are exact to the byte;
 * regions without a limit on their way up never come here. Invariant: `charged` of a limited
 * region is the sum of used bytes in its subtree.
 */
#include "region/count.h"
#include "base/error.h"
#include "region/small.h"

size_t count_waste(const struct region *region) {
    return region->reserved.current - region->lent - (flow_now(&region->used) - region->guests);
}

uint64_t count_live_blocks(struct region *region) {
    uint64_t blocks = region->track ? region->track->born : 0;
    for (struct region *at = region; at; at = region_next_below(at, region)) {
        small_fold(at);
        blocks += flow_now(&at->counted);
    }
    return blocks;
}

static struct region *budget_above(const struct region *limited) {
    return limited->parent ? limited->parent->budget : NULL;
}

static int charge_pool(struct ebb_pool *pool, size_t bytes) {
    size_t limit = pool->limit_used;
    if (!limit)
        return 0;
    /* relaxed: the sum is the only thing that threads agree on here */
    size_t charged = atomic_load_explicit(&pool->charged, memory_order_relaxed);
    do {
        if (charged > limit || bytes > limit - charged)
            return error_set(EBB_E_POOL_LIMIT,
                             "%zu bytes asked, pool '%s' has %zu of %zu bytes in use", bytes,
                             pool->name, charged, limit);
    } while (!atomic_compare_exchange_weak_explicit(&pool->charged, &charged, charged + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 0;
}

int count_charge(struct region *region, size_t bytes) {
    for (struct region *limited = region->budget; limited; limited = budget_above(limited))
        if (bytes > limited->limit_bytes - limited->charged)
            return error_set(EBB_E_REGION_LIMIT,
                             "%zu bytes asked in '%s', '%s' has %zu of %zu bytes in use", bytes,
                             region->name, limited->name, limited->charged, limited->limit_bytes);
    int result = charge_pool(region->pool, bytes);
    if (result)
        return result;
    for (struct region *limited = region->budget; limited; limited = budget_above(limited))
        limited->charged += bytes;
    return 0;
}

static void uncharge_pool(struct ebb_pool *pool, size_t bytes) {
    if (pool->limit_used)
        /* relaxed: as in charge_pool() */
        atomic_fetch_sub_explicit(&pool->charged, bytes, memory_order_relaxed);
}

void count_uncharge_below(struct region *region, const struct region *until, size_t bytes) {
    for (struct region *limited = region->budget; limited && limited->depth > until->depth;
         limited = budget_above(limited))
        limited->charged -= bytes;
}

void count_give_back(struct region *region, size_t bytes) {
    for (struct region *limited = region->budget; limited; limited = budget_above(limited))
        limited->charged -= bytes;
    uncharge_pool(region->pool, bytes);
}
