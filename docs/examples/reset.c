// SPDX-License-Identifier: Apache-2.0
/* reset.c - one region, used again and again: keep its pages, keep some, keep none. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static uint64_t reserved_of(ebb_region region) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    need(ebb_region_read_stats(region, &stats) == 0);
    return stats.reserved.current;
}

int main(void) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "scratch"));
    for (int i = 0; i < 100; i++) {
        void *block = ebb_region_alloc(region, (size_t)3 << 20, 64);
        need(block != NULL);
        memset(block, i, (size_t)3 << 20);
        need(ebb_region_reset(region, EBB_KEEP_ALL) == 0);
        need(ebb_region_release(region, block) != 0); /* it ended with the reset */
    }
    need(reserved_of(region) >= (size_t)3 << 20);

    /* At most so much stays with the region; the rest is hot in the pool, for others. */
    need(ebb_region_reset(region, 1 << 20) == 0 && reserved_of(region) <= 1 << 20);
    need(ebb_region_reset(region, 0) == 0 && reserved_of(region) == 0);

    /* The region is still open, with its name and limit; children were closed. */
    ebb_region child = ebb_region_open(EBB_REGION_OPTIONS(.parent = region));
    need(ebb_region_is_open(child) && ebb_region_reset(region, EBB_KEEP_ALL) == 0);
    need(!ebb_region_is_open(child) && ebb_region_is_open(region));
    return ebb_region_close(region);
}
