// SPDX-License-Identifier: Apache-2.0
/* collate.c - a batch is measured, placed in one run of pages, filled, and kept as a whole. */
#include <ebb/ebb.h>

#include <stdlib.h>

#define SAMPLES ((size_t)64)
#define WIDTH ((size_t)80) /* floats of one time step */

struct batch {
    float *values;     /* SAMPLES x longest x WIDTH, padded with zero */
    uint32_t *lengths; /* SAMPLES */
};

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* Allocates and touches nothing: so it can be measured. */
static struct batch place(ebb_region region, size_t longest) {
    size_t count = SAMPLES * longest * WIDTH;
    return (struct batch){ebb_region_alloc_array(region, count, sizeof(float), 64),
                          ebb_region_alloc_array(region, SAMPLES, sizeof(uint32_t), 16)};
}

static size_t measure(size_t longest) {
    ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.name = "measure", .measure = true));
    place(region, longest);
    size_t hint = ebb_region_measured(region);
    ebb_region_close(region);
    return hint;
}

int main(void) {
    ebb_region loader = ebb_region_open(EBB_REGION_OPTIONS(.name = "loader"));
    size_t longest = 200, hint = measure(longest);
    ebb_region region = ebb_region_open(
        EBB_REGION_OPTIONS(.name = "collate", .parent = loader, .hint_bytes = hint));
    struct batch batch = place(region, longest);
    need(batch.values && batch.lengths);
    for (size_t i = 0; i < SAMPLES; i++)
        batch.lengths[i] = (uint32_t)(i + 1);
    for (size_t i = 0; i < SAMPLES * longest * WIDTH; i++)
        batch.values[i] = i / WIDTH % longest < i / WIDTH / longest + 1 ? 1.0f : 0.0f;

    struct ebb_region_stats stats = {.size = sizeof stats};
    need(ebb_region_read_stats(region, &stats) == 0);
    need(stats.runs == 1 && stats.reserved.peak == hint); /* it never grew */

    struct ebb_survivor kept[] = {{.block = batch.values}, {.block = batch.lengths}};
    struct ebb_promoted cost = {0};
    need(ebb_close_keeping(region, loader, kept, 2, &cost, NULL) == 0);
    need(kept[0].mode == EBB_PROMOTE_RELINK && kept[0].block == batch.values);
    need(kept[1].mode == EBB_PROMOTE_COPY && ((uint32_t *)kept[1].block)[63] == 64);
    return ebb_region_close(loader);
}
