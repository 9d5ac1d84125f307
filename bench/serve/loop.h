// SPDX-License-Identifier: Apache-2.0
/*
 * loop.h - a program that does the same again and again, in some threads, and measures itself.
 *
 * It speaks as train.py does: takes `warm` steps, prints `ready`, and for each line with a number
 * takes so many steps in every thread and prints a line of JSON, whose times and faults are those
 * of one step of one thread. Times are of processors: a thread that waits for a lock takes none.
 */
#pragma once

/* One step of a thread, which gets its number, 0 to threads - 1; the result is what it computed,
 * the same with every allocator. */
typedef unsigned long loop_step(unsigned thread);

#define LOOP_MOST 64 /* threads */

/* The program's exit code. One thread: the caller's own. */
int loop_run(loop_step *step, unsigned threads, unsigned long warm);
