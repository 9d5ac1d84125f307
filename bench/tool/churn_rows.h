// SPDX-License-Identifier: Apache-2.0
/* churn_rows.h - replays a trace with the churn benchmark and takes in its rows. */
#ifndef EBB_BENCH_TOOL_CHURN_ROWS_H
#define EBB_BENCH_TOOL_CHURN_ROWS_H

#include <stdbool.h>

enum { CHURN_ALLOCATORS_MAX = 16, CHURN_NAME_MAX = 64, CHURN_LIST_MAX = 128, CHURN_METRICS = 7 };

/* What is taken of a row of an allocator; the order of metrics in churn_row.value. */
enum churn_metric {
    CHURN_STEP_US,
    CHURN_STEP_LOW,
    CHURN_STEP_HIGH,
    CHURN_PEAK,      /* peak_over_base_bytes */
    CHURN_FOOTPRINT, /* footprint_ratio */
    CHURN_FAULTS,
    CHURN_CALLS,
};

struct churn_row {
    char allocator[CHURN_NAME_MAX];
    double value[CHURN_METRICS]; /* negative: not measured */
};

struct churn_rows {
    struct churn_row row[CHURN_ALLOCATORS_MAX];
    int count;
};

struct churn_wish {
    const char *trace;
    const char *allocators; /* NULL: all */
    int rounds;             /* 0: churn's own */
    bool quick;
    const char *json;       /* churn's JSON file goes there, and is whole where there are rows, or
                             * may be cut; NULL: nowhere */
};

/* A list of allocators from the command line, whose names must be known; false after a message. */
bool churn_take_allocators(const char *text, const char **list);

/* Those of `list` that this machine has, in `found`; the others are named on standard error. */
void churn_find_allocators(const char *list, char found[CHURN_LIST_MAX]);

/* A number of rounds from the command line; false after a message. */
bool churn_take_rounds(const char *text, int *rounds);

/* An exit code (command.h), after a message if it is not 0: there may be rows all the same, of
 * those that did not fail. What churn says goes to standard error. */
int churn_run(const struct churn_wish *wish, struct churn_rows *rows);

/* The row of an allocator; NULL. */
const struct churn_row *churn_row_of(const struct churn_rows *rows, const char *allocator);

/* Prints a table: times, memory, faults. */
void churn_print(const struct churn_rows *rows);

#endif
