// SPDX-License-Identifier: Apache-2.0
/* progress.h - how far a long run has come: a bar on a terminal, plain lines elsewhere. */
#ifndef EBB_BENCH_PROGRESS_H
#define EBB_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    double total, done; /* in any unit; the time left follows from them */
    uint64_t begin_ns, shown_ns;
    int tenth; /* plain lines: last tenth that was reported */
    bool terminal;
};

/* `total`: the sum of all that progress_step() will be told. Writes to standard error. */
void progress_begin(struct progress *progress, double total);

/* Another piece of work is done; `what` is being worked on. */
void progress_step(struct progress *progress, double work, const char *what);

/* Wipes the bar, which comes again with the next step: something else is to be said. */
void progress_wipe(const struct progress *progress);

/* All is done, or given up. */
void progress_end(struct progress *progress);

#endif
