// SPDX-License-Identifier: Apache-2.0
/* output.h - files that are written when all that goes into them is there. */
#ifndef EBB_BENCH_OUTPUT_H
#define EBB_BENCH_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file; /* in memory */
    const char *path;
    char *text;
    size_t bytes;
};

/* Whether it can be written, so far as it can be known before. False after a message. */
bool output_possible(const char *path);

/* Whether both are one file, or would be if they were written. */
bool output_is_one_file(const char *path, const char *other);

/* Begins a file for `path`. False after a message. */
bool output_begin(struct output *output, const char *path);

/* 0, or -1 after a message: on a full disk an ordinary file that was there before is there still,
 * unless nothing can be put beside it, or it has several names. */
int output_end(struct output *output);

#endif
