// SPDX-License-Identifier: Apache-2.0
/*
 * instance.h - buffers to plan, and where they come from.
 *
 *     list.c       a file of `id,lower,upper,size` lines
 *     recorded.c   the steady steps of a trace, an instance each
 *     synthetic.c  a training step of any length, made up
 *     random.c     steps without a pattern, made up
 */
#ifndef EBB_BENCH_PLAN_INSTANCE_H
#define EBB_BENCH_PLAN_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/packing.h"
#include "trace.h"

struct instance {
    struct packing_buffer *buffers;
    uint32_t count;
};

/* What one argument of the command line holds. */
struct instances {
    struct instance *instance;
    size_t count;
};

enum instance_error_code {
    INSTANCE_OK,
    INSTANCE_ERROR_FILE,        /* cannot be opened or read, or its lines are no text */
    INSTANCE_ERROR_TRACE,       /* a trace, but malformed */
    INSTANCE_ERROR_FIELDS,      /* not four fields, or an empty one */
    INSTANCE_ERROR_NUMBER,      /* no decimal number */
    INSTANCE_ERROR_TOO_LARGE,   /* a section above 2^32 - 1, a size above 2^63 - 1 */
    INSTANCE_ERROR_LIFE,        /* ends before it begins */
    INSTANCE_ERROR_TOO_MANY,    /* buffers, for the planner */
    INSTANCE_ERROR_EMPTY,       /* no buffers at all */
    INSTANCE_ERROR_CODES,
};

struct instance_error {
    enum instance_error_code code;
    uint64_t line; /* counted from 1; 0: of no line */
    char text[320]; /* "line 7: lives from 5 to 5" */
};

/*
 * Reads a list or a trace, plain or gzip; a trace is known by its first line. False with the
 * reason, and nothing to free. Runs out of memory as buffer_resize() does.
 */
bool instances_read(struct instances *instances, const char *path, struct instance_error *error);

void instances_free(struct instances *instances);

/* "INSTANCE_ERROR_LIFE". Static. */
const char *instance_error_name(enum instance_error_code code);

/* Takes ownership of the trace's steps, not of the trace. */
void recorded_collect(struct instances *instances, const struct ebb_trace *trace);

/* About as many buffers as asked for, and at least one layer's. */
void synthetic_make(struct instances *instances, uint32_t count);

/* Four steps of `count` buffers, of which `alive`, at least one, are alive at once. */
void random_make(struct instances *instances, uint32_t count, uint32_t alive);

#endif
