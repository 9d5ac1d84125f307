// SPDX-License-Identifier: Apache-2.0
/*
 * watch_bare.c - the allocator alone: nanoseconds per event without touching.
 *
 * Blocks stay as they come; only the allocator's own work is left, and the loop. What the loop
 * costs is measured in the same process with the empty heap and taken off. `bare_step_us` is not
 * corrected.
 */
#include "watch.h"

static bool make(struct run *run) {
    return watch_time.make(run);
}

/* Time per event of the steady steps: their sum, divided by the events in them. */
static double steady_event_ns(const struct run *run) {
    const struct script_step *steps = script_steps(run->script);
    double us = 0, events = 0;
    for (uint32_t pass = 0; pass < run->passes; pass++)
        for (uint32_t i = 0; i < run->script->step_count; i++)
            if (steps[i].end < run->until && ledger_steady(run->script, pass, i)) {
                us += *ledger_at(&run->first, pass, i);
                events += steps[i].end - steps[i].begin + 1;
            }
    return events > 0 ? us * 1000 / events : 0;
}

/* The same passes with the empty heap. */
static double loop_event_ns(struct run *run) {
    struct replay empty = run->replay;
    for (uint32_t pass = 0; pass < run->passes; pass++) {
        empty.pass = pass;
        heap_empty.pass[REPLAY_BARE](&empty);
    }
    return steady_event_ns(run);
}

static void report(struct run *run) {
    double gross = steady_event_ns(run);
    ledger_print_kinds(&run->first, "bare_step_us");
    double loop = loop_event_ns(run);
    ledger_print("event_ns", "", gross > loop ? gross - loop : 0);
    ledger_print("loop_ns", "", loop);
}

static void on_begin(struct replay *replay, uint32_t step) {
    watch_time.on_begin(replay, step);
}

static void on_end(struct replay *replay, uint32_t step) {
    watch_time.on_end(replay, step);
}

const struct watch watch_bare = {"bare", REPLAY_BARE, make, on_begin, on_end, report};
