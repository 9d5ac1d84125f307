// SPDX-License-Identifier: Apache-2.0
/*
 * loop.h - a program that does the same again and again, in some threads, and measures itself.
 *
 * It speaks as train.py does: takes `warm` steps, prints `ready`, and for each line, which is a
 * number, takes so many steps in every thread and prints a line of JSON, whose times and faults are
 * those of one step of one thread. Times are of processors: a thread that waits for a lock takes
 * none.
 *
 * With SERVE_SCOPES=1, in a process that has libebb-malloc, each request is a scope of one site.
 */
#pragma once

#define LOOP_MOST 64 /* threads */
#define LOOP_STEPS_MOST 1000000000 /* of a turn */

struct loop {
    /* Gets the number of its thread, 0 to threads - 1; the result is what it computed, the same
     * with every allocator. */
    unsigned long (*request)(unsigned thread);
    const char *name;  /* of the site */
    unsigned requests; /* of a step */
    unsigned threads;  /* one: the caller's own */
    unsigned long warm;
};

/* The program's exit code: 0 at the end of the input; 1 if something failed, 2 if it was told what
 * it cannot do. */
int loop_run(const struct loop *loop);
