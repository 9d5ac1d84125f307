// SPDX-License-Identifier: Apache-2.0
/*
 * target.h - what ebb must reach, trace by trace, and whether it does.
 *
 *     footprint   no steady step holds more pages than 1.25 (tensor view) or 1.4 (full view)
 *                 times its max-live, or 256 KiB more than it where that is more
 *     steady_peak the steady step that holds most, over the most bytes alive in one: 1.02 on traces
 *                 that repeat, else 1.25 (tensor view); 1.10 or 1.35, or 256 KiB (full view)
 *     run_peak    the same over all steps: 1.15 (tensor view), 1.25 or 256 KiB (full view)
 *     peak_rss    below that of every peer
 *     step_us     at most that of the fastest peer
 *     faults, syscalls         none in the median steady step
 *     spike_rss, spike_step    20 steps after the spike under 1.5 times what was resident before;
 *                              no later step longer than twice the usual
 */
#ifndef EBB_BENCH_TARGET_H
#define EBB_BENCH_TARGET_H

#include <stdbool.h>

enum { TARGET_TEXT_MAX = 160 };

struct target {
    int workload;
    const char *name;
    double limit, value;
    bool met;
    char text[TARGET_TEXT_MAX];
};

struct bench;

/* Fills bench->target. Nothing to do where ebb was not measured. False: no memory. */
bool target_judge(struct bench *bench);

/* The target of this workload and name; NULL if it was not judged. */
const struct target *target_find(const struct bench *bench, int workload, const char *name);

#endif
