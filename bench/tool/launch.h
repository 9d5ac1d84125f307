// SPDX-License-Identifier: Apache-2.0
/* launch.h - runs a command under the recorder and watches over its spools. */
#ifndef EBB_BENCH_TOOL_LAUNCH_H
#define EBB_BENCH_TOOL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

enum { LAUNCH_WATCHED = 256 /* spools that have ticks, at once */ };

struct launch {
    char **command;       /* ended by NULL */
    const char *folder;   /* for spools; absolute */
    const char *function; /* NULL: none. With a dot: of Python */
    bool within;          /* the calls are regions, not what lies between them */
    uint64_t limit;       /* bytes of a spool; 0: the recorder's own */
    long every_ms;        /* 0: no ticks */
    bool keep;            /* all spools, also light ones */
};

struct launched {
    int code;    /* exit code; 128 + N for signal N */
    int removed; /* spools of processes that have ended, with less than another but not nothing */
};

/* A file that may not grow is an error with a name from now on, and no end of the tool. The command
 * has the signal as it was. */
void launch_spare_files(void);

/*
 * Runs it to its end. Sequence numbers of ticks are written to SPOOL.ticks. False after a message:
 * it could not be started; its code is 126 or 127, or 0 where not even a process could.
 */
bool launch_run(const struct launch *launch, struct launched *launched);

#endif
