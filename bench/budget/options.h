// SPDX-License-Identifier: Apache-2.0
/* options.h - the command line of ebb budget. */
#ifndef EBB_BENCH_BUDGET_OPTIONS_H
#define EBB_BENCH_BUDGET_OPTIONS_H

#include <ebb/step.h>

struct options {
    struct ebb_churn_budget budget;
    const char *kind; /* of the steps that have the budget; NULL: all */
    char **paths;
    int path_count;
    bool help;
};

/* 0, or -1 after a message on standard error. */
int options_parse(struct options *options, int argc, char **argv);

void options_help(void);

#endif
