// SPDX-License-Identifier: Apache-2.0
/* trim.c - memory goes back: by itself after a spike, and at once when asked. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

#define NORMAL ((size_t)2 << 20)

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static void step(ebb_pool *pool, size_t bytes) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .pool = pool));
    void *block = ebb_region_alloc(region, bytes, 64);
    need(block != NULL);
    memset(block, 1, bytes);
    need(ebb_region_close(region) == 0);
}

static struct ebb_pool_stats stats_of(ebb_pool *pool) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    need(ebb_pool_read_stats(pool, &stats) == 0);
    return stats;
}

int main(void) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "steps"));
    need(pool != NULL);
    for (int i = 0; i < 10; i++)
        step(pool, NORMAL);
    uint64_t usual = stats_of(pool).cached; /* pages stay hot between steps */
    need(usual >= NORMAL);

    step(pool, 50 * NORMAL); /* a spike */
    for (int i = 0; i < 20; i++)
        step(pool, NORMAL);
    need(stats_of(pool).cached < 2 * usual); /* gone again, nobody asked */
    need(stats_of(pool).given_back >= 40 * NORMAL);

    size_t given = ebb_pool_trim(pool, 0); /* now, all of it */
    need(given >= NORMAL && stats_of(pool).cached == 0);

    /* The same in a bounded time, for an idle moment. */
    size_t left = 1;
    step(pool, NORMAL);
    while (left > 0)
        ebb_pool_trim_within(pool, 0, 1000 * 1000, &left); /* 1 ms each */
    need(stats_of(pool).reserved.current == 0);
    return ebb_pool_destroy(pool);
}
