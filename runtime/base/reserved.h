// SPDX-License-Identifier: Apache-2.0
/*
 * reserved.h - an array whose addresses are reserved at once and opened from its start on, as it
 * grows.
 *
 * What is not open cannot be touched, and costs nothing anywhere: core dumps and leak checkers do
 * not look at it, mlockall() locks none of it, and strict overcommit does not count it.
 */
#ifndef EBB_BASE_RESERVED_H
#define EBB_BASE_RESERVED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct reserved {
    char *at;
    size_t bytes;
    atomic_size_t open; /* so many from its start, in steps */
    bool only_counts;   /* so far it goes; who takes some of it opens it himself */
};

/* Addresses of its own for an array. False: there are none. Nobody else uses it meanwhile. */
bool reserved_make(struct reserved *array, size_t bytes);

/* The first `bytes`, not more than there are, may be touched. False: the system refuses. Any
 * thread; takes a lock, inside of all others, if that many are not open yet. */
bool reserved_open(struct reserved *array, size_t bytes);

/* All but the first `bytes`, which are whole steps, is closed as it was. Nobody else uses it
 * meanwhile. */
void reserved_close(struct reserved *array, size_t bytes);

/* Takes the lock before a fork, and gives it back after. */
void reserved_fork(bool before);

#endif
