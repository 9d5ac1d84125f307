// SPDX-License-Identifier: Apache-2.0
/*
 * watch_count.c - page faults per step, resident memory, and the heap's own counters.
 *
 * Faults are the minor faults that getrusage counts. The markers for the tracer stand inside
 * those calls, so that the tracer sees the step's system calls and nothing else.
 */
#include <sys/resource.h>

#include "marker.h"
#include "resident.h"
#include "watch.h"

static bool make(struct run *run) {
    return ledger_make(&run->first, run->script, run->passes, run->until);
}

static double faults_now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_minflt;
}

static void on_begin(struct replay *replay, uint32_t step) {
    struct run *run = replay->context;
    *ledger_at(&run->first, replay->pass, step) = faults_now();
    marker_send(MARKER_BEGIN, replay->pass, step);
}

static void on_end(struct replay *replay, uint32_t step) {
    struct run *run = replay->context;
    marker_send(MARKER_END, replay->pass, step);
    double *entry = ledger_at(&run->first, replay->pass, step);
    *entry = faults_now() - *entry;
    if (run->heap->sample)
        run->heap->sample(ledger_steady(run->script, replay->pass, step),
                          script_steps(run->script)[step].warmup != 0);
}

static void report(struct run *run) {
    uint64_t end = resident_now(), peak = resident_peak();
    ledger_print_all(&run->first, "faults_per_step");
    ledger_print("base_rss_bytes", "", (double)run->base_resident);
    ledger_print("peak_rss_bytes", "", (double)peak);
    ledger_print("peak_over_base_bytes", "", (double)(peak - run->base_resident));
    ledger_print("end_rss_bytes", "", (double)end);
    if (run->heap->report)
        run->heap->report(run->first.count);
}

const struct watch watch_count = {"count", REPLAY_TOUCH, make, on_begin, on_end, report};
