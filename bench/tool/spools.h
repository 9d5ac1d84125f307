// SPDX-License-Identifier: Apache-2.0
/*
 * spools.h - the spools of a recording: a folder in which each program that started has one.
 *
 * The trace is made of the heaviest, which noted most. Of the others only the number is told, so
 * they may go as soon as their processes have ended.
 */
#ifndef EBB_BENCH_TOOL_SPOOLS_H
#define EBB_BENCH_TOOL_SPOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "place.h"

struct spools {
    int running;              /* processes that go on, once they are stopped */
    int count;                /* in which something was noted */
    uint64_t most;            /* records of the heaviest */
    char heaviest[PLACE_MAX]; /* path; "": there is none */
    int reason;               /* 0, or errno: something in the folder cannot be read */
    char unread[PLACE_MAX];   /* which */
};

/* Looks at all of a folder. */
void spools_weigh(const char *folder, struct spools *spools);

/* Removes those lighter than the heaviest that get no more records. How many; `noted` grows by
 * those of them in which something was. */
int spools_thin(const char *folder, int *noted);

/* Looks at all of it, and then stops those whose process still runs: nothing more counts in them,
 * and their processes note no more once they see it. */
void spools_stop(const char *folder, struct spools *spools);

/* Removes the folder and all in it; what still runs stops. */
void spools_remove(const char *folder);

/* Whether a file of the folder is a spool, by its name. */
bool spools_is_name(const char *name);

/* Whether nothing more will be noted in it. */
bool spools_is_over(const char *folder, const char *name);

#endif
