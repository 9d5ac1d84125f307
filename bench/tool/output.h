// SPDX-License-Identifier: Apache-2.0
/* output.h - files that appear under their names when they are whole, and not before. */
#ifndef EBB_BENCH_TOOL_OUTPUT_H
#define EBB_BENCH_TOOL_OUTPUT_H

#include <stdbool.h>
#include <zlib.h>

enum { OUTPUT_PATH_MAX = 4200 };

struct output {
    gzFile file;
    char path[OUTPUT_PATH_MAX], beside[OUTPUT_PATH_MAX]; /* written there, then renamed */
    int lock; /* keeps others from `beside`, where that is not empty */
};

/*
 * True if a file may be put at `path`: nothing is there, or an ordinary file. Renaming over a
 * device or a pipe would end that. False after a message.
 */
bool output_allowed(const char *path);

/* True if it can be written to, as far as can be seen now, before what takes minutes is begun: an
 * ordinary file in a folder that takes new ones, or what is there already and is no folder. False
 * after a message. */
bool output_possible(const char *path);

/* True if the file that is to be written is this one, an ordinary file that is read. */
bool output_is(const char *path, const char *input);

/* The contrary. False after a message. */
bool output_apart(const char *path, const char *input);

/* Begins a compressed file for `path`, or for what links there lead to. False after a message. */
bool output_begin(struct output *output, const char *path);

/* All is written, nothing has its name yet. False after a message; then it is gone. */
bool output_close(struct output *output);

/* Gives it its name. False after a message; then it is gone. */
bool output_name(struct output *output);

/* Leaves no trace of one that was begun and not named; nothing for others. */
void output_drop(struct output *output);

#endif
