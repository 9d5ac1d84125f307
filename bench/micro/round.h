// SPDX-License-Identifier: Apache-2.0
/*
 * round.h - one round of one case: a few named figures.
 *
 * The child measures a round whenever the parent asks for one and answers with its figures; the
 * parent takes the medians over all rounds. A round lasts at least ROUND_NS of processor time
 * where the case repeats something short, so that the clock's own cost does not matter.
 */
#ifndef MICRO_ROUND_H
#define MICRO_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROUND_FIGURES_MAX 192
#define ROUND_NAME_MAX 40

struct figure {
    char name[ROUND_NAME_MAX];
    double value;
};

struct round {
    bool quick;       /* leaves out what takes long: the largest counts and sizes */
    uint64_t span_ns; /* repeat short things for this much processor time */
    size_t count;
    struct figure figures[ROUND_FIGURES_MAX];
};

/* Adds a figure; `name` is the metric's, as it stands in the row. */
void round_add(struct round *round, const char *name, double value);

/* The same for a series of sizes or counts: the name becomes "PREFIX.tagNUMBER". */
void round_add_at(struct round *round, const char *prefix, char tag, uint64_t number,
                  double value);

#ifdef __cplusplus
}
#endif

#endif
