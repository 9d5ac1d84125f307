// SPDX-License-Identifier: Apache-2.0
/* process.h - one replaying process: started, waited for, its report taken in. */
#ifndef EBB_BENCH_PROCESS_H
#define EBB_BENCH_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "allocator.h"
#include "sample.h"
#include "workload.h"

enum { PROCESS_FAULT_MAX = 256 };

enum process_kind {
    PROCESS_TIME,      /* blocks touched */
    PROCESS_BARE,      /* not touched */
    PROCESS_TRACE,     /* counting, traced for system calls */
    PROCESS_FOOTPRINT,
    PROCESS_SPIKE,
};

struct process {
    const struct workload *workload;
    const struct allocator *allocator;
    int workload_number, allocator_number;
    enum process_kind kind;
    bool plan; /* ebb's steps learn */
    pid_t pid;
    int output; /* the child writes its report and its messages here */
};

/*
 * Starts `process`, whose members up to `kind` are filled in, on this portion of its workload.
 * 0, or -1 with errno.
 */
int process_start(struct process *process, const struct portion *portion);

/*
 * Waits for it and adds what it reported to `samples`. 0; or -1 with a sentence in `fault`
 * (PROCESS_FAULT_MAX bytes) if it failed or if another allocator than the wanted one served it.
 */
int process_finish(struct process *process, struct samples *samples, char *fault);

#endif
