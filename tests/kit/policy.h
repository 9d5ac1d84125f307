// SPDX-License-Identifier: Apache-2.0
/* policy.h - the policy of step/learn.h, driven with steps that never were. */
#ifndef EBB_TESTS_KIT_POLICY_H
#define EBB_TESTS_KIT_POLICY_H

#include "kit/test.h"

#include "step/learn.h"

#define PEAK (10 * MIB)

/* A step that did all it was told to. */
static inline struct learn_step step_of(enum learn_mode mode) {
    return (struct learn_step){.mode = mode, .hit_bytes = mode == LEARN_SERVE ? 1000 : 0,
                               .used_peak = PEAK, .live_peak = PEAK, .reserved_peak = PEAK,
                               .hash = 7,
                               .complete = true, .small = true};
}

static inline struct learn_step served(uint64_t hits, uint64_t missed) {
    struct learn_step step = step_of(LEARN_SERVE);
    step.hit_bytes = hits;
    step.missed_bytes = missed;
    step.complete = missed == 0;
    return step;
}

/* The course goes on as it says, with this step; a plan that is wanted is made. */
static inline enum learn_verdict pass(struct learning *learning, struct learn_step step) {
    assert_int_equal(learn_next(learning), step.mode);
    enum learn_verdict verdict = learn_judge(learning, &step, false);
    if (verdict == LEARN_ADOPT || verdict == LEARN_GROW)
        learn_adopted(learning, step.mode == LEARN_RECORD ? step.hash : learning->plan_hash,
                      step.mode == LEARN_RECORD ? learning->coarse : learning->plan_coarse);
    return verdict;
}

static inline enum learn_verdict record(struct learning *learning, uint64_t hash) {
    struct learn_step step = step_of(LEARN_RECORD);
    step.hash = hash;
    return pass(learning, step);
}

static inline void pass_plainly(struct learning *learning, unsigned steps) {
    for (unsigned i = 0; i < steps; i++)
        assert_int_equal(pass(learning, step_of(LEARN_PLAIN)), LEARN_KEEP);
}

/* A course with a plan of a structure that was seen twice. */
static inline struct learning planned_course(void) {
    struct learning learning;
    learn_start(&learning);
    assert_int_equal(record(&learning, 7), LEARN_NOTE);
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
    return learning;
}

#endif
