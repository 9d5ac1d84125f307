// SPDX-License-Identifier: Apache-2.0
/*
 * ledger.h - one number for every step of every pass, and the figures that sum them up.
 *
 *     value[pass * steps + step]       NAN: nothing to tell about this step
 *
 * Steady steps are those of later passes, and in the first pass those that are no warm-up.
 */
#ifndef EBB_BENCH_LEDGER_H
#define EBB_BENCH_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "../script.h"

enum { LEDGER_ALL_KINDS = -1 };

struct ledger {
    const struct script *script;
    uint32_t passes;
    uint32_t until;  /* steps that end at or after this event never take place */
    double *value;
    double *sorted;  /* room for ledger_sort() */
    uint64_t count;  /* of what was sorted */
};

/* All zero, in memory of its own that is already there. False: no memory. */
bool ledger_make(struct ledger *ledger, const struct script *script, uint32_t passes,
                 uint32_t until);

static inline double *ledger_at(const struct ledger *ledger, uint32_t pass, uint32_t step) {
    return &ledger->value[(uint64_t)pass * ledger->script->step_count + step];
}

/* True if the step is no warm-up in this pass. */
bool ledger_steady(const struct script *script, uint32_t pass, uint32_t step);

/* Sorts the steady values of one kind, or of LEDGER_ALL_KINDS, ascending; the functions below
 * then speak of these. */
void ledger_sort(struct ledger *ledger, int kind);

/* 0 if there are no values. `quantile` is in 0..1: 0.5 is the median, 1 the largest. */
double ledger_quantile(const struct ledger *ledger, double quantile);
double ledger_mean(const struct ledger *ledger);

/* Prints median, p10, p90 and max of the main kind's values as NAME, NAME_p10, ...; and, where a
 * trace has several kinds of steps, the median of each as NAME.KIND. */
void ledger_print_kinds(struct ledger *ledger, const char *name);

/* Prints median, mean and largest of all values as NAME, NAME_mean, NAME_max. */
void ledger_print_all(struct ledger *ledger, const char *name);

/* Prints one line that the harness reads. */
void ledger_print(const char *name, const char *suffix, double value);

#endif
