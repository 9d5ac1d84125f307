// SPDX-License-Identifier: Apache-2.0
/* keep.c - closing with all survivors known: what is pinned, and what was lost. */
#include <ebb/ebb.h>

#include <stdlib.h>

#define BLOCKS 8
#define BYTES ((size_t)10000)

static void need(bool holds) {
    if (!holds)
        exit(1);
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));
    struct ebb_survivor kept[BLOCKS] = {{0}};
    for (int i = 0; i < BLOCKS; i++) {
        kept[i].block = ebb_region_alloc(step, BYTES, 64);
        kept[i].mode = EBB_PROMOTE_RELINK;
        need(kept[i].block && ebb_region_alloc(step, 64, 16)); /* a small one, which ends */
    }
    struct ebb_promoted cost = {0};
    uint64_t lost = 0;
    need(ebb_close_keeping(step, run, kept, BLOCKS, &cost, &lost) == 0);
    need(cost.relinked_blocks == BLOCKS && cost.relinked_bytes == BLOCKS * BYTES);
    need(lost == BLOCKS); /* the small ones: alive, not promoted */

    /* Neighbours share pages: far less is pinned than a page at each end of each block. */
    need(cost.pinned_bytes < BLOCKS * 4096);

    struct ebb_region_stats stats = {.size = sizeof stats};
    need(ebb_region_read_stats(run, &stats) == 0 && stats.pinned == cost.pinned_bytes);

    /* Releasing the survivors gives their pages back to the pool. */
    for (int i = 0; i < BLOCKS; i++)
        need(ebb_region_release(run, kept[i].block) == 0);
    need(ebb_region_read_stats(run, &stats) == 0);
    need(stats.pinned == 0 && stats.reserved.current == 0);
    return ebb_region_close_strict(run);
}
