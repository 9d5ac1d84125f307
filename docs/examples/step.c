// SPDX-License-Identifier: Apache-2.0
#include <ebb/ebb.h>

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    float *loss = NULL;
    for (int i = 0; i < 100; i++) {
        ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));
        float *input = ebb_region_alloc(step, 4 << 20, 64);      /* large lane: best fit */
        float *hidden = ebb_region_alloc(step, 4 << 20, 64);
        float *sum = ebb_region_alloc(step, sizeof *sum, 16);    /* small lane: a bump */
        if (!input || !hidden || !sum)
            return 1;
        hidden[0] = input[0] = (float)i;
        ebb_region_release(step, input);          /* optional: its place is reused at once */
        *sum = hidden[0];
        ebb_region_release(run, loss);            /* the old one; NULL is nothing */
        struct ebb_survivor keep = {.block = sum};
        if (ebb_close_keeping(step, run, &keep, 1, NULL, NULL) != 0)
            return 1;
        loss = keep.block;                        /* lives in `run`; the rest is gone */
    }
    return *loss == 99 && ebb_region_close(run) == 0 ? 0 : 1;
}
