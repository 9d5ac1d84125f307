// SPDX-License-Identifier: Apache-2.0
/*
 * child.h - the parent's side of the wire (serve.h): a process that measures one peer.
 *
 * ebb's child is a program of its own, so that no other peer's process even loads libebb. A
 * child whose malloc is not the one that the contestant names is refused.
 */
#ifndef MICRO_CHILD_H
#define MICRO_CHILD_H

#include <stdio.h>
#include <sys/types.h>

#include "contest.h"
#include "round.h"

#define CHILD_ROUNDS_MAX 101

struct series {
    char name[ROUND_NAME_MAX];
    double values[CHILD_ROUNDS_MAX];
    size_t count;
};

/* All zero: none is running. */
struct child {
    pid_t pid;
    int ask;      /* written to: one byte a round */
    FILE *answer; /* read from */
    size_t series_count;
    struct series series[ROUND_FIGURES_MAX];
};

enum child_state {
    CHILD_READY,
    CHILD_ABSENT, /* the peer was not built, or its library is not installed: no failure */
    CHILD_FAILED,
};

/*
 * Starts the contestant's child for the case. Unless it is ready, a line on standard error says
 * why there is none.
 */
enum child_state child_start(struct child *child, const struct contestant *contestant,
                             const char *case_name, bool quick);

/* One round. Figures are appended to the series unless `discard`. 0, or -1 if the child died. */
int child_round(struct child *child, bool discard);

/* Ends the child and waits for it. Its series stay readable. */
void child_end(struct child *child);

/* The series of this name, or NULL. */
const struct series *child_series(const struct child *child, const char *name);

#endif
