// SPDX-License-Identifier: Apache-2.0
/* bench.h - one run of the benchmark: what was asked, what is measured, what came out. */
#ifndef EBB_BENCH_BENCH_H
#define EBB_BENCH_BENCH_H

#include "machine.h"
#include "options.h"
#include "sample.h"
#include "target.h"
#include "workload.h"

/* A row of another benchmark, as it stood in its file, cut into its five fields. */
struct imported_row {
    char *bench, *name, *allocator, *metric, *value;
};

struct bench {
    struct options options;
    struct machine machine;
    struct workload *workload;
    int workload_count;
    struct samples samples;
    char **failure; /* by workload and allocator: why it was given up; NULL if it was not */
    struct target *target;
    int target_count;
    struct imported_row *imported;
    int imported_count;
};

/* Where the failure of a workload with the n-th chosen allocator is kept. */
static inline char **bench_failure(const struct bench *bench, int workload, int nth) {
    return &bench->failure[workload * OPTIONS_ALLOCATORS_MAX + nth];
}

/* Value of a row; `otherwise` if there is none. */
static inline double bench_value(const struct bench *bench, int workload, int allocator,
                                 const char *metric, double otherwise) {
    const struct row *row = samples_row(&bench->samples, workload, allocator, metric);
    return row ? row->value : otherwise;
}

#endif
