// SPDX-License-Identifier: Apache-2.0
/*
 * case_release.h - a block and its early end, one after the other: small (48 bytes) and large
 * (64 KiB), 1,000 pairs in a step.
 */
#ifndef MICRO_CASE_RELEASE_H
#define MICRO_CASE_RELEASE_H

#include "case_small.h"

#define RELEASE_PAIRS ((size_t)1000)

MICRO_INLINE double release_pair_ns(const struct peer_ops *ops, size_t bytes, uint64_t span_ns) {
    uint64_t begun = clock_cpu_ns();
    uint64_t spent;
    size_t pairs = 0;

    do {
        struct step step = {NULL, 0};
        struct held none = {NULL, 0};

        ops->begin(&step);
        for (size_t i = 0; i < RELEASE_PAIRS; i++) {
            void *block = ops->alloc(&step, bytes);

            write_head(block, i);
            use_block(block);
            ops->release(&step, block);
        }
        ops->end(&step, &none);
        pairs += RELEASE_PAIRS;
        spent = clock_cpu_ns() - begun;
    } while (spent < span_ns);
    return (double)spent / (double)pairs;
}

MICRO_INLINE void case_release(const struct peer_ops *ops, struct round *round) {
    if (ops->release == NULL)
        return;
    round_add(round, "ns_small_pair", release_pair_ns(ops, 48, round->span_ns));
    round_add(round, "ns_large_pair", release_pair_ns(ops, 64 << 10, round->span_ns));
}

#endif
