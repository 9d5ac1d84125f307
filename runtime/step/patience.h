// SPDX-License-Identifier: Apache-2.0
/*
 * patience.h - how many bad steps in a row a plan is forgiven before steps are recorded anew. It
 * grows where new records help little, and a plan that has proven itself starts with some.
 */
#ifndef EBB_STEP_PATIENCE_H
#define EBB_STEP_PATIENCE_H

#include "step/numbers.h"

#include <stdbool.h>

struct patience {
    uint32_t steps;     /* so many bad ones in a row */
    uint32_t fruitless; /* plans in a row adopted without a repetition, that served badly */
    uint32_t unproven;  /* plans that new records called for, since one has proven itself */
    bool known;         /* a record that the plan was to give way to was like it */
};

static inline void patience_grow(struct patience *patience) {
    if (patience->steps < LEARN_PATIENCE_MOST)
        patience->steps *= 2;
}

/* New records repeat nothing, or no plan can be made of them; if a plan is there, it stays bad. */
static inline void patience_note_fruitless(struct patience *patience, bool planned) {
    patience->fruitless++;
    if (!planned)
        return;
    patience->unproven++;
    if (patience->fruitless > LEARN_TRIES || patience->unproven > LEARN_TRIES)
        patience_grow(patience);
}

/* Another structure than the plan's repeats. Where too many before it have not proven themselves,
 * several take turns that are too short for a plan of each, which helps as little as if nothing
 * repeated. */
static inline void patience_note_other(struct patience *patience) {
    if (++patience->unproven <= LEARN_TRIES)
        return;
    patience->fruitless++;
    patience_grow(patience);
}

/* The plan has proven itself. */
static inline void patience_settle(struct patience *patience) {
    patience->unproven = 0;
    if (!patience->known || patience->steps < LEARN_PATIENCE_PROVEN)
        patience->steps = LEARN_PATIENCE_PROVEN;
}

#endif
