// SPDX-License-Identifier: Apache-2.0
/* workload.h - a trace that is to be replayed: read, compiled, described, and how often. */
#ifndef EBB_BENCH_WORKLOAD_H
#define EBB_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"
#include "histogram.h"

/* No name of a file is longer than 255 bytes; a view may be added. */
enum { WORKLOAD_ID_MAX = 256 + 8, WORKLOAD_FAULT_MAX = 640 };

/* The name of the synthetic trace; no other may have it. */
#define WORKLOAD_SPIKE_ID "spike.synthetic"

/* How much of the script one process replays. */
struct portion {
    uint32_t passes;
    uint32_t until; /* events of a pass */
    uint32_t steps; /* that end in a pass */
    double cost_ns; /* what it will take, roughly */
};

struct workload {
    char id[WORKLOAD_ID_MAX]; /* "trace.view", from the name of the file; or only "trace" */
    bool tensor;              /* the view */
    bool repeats;             /* its steady steps have fixed or padded shapes */
    bool spike;               /* the synthetic trace: measured step by step */
    struct compiled compiled;
    uint64_t events, objects, max_live_bytes, left_bytes;
    uint32_t steady_steps; /* of the main kind, in the first pass */
    struct histogram sizes, lifetimes;
    struct portion timed, counted, footprint;
    char fault[WORKLOAD_FAULT_MAX]; /* why it cannot be replayed; "" if it can */
};

/* Reads and compiles the file at `path`; on failure `fault` says why. */
void workload_read(struct workload *workload, const char *path, bool quick);

/* The view that the name ends with, within it; NULL: with none. */
const char *workload_view(const struct workload *workload);

/* Makes the synthetic trace of spike.h. */
void workload_make_spike(struct workload *workload);

void workload_free(struct workload *workload);

/* What a step may hold at most, in percent of its max-live. */
uint32_t workload_limit_percent(const struct workload *workload);

#endif
