// SPDX-License-Identifier: Apache-2.0
/* case.h - a trace with its places and figures: what report and advise begin with. */
#ifndef EBB_BENCH_TOOL_CASE_H
#define EBB_BENCH_TOOL_CASE_H

#include <stdbool.h>

#include "figures.h"

struct recorded_case {
    const char *path;
    struct ebb_trace *trace;
    struct places places;
    struct figures figures;
};

/* Reads all of it. 0; or an exit code (command.h), after a message. */
int case_read(struct recorded_case *recorded, const char *path);

void case_free(struct recorded_case *recorded);

/* Why the recording stopped before the program ended, as the trace says it (`#stopped`), as plain
 * text that is valid until the next words_name(); NULL if it did not. */
const char *case_stop(const struct recorded_case *recorded);

/* Says so, if it did. */
void case_print_stop(const struct recorded_case *recorded);

/* Prints what the steps allocate and what outlives them. */
void case_print_steps(const struct recorded_case *recorded);

/* Prints the places whose blocks outlive their steps, `most` of them and the others in one row. */
void case_print_worst(const struct recorded_case *recorded, size_t most);

/* How many steps of a kind there are, and the most bytes of its own that one has at once. */
uint64_t case_steps(const struct recorded_case *recorded, int kind);
uint64_t case_peak(const struct recorded_case *recorded, int kind);

#endif
