// SPDX-License-Identifier: Apache-2.0
/* places.h - who asked for each object of a trace: places of the program, or origins. */
#ifndef EBB_BENCH_TOOL_PLACES_H
#define EBB_BENCH_TOOL_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace.h"

enum { PLACES_MAX = 1 << 15, PLACE_NAME_MAX = 1024 };

struct places {
    uint16_t *of;       /* by object: number of its place */
    char (*name)[PLACE_NAME_MAX]; /* by number; "" where there is none */
    bool sites;         /* false: numbers are origin letters */
};

/*
 * Reads the list of sites that lies beside the trace (site_list.h) or, where there is none, takes
 * the origins. 0; or an exit code (command.h), after a message: a list that is not whole or does
 * not fit the trace is bad input, and where there is no memory it has failed.
 */
int places_read(struct places *places, const struct ebb_trace *trace, const char *path);

void places_free(struct places *places);

#endif
