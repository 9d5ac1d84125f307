// SPDX-License-Identifier: Apache-2.0
/* options.h - the command line of ebb-plan. */
#ifndef EBB_BENCH_PLAN_OPTIONS_H
#define EBB_BENCH_PLAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { SYNTHETIC_MOST = 8 };

struct options {
    uint64_t capacity;  /* bytes; 0: no limit */
    uint32_t keys;      /* orders to try */
    uint32_t slack_ppm; /* of max-live, that is enough */
    uint32_t search_ms;
    uint32_t synthetic[SYNTHETIC_MOST]; /* buffers */
    int synthetic_count;
    const char *tsv;    /* file of the rows, or NULL */
    bool help;
    char **paths;
    int path_count;
};

/* 0, or -1 after a message on standard error. */
int options_parse(struct options *options, int argc, char **argv);

void options_help(void);

#endif
