// SPDX-License-Identifier: Apache-2.0
/* output.h - files that get their names when they are whole. */
#ifndef EBB_BENCH_OUTPUT_H
#define EBB_BENCH_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    const char *path;
    char *name, *beside; /* it is written beside, then gets the name; NULL: straight to `path` */
};

/* Whether it can be written, so far as it can be known before. False after a message. */
bool output_possible(const char *path);

/* Begins a file for `path`. False after a message. */
bool output_begin(struct output *output, const char *path);

/* 0, or -1 after a message: then an ordinary file that was there before is there still. */
int output_end(struct output *output);

#endif
