// SPDX-License-Identifier: Apache-2.0
/* mark.h - writes a trace again, with the steps that an anchor begins. */
#ifndef EBB_BENCH_TOOL_MARK_H
#define EBB_BENCH_TOOL_MARK_H

#include <stdbool.h>

#include "period.h"

struct mark {
    const struct ebb_trace *trace;
    const struct places *places;
    const struct anchor *anchor;
    const char *from, *to; /* paths */
};

/*
 * Writes what lies between the first and the last anchor, each step from one to the next a region
 * `advised` on the anchor's thread; older blocks that end there become `p` lines, other regions are
 * left out. The list of sites, where there is one, is written again, too. False after a message;
 * then what was there before is as it was.
 */
bool mark_write(const struct mark *mark);

#endif
