// SPDX-License-Identifier: Apache-2.0
/*
 * case_large.h - a step of 400 tensors of 256 B to 4 MiB, every byte written.
 *
 * Half of them are temporaries: in each group of eight the last four are freed in reverse order
 * as soon as the group is complete. The other half lives to the end of the step. What is
 * reported beside the time: page faults of a step, and the peak of resident memory over the
 * bytes that were alive at once.
 */
#ifndef MICRO_CASE_LARGE_H
#define MICRO_CASE_LARGE_H

#include <string.h>

#include "case_small.h"

#define LARGE_GROUP ((size_t)8)

/* The most bytes alive at once, as asked for. */
static inline uint64_t large_live_bytes(const uint32_t *bytes) {
    uint64_t live = 0;
    uint64_t most = 0;

    for (size_t i = 0; i < LARGE_COUNT; i++) {
        live += bytes[i];
        most = live > most ? live : most;
        for (size_t j = 0; i % LARGE_GROUP == LARGE_GROUP - 1 && j < LARGE_GROUP / 2; j++)
            live -= bytes[i - j];
    }
    return most;
}

MICRO_INLINE void large_step(const struct peer_ops *ops, const uint32_t *bytes) {
    static void *blocks[LARGE_COUNT];
    struct step step = {NULL, 0};
    struct held held = {blocks, LARGE_COUNT};

    ops->begin(&step);
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        blocks[i] = ops->alloc(&step, bytes[i]);
        memset(blocks[i], (int)i, bytes[i]);
        use_block(blocks[i]);
        for (size_t j = 0; i % LARGE_GROUP == LARGE_GROUP - 1 && j < LARGE_GROUP / 2; j++) {
            if (ops->release != NULL)
                ops->release(&step, blocks[i - j]);
            blocks[i - j] = NULL;
        }
    }
    ops->end(&step, &held);
}

MICRO_INLINE void case_large(const struct peer_ops *ops, struct round *round) {
    const uint32_t *bytes = blocks_large();
    const size_t steps = 4;
    uint64_t faults = clock_faults();
    uint64_t begun = clock_cpu_ns();

    for (size_t i = 0; i < steps; i++)
        large_step(ops, bytes);
    round_add(round, "ms_per_step", (double)(clock_cpu_ns() - begun) / 1e6 / (double)steps);
    round_add(round, "faults_per_step", (double)(clock_faults() - faults) / (double)steps);
    round_add(round, "peak_rss_bytes", (double)clock_peak_resident_bytes());
    round_add(round, "peak_over_live",
              (double)clock_peak_resident_bytes() / (double)large_live_bytes(bytes));
}

#endif
