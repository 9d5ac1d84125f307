// SPDX-License-Identifier: Apache-2.0
/*
 * figures.h - what the steps of a trace allocate, what dies with them, what survives, and who
 * asked for it.
 *
 * A step is an outermost region. What is born in it belongs to it, nested regions included. What
 * is born outside of steps belongs to none.
 */
#ifndef EBB_BENCH_TOOL_FIGURES_H
#define EBB_BENCH_TOOL_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "places.h"
#include "trace.h"

struct amount {
    uint64_t blocks, bytes;
};

/* Where what was born ended. */
struct fate {
    struct amount born;  /* in steps */
    struct amount died;  /* before its step ended */
    struct amount next;  /* in the next of its kind and thread, or before that one */
    struct amount later; /* in a later one */
    struct amount never; /* not in this trace */
};

struct step_figures {
    uint8_t kind;
    bool warmup; /* one that a replay does not measure */
    struct amount born, survived;
    uint64_t peak; /* most bytes of its own at once */
};

struct figures {
    struct step_figures *step;
    size_t step_count;
    struct fate all, *kind; /* by kind */
    struct fate *place;     /* by place */
    struct amount outside;  /* born in no step */
    int main_kind;          /* the one that a replay measures; -1: there are no steps */
};

/* False after a message: no memory. */
bool figures_make(struct figures *figures, const struct ebb_trace *trace,
                  const struct places *places);

void figures_free(struct figures *figures);

/* Numbers of the `count` places whose survivors have most bytes, the worst first; how many. */
size_t figures_worst(const struct figures *figures, uint16_t *place, size_t count);

/* How many other places have survivors than these, and the fates of all of them together. */
size_t figures_others(const struct figures *figures, const uint16_t *place, size_t count,
                      struct fate *sum);

/* What outlived its step. */
static inline struct amount fate_survived(const struct fate *fate) {
    return (struct amount){fate->born.blocks - fate->died.blocks,
                           fate->born.bytes - fate->died.bytes};
}

/* In percent; 0 of nothing. */
static inline double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

#endif
