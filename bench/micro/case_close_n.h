// SPDX-License-Identifier: Apache-2.0
/*
 * case_close_n.h - the end of a step alone, for steps of 10 to 1,000,000 blocks of 48 bytes.
 *
 * Each end is timed by itself and the clock's own cost taken off; the figure is the mean of the
 * round's calm repetitions (clock_calm_mean). What an arena puts off until its next step is not
 * seen here: small10k and flat_count see it.
 */
#ifndef MICRO_CASE_CLOSE_N_H
#define MICRO_CASE_CLOSE_N_H

#include "case_small.h"

#define CLOSE_REPETITIONS ((size_t)200)

MICRO_INLINE double close_once_ns(const struct peer_ops *ops, void **blocks, size_t count) {
    struct step step = {NULL, 0};
    struct held held = {blocks, count};
    uint64_t begun;
    uint64_t ended;

    ops->begin(&step);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = ops->alloc(&step, MICRO_CONST_BYTES);
        write_head(blocks[i], i);
    }
    use_memory();
    begun = clock_wall_ns();
    ops->end(&step, &held);
    ended = clock_wall_ns();
    return (double)(ended - begun);
}

MICRO_INLINE void case_close_n(const struct peer_ops *ops, struct round *round) {
    void **blocks = blocks_pointers();
    size_t most = round->quick ? 100000 : 1000000;

    for (size_t count = 10; count <= most; count *= 10) {
        double spans[CLOSE_REPETITIONS];
        size_t repetitions = count <= 1000 ? CLOSE_REPETITIONS : count < 1000000 ? 15 : 5;

        for (size_t i = 0; i < repetitions; i++)
            spans[i] = close_once_ns(ops, blocks, count);
        round_add_at(round, "ns_close", 'n', count,
                     clock_calm_mean(spans, repetitions) - clock_wall_cost_ns());
    }
}

#endif
