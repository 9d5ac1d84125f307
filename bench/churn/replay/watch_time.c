// SPDX-License-Identifier: Apache-2.0
/*
 * watch_time.c - time per step, and for `spike` also resident memory after each step.
 *
 * The clock is read last before a step and first after it: opening and closing the region and
 * promoting its survivors is part of the step. A ledger entry holds the begin while the step is
 * open.
 */
#include <stdio.h>
#include <time.h>

#include "resident.h"
#include "watch.h"

uint64_t watch_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool make(struct run *run) {
    return ledger_make(&run->first, run->script, run->passes, run->until) &&
           ledger_make(&run->second, run->script, run->passes, run->until);
}

static void on_begin(struct replay *replay, uint32_t step) {
    struct run *run = replay->context;
    double *entry = ledger_at(&run->first, replay->pass, step);
    *entry = (double)watch_now();
}

static void on_end(struct replay *replay, uint32_t step) {
    double now = (double)watch_now();
    struct run *run = replay->context;
    double *entry = ledger_at(&run->first, replay->pass, step);
    *entry = (now - *entry) / 1000;
}

static void report(struct run *run) {
    ledger_print_kinds(&run->first, "step_us");
}

static void on_spike_end(struct replay *replay, uint32_t step) {
    struct run *run = replay->context;
    on_end(replay, step);
    *ledger_at(&run->second, replay->pass, step) =
        (double)resident_now() - (double)run->base_resident;
}

static void print_series(const char *name, const struct ledger *ledger) {
    printf("series %s", name);
    for (uint32_t step = 0; step < ledger->script->step_count; step++)
        printf(" %.17g", *ledger_at(ledger, 0, step));
    putchar('\n');
}

static void report_spike(struct run *run) {
    print_series("spike_step_us", &run->first);
    print_series("spike_rss_bytes", &run->second);
}

const struct watch watch_time = {"time", REPLAY_TOUCH, make, on_begin, on_end, report};
const struct watch watch_spike = {"spike",  REPLAY_TOUCH, make,
                                  on_begin, on_spike_end, report_spike};
