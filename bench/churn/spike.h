// SPDX-License-Identifier: Apache-2.0
/*
 * spike.h - a synthetic trace: normal steps, one step a hundred times as large, normal steps.
 *
 * A normal step imitates training on four batches: 24 layers, each with an activation of 4 to
 * 256 KiB that lives until its backward pass, a gradient, and 40 small blocks. Three blocks
 * survive into the next step. The large step has every block a hundred times, all alive when one
 * of them would be.
 */
#ifndef EBB_BENCH_SPIKE_H
#define EBB_BENCH_SPIKE_H

#include "../trace/trace.h"

enum {
    SPIKE_BEFORE = 50, /* normal steps; the large one has this number */
    SPIKE_AFTER = 40,
    SPIKE_TIMES = 100,
    SPIKE_LATER = 20, /* steps after which memory must be back */
};

/* Owned by the caller until trace_free(). NULL: no memory. */
struct ebb_trace *spike_make(void);

#endif
