// SPDX-License-Identifier: Apache-2.0
/*
 * contest.h - the lists: which cases there are, who takes part, and in which of them.
 */
#ifndef MICRO_CONTEST_H
#define MICRO_CONTEST_H

#include <stdbool.h>
#include <stddef.h>

#include "peer.h"

enum family { FAMILY_FLOOR, FAMILY_EBB, FAMILY_MALLOC, FAMILY_ARENA };

struct contestant {
    const char *name; /* as in the rows */
    enum family family;
    const char *peer;        /* which struct peer the child runs */
    const char *preload;     /* LD_PRELOAD of the child, or NULL */
    const char *environment; /* "NAME=value", or NULL */
};

extern const struct contestant contestants[];
extern const size_t contestant_count;

struct contest {
    const char *name; /* of the case, as in the rows */
    enum micro_case which;
    bool compare;    /* ebb's first metric is put in relation to that of the others */
    const char *who; /* names, separated by blanks; NULL: everyone */
};

extern const struct contest contests[];
extern const size_t contest_count;

/* True if `name` is a word of `list`, words separated by blanks or commas. NULL: true. */
bool contest_lists(const char *list, const char *name);

const struct contestant *contest_find_contestant(const char *name);
const struct contest *contest_find_case(const char *name);

/* The peer of this name that is linked into this program, or NULL. */
const struct peer *contest_find_peer(const char *name);

#endif
