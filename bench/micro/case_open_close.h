// SPDX-License-Identifier: Apache-2.0
/*
 * case_open_close.h - an arena from nothing to nothing: empty, and with one block in it.
 *
 * A malloc has nothing to open and is left out. The arenas are made as their manuals make them;
 * most take their first piece from malloc at once, which is what this case is about.
 */
#ifndef MICRO_CASE_OPEN_CLOSE_H
#define MICRO_CASE_OPEN_CLOSE_H

#include "case_small.h"

#define OPEN_CLOSE_BATCH ((size_t)256)

MICRO_INLINE double open_close_ns(const struct peer_ops *ops, size_t blocks, uint64_t span_ns) {
    uint64_t begun = clock_cpu_ns();
    uint64_t spent;
    size_t done = 0;

    do {
        for (size_t i = 0; i < OPEN_CLOSE_BATCH; i++) {
            struct step step = {NULL, 0};

            ops->open(&step);
            for (size_t j = 0; j < blocks; j++)
                write_head(ops->alloc(&step, MICRO_CONST_BYTES), j);
            use_memory();
            ops->close(&step);
        }
        done += OPEN_CLOSE_BATCH;
        spent = clock_cpu_ns() - begun;
    } while (spent < span_ns);
    return (double)spent / (double)done;
}

MICRO_INLINE void case_open_close(const struct peer_ops *ops, struct round *round) {
    if (ops->open == NULL)
        return;
    round_add(round, "ns_empty", open_close_ns(ops, 0, round->span_ns));
    round_add(round, "ns_one_block", open_close_ns(ops, 1, round->span_ns));
}

#endif
