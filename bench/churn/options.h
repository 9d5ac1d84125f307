// SPDX-License-Identifier: Apache-2.0
/* options.h - the command line of churn. */
#ifndef EBB_BENCH_OPTIONS_H
#define EBB_BENCH_OPTIONS_H

#include <stdbool.h>

enum { OPTIONS_ALLOCATORS_MAX = 16 };

struct options {
    const char *traces; /* folder or file */
    const char *tsv, *json, *add_rows; /* NULL: not asked for */
    int allocator[OPTIONS_ALLOCATORS_MAX]; /* numbers in the table of allocators */
    int allocator_count;
    bool chosen; /* the user named the allocators */
    int rounds;
    bool quick, touch, replay, plan, spike;
    bool help;
};

/* 0, or -1 after a message on standard error. */
int options_parse(struct options *options, int argc, char **argv);

void options_help(void);

#endif
