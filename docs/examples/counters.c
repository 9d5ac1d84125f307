// SPDX-License-Identifier: Apache-2.0
/* counters.c - what a region and its pool say about themselves, and the laws between figures. */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static int print(void *context, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, context) == bytes ? 0 : 1;
}

int main(void) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "example"));
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run", .pool = pool));
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));
    void *small = ebb_region_alloc(step, 100, 16), *large = ebb_region_alloc(step, 100000, 64);
    need(small && large && ebb_region_release(step, small) == 0);

    struct ebb_region_stats region = {.size = sizeof region};
    need(ebb_region_read_stats(step, &region) == 0);
    need(region.blocks.current == 1 && region.blocks.peak == 2 && region.blocks.total == 2);
    need(region.small_blocks == 1 && region.large_blocks == 1);
    need(region.requested.current == 100000 && region.requested.peak == 100100);
    need(region.used.current >= region.requested.current);
    need(region.waste == region.reserved.current - region.used.current);

    struct ebb_pool_stats stats = {.size = sizeof stats};
    need(ebb_pool_read_stats(pool, &stats) == 0);
    need(stats.reserved.current == stats.owned + stats.cached + stats.held);
    need(stats.owned == stats.used.current + stats.waste);
    need(stats.open_regions == 2);

    need(ebb_report_pool(pool, EBB_REPORT_TEXT, print, stdout) == 0);
    need(ebb_report_region(run, EBB_REPORT_JSON, print, stdout) == 0);
    need(ebb_check_pool(pool) == 0); /* counts everything again; aborts if a law is broken */

    need(ebb_region_close(run) == 0); /* `step` with it */
    need(ebb_pool_read_stats(pool, &stats) == 0);
    need(stats.owned == 0 && stats.cached == stats.reserved.current);
    return ebb_pool_destroy(pool);
}
