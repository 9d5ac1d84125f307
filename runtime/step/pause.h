// SPDX-License-Identifier: Apache-2.0
/*
 * pause.h - what there was no room for waits before it is tried again: longer each time, unless it
 * went well for as long as the last wait.
 */
#ifndef EBB_STEP_PAUSE_H
#define EBB_STEP_PAUSE_H

#include "step/numbers.h"

#include <stdbool.h>
#include <stdint.h>

struct pause {
    uint32_t left, next; /* good steps; 0: nothing waits; next time */
    uint32_t held;       /* good steps since it was tried */
};

static inline void pause_begin(struct pause *pause) {
    pause->left = pause->next;
    pause->held = 0;
    pause->next = pause->next < LEARN_AGAIN_MOST ? pause->next * 2 : pause->next;
}

/* After a good step: what was tried after the last pause goes well. */
static inline void pause_hold(struct pause *pause) {
    if (!pause->left && ++pause->held >= pause->next / 2)
        pause->next = LEARN_WAIT;
}

/* After a good step; true: it was the last one. */
static inline bool pause_ends(struct pause *pause) {
    return pause->left && --pause->left == 0;
}

#endif
