// SPDX-License-Identifier: Apache-2.0
/* marks.c - an attempt that fails is taken back, one that succeeds is kept. */
#include <ebb/ebb.h>

#include <stdlib.h>

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* Tries to parse; what a failed attempt allocated is gone again. */
static int *attempt(ebb_region region, int length) {
    ebb_mark mark = ebb_region_mark(region);
    need(mark.serial != 0);
    int *nodes = ebb_region_alloc_array(region, 100, sizeof *nodes, 16);
    int *table = ebb_region_alloc_array(region, 50000, sizeof *table, 64);
    need(nodes && table);
    if (length < 3) {
        need(ebb_region_rewind(region, mark) == 0);
        return NULL;
    }
    nodes[0] = length;
    return nodes;
}

int main(void) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "parse"));
    int *older = ebb_region_alloc(region, sizeof *older, 16);
    need(older != NULL);
    *older = 42;

    need(attempt(region, 1) == NULL && attempt(region, 2) == NULL);
    struct ebb_region_stats stats = {.size = sizeof stats};
    need(ebb_region_read_stats(region, &stats) == 0 && stats.blocks.current == 1);
    need(*older == 42);

    int *nodes = attempt(region, 3);
    need(nodes && nodes[0] == 3);

    /* A mark ends with a rewind to it or past it. */
    ebb_mark outer = ebb_region_mark(region), inner = ebb_region_mark(region);
    need(ebb_region_rewind(region, outer) == 0);
    need(ebb_region_rewind(region, inner) == EBB_E_MARK);
    need(nodes[0] == 3 && ebb_region_close(region) == 0);
    return 0;
}
