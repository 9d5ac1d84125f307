// SPDX-License-Identifier: Apache-2.0
/* training.c - a region for the run, one for each step; what survives moves to the run. */
#include <ebb/ebb.h>

#include <stdlib.h>
#include <string.h>

#define PARAMETERS ((size_t)1 << 20) /* floats */

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* One step: temporaries come and go, the new momentum is what survives. */
static float *train(ebb_region step, const float *momentum) {
    float *gradient = ebb_region_alloc(step, PARAMETERS * sizeof *gradient, 64);
    need(gradient != NULL);
    for (int layer = 0; layer < 8; layer++) {
        float *activation = ebb_region_alloc(step, PARAMETERS * sizeof *activation, 64);
        need(activation != NULL);
        memset(activation, layer, PARAMETERS * sizeof *activation);
        ebb_region_release(step, activation); /* the next layer gets the same place */
    }
    float *updated = ebb_region_alloc(step, PARAMETERS * sizeof *updated, 64);
    need(updated != NULL);
    for (size_t i = 0; i < PARAMETERS; i++)
        updated[i] = momentum[i] + (gradient[i] = 1);
    return updated;
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    float *momentum = ebb_region_alloc_zeroed(run, PARAMETERS * sizeof *momentum, 64);
    struct ebb_promoted cost = {0};
    need(momentum != NULL);
    for (int i = 0; i < 10; i++) {
        ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));
        struct ebb_survivor kept = {.block = train(step, momentum)};
        struct ebb_region_stats stats = {.size = sizeof stats};
        need(ebb_region_read_stats(step, &stats) == 0);
        need(stats.used.peak < 4 * PARAMETERS * sizeof(float)); /* not 10: places were reused */
        need(ebb_close_keeping(step, run, &kept, 1, &cost, NULL) == 0);
        need(ebb_region_release(run, momentum) == 0);
        momentum = kept.block;
    }
    need(momentum[0] == 10 && momentum[PARAMETERS - 1] == 10);
    need(cost.relinked_blocks == 10 && cost.copied_blocks == 0); /* no byte was moved */
    return ebb_region_close(run);
}
