// SPDX-License-Identifier: Apache-2.0
/*
 * work.h - what one thread makes for a course when the policy says so (learn.h): from a verdict on
 * its step to a plan, or to a draft that is to be noted.
 *
 *     the step's record, noted draft, present plan  ->  drafts  ->  plan
 *
 * Invariants: no lock is held, and `planning` of the course is set, so that nobody else touches its
 * plan and drafts. Of these only what is kept for a comparison is changed; what is made stays in
 * the work until it is put in the course's. What cannot be made is NULL. A plan's draft is not
 * kept, but made from it again where it is needed, which is seldom.
 */
#ifndef EBB_STEP_WORK_H
#define EBB_STEP_WORK_H

#include "step/site.h"

struct work {
    struct lane *lane; /* of the step */
    struct course *course;
    enum learn_verdict verdict;
    ebb_pool *desk; /* that the step has left pages in, or NULL */
    struct coarse_record coarse;
    uint64_t hash, coarse_hash; /* of the record */
    bool goes_on;   /* another step is to be recorded */
    bool is_coarse; /* the plan is made from the coarse one */
    bool is_finer;  /* and the record is kept, with its small blocks */
    bool repeats;   /* the record is like the one before */
    bool alone;     /* of late no other steps are open at once: what is in use is not theirs */
    bool ahead;     /* what grows gets more room than it asked for */
    bool outlived;  /* what was too large for a survivor has survived */
    uint64_t height_most, merged_most; /* of an enlarged plan; of one for steps that differ */
    uint64_t alive_most;   /* bytes alive in that one */
    uint64_t guess_enough; /* height of one that is a guess */
    uint64_t shorter_most; /* bytes alive in a shortened one */
    uint64_t guests_most;  /* bytes */
    /* while it is made */
    struct draft *present; /* of the course's plan; NULL: it has none */
    uint64_t worked; /* for all plans that were tried: they have one bound */
    bool narrow;     /* the pool's limit leaves less than the height that there might be */
    bool for_one;    /* what other steps asked for does not count */
    /* what was made */
    struct plan *plan;   /* NULL: none */
    struct draft *draft; /* of it, or to be noted; NULL: none */
    struct draft *finer; /* of the same record, if the plan is coarse; NULL: none */
    bool unseated; /* the plan has no guests, and might have some */
};

void work_make(struct work *work);

/* Drops what is left in it, but for the coarse record. */
void work_drop(struct work *work);

#endif
