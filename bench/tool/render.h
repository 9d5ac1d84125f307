// SPDX-License-Identifier: Apache-2.0
/* render.h - writes a recording as an `ebb-trace 1` file. */
#ifndef EBB_BENCH_TOOL_RENDER_H
#define EBB_BENCH_TOOL_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "stream.h"

/* What the trace says about itself. */
struct render {
    const char *path;  /* of the trace; gzip, whatever its name */
    const char *about; /* the command */
    bool tensor;       /* only what libc10 asks for, aligned */
    bool sites;        /* a second file (site_list.h) */
    bool recovered;
    long every_ms;     /* 0: no ticks */
};

/* What was written. */
struct rendered {
    uint64_t events, objects, regions, untouched, untouched_bytes;
    uint64_t blocks, unknown_frees, lost_frees; /* of the whole recording (stream.h) */
    bool cut;       /* there was more than a trace takes */
    uint64_t calls; /* of the function that --function names, or ebb_record_call() */
    char sites_path[4200]; /* "" where there is none */
};

/* False after a message; then what was there before is as it was. */
bool render_trace(const struct stream *stream, const struct spool_file *spool,
                  const struct render *render, struct rendered *rendered);

#endif
