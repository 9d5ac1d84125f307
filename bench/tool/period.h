// SPDX-License-Identifier: Apache-2.0
/*
 * period.h - finds where the steps of a program begin that does not say so.
 *
 * A program that does the same thing again and again allocates the same block again and again: the
 * same size, from the same place, on the same thread; or, where sizes vary with the input, from the
 * same place. Such a block is an anchor. A good anchor is one between whose occurrences nearly
 * everything dies that was born there.
 */
#ifndef EBB_BENCH_TOOL_PERIOD_H
#define EBB_BENCH_TOOL_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "figures.h"
#include "places.h"
#include "trace.h"

struct anchor {
    uint32_t thread;
    uint64_t bytes;  /* of the block */
    bool any_size;   /* they vary */
    uint16_t place;
    uint8_t op;      /* enum trace_op */
    uint32_t *at;    /* lines, in order: each begins a step */
    uint32_t count;
    double events;   /* between two: the median; markers are none */
    double spread;   /* half of what lies between the first and last tenth, over the median */
    struct fate fate;      /* of what is born in these steps, as figures.h has it; */
    struct amount outside; /* of what is born from the first to the last in none of them */
};

/*
 * The best anchor, to be freed with period_free(). `count` 0: there is none that repeats at least
 * PERIOD_LEAST times. False after a message: no memory.
 */
enum { PERIOD_LEAST = 5 };

bool period_find(struct anchor *best, const struct ebb_trace *trace, const struct places *places);

void period_free(struct anchor *anchor);

#endif
