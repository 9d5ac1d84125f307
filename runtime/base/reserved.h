// SPDX-License-Identifier: Apache-2.0
/*
 * reserved.h - an array whose addresses are reserved at once and opened from the start as it grows.
 *
 * What is not open cannot be touched and costs nothing: core dumps and leak checkers skip it,
 * mlockall() does not lock it, and strict overcommit does not count it.
 */
#ifndef EBB_BASE_RESERVED_H
#define EBB_BASE_RESERVED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct reserved {
    char *at;
    size_t bytes;
    atomic_size_t open; /* bytes from the start; grows in steps */
    bool only_counts;   /* `open` is only a count: whoever takes addresses opens them */
};

/* Reserves the addresses of an array. False: there are none left. One thread at a time. */
bool reserved_make(struct reserved *array, size_t bytes);

/* Makes sure that the first `bytes`, at most all, are open. False: the system refused. Any thread;
 * takes a lock, the innermost of all, unless they are open already. */
bool reserved_open(struct reserved *array, size_t bytes);

/* Closes all but the first `bytes`, a multiple of the step. One thread at a time. */
void reserved_close(struct reserved *array, size_t bytes);

/* Takes the lock before a fork, and gives it back after. */
void reserved_fork(bool before);

#endif
