// SPDX-License-Identifier: Apache-2.0
/*
 * learn.h - when steps are recorded, planned, or left alone: the policy, without any memory.
 *
 *              two alike, or three      serves badly, twice
 *     recording ---------------> serving -----------------> recording two more
 *         ^                        | fits structure, too small: a larger plan
 *         |                        | hardly any hits, or pages for nothing
 *         | now and then           v
 *         +------------------- suspended
 *
 * A course is what one site does under one tag. Its steps may overlap in time: a step is told at
 * its begin what it is, and is judged by what has been learnt until it ends.
 */
#ifndef EBB_STEP_LEARN_H
#define EBB_STEP_LEARN_H

#include "step/enlarging.h"
#include "step/learn_step.h"
#include "step/patience.h"
#include "step/pause.h"
#include "step/peaks.h"

enum learn_verdict {
    LEARN_KEEP,  /* all stays */
    LEARN_NOTE,  /* the record is kept, to be compared with the next */
    LEARN_ADOPT, /* a plan is made from the record */
    LEARN_LONGER, /* the same, if it has more blocks; else the present one may be enlarged */
    LEARN_GROW,  /* a larger plan is made from the present one and the sizes that did not fit */
    LEARN_FIT,   /* a plan is made from the present one's structure and the sizes of this step */
    LEARN_SHORTEN, /* a plan is made of the present one's loops, shorter, as recent steps are */
    LEARN_FEWER, /* the same plan is made with fewer guests */
    LEARN_MORE,  /* or with more again */
    LEARN_REFINE, /* a plan is made from what was kept of the record: its small blocks repeat, too;
                     the one that it takes the place of is kept */
    LEARN_COARSEN /* they do not: that one takes its place again */
};

struct learning {
    /* what is recorded */
    uint32_t to_record; /* so many steps are still to be recorded */
    uint32_t records;   /* so far, at most 2 are counted */
    bool pardoning;     /* what is recorded is to drop doubt, and for nothing else */
    bool looking;       /* or for a longer loop alone */
    bool noted;         /* there is a record to be compared with, which has these */
    uint64_t hash, coarse_hash, keys;
    uint64_t record_blocks; /* how many came in the step that was recorded last */
    bool repeats; /* the last record was like the one before */
    bool kin;     /* or it had most keys of that one, so its loops: they are longer, or shorter */
    bool coarse;  /* but for its small blocks: those are left to their lane */
    bool finer;   /* a record is kept with its small blocks: the next may be like it */
    /* the plan */
    bool planned; /* there is one, of a structure with this hash */
    uint64_t plan_hash;
    bool plan_coarse; /* it is of a coarse record */
    bool inherited;   /* it is that of another course */
    bool tried;       /* it is of a record that nothing was like */
    bool proven;      /* it has served LEARN_WAIT steps in a row well */
    bool doubtful;    /* only what survived twice is born in the parent */
    bool pardoned;    /* doubt was dropped once; the next is for good */
    bool refining;    /* it took the place of a coarse one, and has yet to prove itself */
    uint64_t refined; /* hash of that one, or of the last one that had to come back; 0: none */
    uint32_t shortened; /* times that one of loops was too long, until one has proven itself */
    uint64_t guests_most; /* bytes of its guests */
    struct pause fewer;   /* until there may be more of them */
    struct enlarging enlarging;
    struct patience patience;
    /* the course */
    bool foretold;  /* steps are known before they begin: one record will do; set after the start */
    bool suspended;
    uint32_t wait, wait_next; /* steps until a suspended course is recorded; next time */
    uint32_t hopeless_tries;  /* until a plan serves well; the second counts when it begins */
    /* recent steps */
    uint32_t good, bad, hopeless, bloated, wrong, crowded, unserved; /* so many in a row */
    uint32_t mean_ppm, long_ppm; /* moving means of the share of bytes that were served */
    uint64_t plain_ppm, served_ppm; /* pages over live bytes, moving means without and with plan */
    struct peaks peaks;
};

void learn_start(struct learning *learning);

/* The course starts with another one's plan, of a structure with this hash, coarse or not. */
void learn_inherit(struct learning *learning, uint64_t hash, bool coarse);

/* The course is of steps that are foretold, and starts with the plan of the course that served them
 * so far, and with what that has learnt. */
void learn_share(struct learning *learning, const struct learning *from);

/* What a step that begins now is to be. */
enum learn_mode learn_next(const struct learning *learning);

/* Judges a step that has ended: what is to be done. If `busy`, a plan is being made already, and
 * nothing is to be done. */
enum learn_verdict learn_judge(struct learning *learning, const struct learn_step *step, bool busy);

/* After a step: true if it was not served well. */
bool learn_does_badly(const struct learning *learning);

/* After a step: true if it was another one than the plan's, which serves steps that repeat. */
bool learn_was_odd(const struct learning *learning);

/* The step after it is as the plan says: that one was alone. */
void learn_goes_on(struct learning *learning);

/* A plan was made, of a structure with this hash, coarse or not. */
void learn_adopted(struct learning *learning, uint64_t hash, bool coarse);

/* A larger plan was made. */
void learn_grew(struct learning *learning);

/* The plan has no guests, since the step that it was made after had no parent to have them. */
void learn_left_out(struct learning *learning);

/* No plan could be made, or a larger one would be too high. */
void learn_failed(struct learning *learning, enum learn_verdict verdict);

#endif
