// SPDX-License-Identifier: Apache-2.0
/* options.h - the command line of ebb-plan. */
#ifndef EBB_BENCH_PLAN_OPTIONS_H
#define EBB_BENCH_PLAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { MADE_UP_MOST = 8 };

/* A step to make up. */
struct made_up {
    uint32_t count; /* buffers */
    uint32_t alive; /* of a random one: at once; 0: a training step */
};

struct options {
    uint64_t capacity;  /* bytes; 0: no limit */
    uint32_t keys;      /* orders to try */
    uint32_t slack_ppm; /* of max-live, that is enough */
    uint32_t search_ms;
    struct made_up made_up[MADE_UP_MOST];
    int made_up_count;
    const char *tsv;    /* file of the rows, or NULL */
    bool help;
    char **paths;
    int path_count;
};

/* 0, or -1 after a message on standard error. */
int options_parse(struct options *options, int argc, char **argv);

void options_help(void);

#endif
