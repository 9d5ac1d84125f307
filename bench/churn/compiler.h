// SPDX-License-Identifier: Apache-2.0
/* compiler.h - makes a script (script.h) of a trace. */
#ifndef EBB_BENCH_COMPILER_H
#define EBB_BENCH_COMPILER_H

#include "../trace/trace.h"
#include "script.h"

enum { COMPILER_ERROR_MAX = 256, COMPILER_REFUSED = -1, COMPILER_NO_ROOM = -2 };

/* A script in memory that child processes can inherit. */
struct compiled {
    int fd; /* memfd, not closed by exec */
    const struct script *script;
};

/*
 * Compiles `trace`. 0, or with a sentence in `error` (COMPILER_ERROR_MAX bytes) COMPILER_REFUSED:
 * no region, too many regions open at once, a block too large; or COMPILER_NO_ROOM: out of memory.
 * Linear in the events.
 */
int compiler_run(const struct ebb_trace *trace, struct compiled *compiled, char *error);

/* Ends what compiler_run() made. */
void compiled_free(struct compiled *compiled);

#endif
