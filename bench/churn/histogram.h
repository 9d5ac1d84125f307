// SPDX-License-Identifier: Apache-2.0
/* histogram.h - sizes and lifetimes of a trace's blocks, by powers of two. */
#ifndef EBB_BENCH_HISTOGRAM_H
#define EBB_BENCH_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "../trace/trace.h"

enum { HISTOGRAM_BUCKETS = 49, HISTOGRAM_NEVER = HISTOGRAM_BUCKETS - 1 };

/* Bucket k holds values above 2^(k-1) and up to 2^k; smaller ones are in the first bucket. */
struct histogram {
    uint64_t count[HISTOGRAM_BUCKETS], bytes[HISTOGRAM_BUCKETS];
    int first; /* bucket that takes all small values */
};

/*
 * Fills both from the blocks that are born in the trace (preexisting ones are left out). A
 * lifetime is the number of blocks born between birth and end; blocks that never end are in
 * bucket HISTOGRAM_NEVER of `lifetimes`. False: no memory.
 */
bool histogram_fill(const struct ebb_trace *trace, struct histogram *sizes,
                    struct histogram *lifetimes);

/* Last bucket below HISTOGRAM_NEVER that is not empty; `first` if all are. */
int histogram_last(const struct histogram *histogram);

#endif
