// SPDX-License-Identifier: Apache-2.0
/*
 * enlarging.h - when steps that are larger than their plan get a larger one, or have a longer one
 * looked for.
 *
 *     at once, a few times  ->  when enough was missed to pay for it  ->  not any more, in vain
 *
 * Of one course, and of the structure that its plan has. A step may be larger in the sizes of its
 * blocks: then its plan grows; or its loops turned more often: then the next step is recorded.
 * Whether either could be made is told afterwards.
 */
#ifndef EBB_STEP_ENLARGING_H
#define EBB_STEP_ENLARGING_H

#include "step/pause.h"

struct enlarging {
    uint32_t count;    /* of larger plans, up to LEARN_GROWTHS */
    uint32_t futile;   /* of these: for bad steps, with no good one since, nor a suspension */
    uint32_t rises;    /* for bad steps with more live than recent ones, up to LEARN_GROWTHS and
                          one: sizes are rising */
    uint32_t looks;    /* for longer loops, up to LEARN_GROWTHS, since there was a wait */
    uint32_t vain;     /* waits for a look that found nothing, since a plan was made, up to
                          LEARN_VAIN_MOST */
    uint64_t outgrown; /* bytes that steps missed which were larger than the plan, since it grew */
    struct pause pause; /* until a larger plan is tried that could not be made */
};

/* The plan is of another structure, or the first. Looks still count: they lead to such plans. */
void enlarging_start(struct enlarging *enlarging);

/* A step was larger than the plan in sizes, and missed so much of all its bytes. True: a larger
 * plan is to be made now. `rose`: it had more live than recent ones. */
bool enlarging_is_due(struct enlarging *enlarging, uint64_t missed, uint64_t all, bool bad,
                      bool rose);

/* The same of a step whose loops were longer. True: the next one is to be recorded. */
bool enlarging_wants_look(struct enlarging *enlarging, uint64_t missed, uint64_t all);

/* A look was broken off, as may happen each time: the next one waits until what such steps missed
 * is as much as looking costs. */
void enlarging_lose_look(struct enlarging *enlarging);

/* Nothing longer was found. */
void enlarging_look_in_vain(struct enlarging *enlarging);

/* A larger plan could not be made. */
void enlarging_fail(struct enlarging *enlarging);

/* After LEARN_WAIT good steps in a row: sizes do not rise, unless it is known that they do. */
void enlarging_settle(struct enlarging *enlarging);

/* A larger plan should have room to spare, for larger steps to come. */
static inline bool enlarging_looks_ahead(const struct enlarging *enlarging) {
    return enlarging->rises > LEARN_GROWTHS;
}

/* After each step that was served. */
static inline void enlarging_note(struct enlarging *enlarging, bool bad) {
    enlarging->futile = bad ? enlarging->futile : 0;
    if (!bad)
        (void)pause_ends(&enlarging->pause);
}

#endif
