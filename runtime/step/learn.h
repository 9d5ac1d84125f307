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

#include <stdbool.h>
#include <stdint.h>

#define LEARN_MILLION 1000000u

/* So many steps are recorded at first, unless two are alike before. The first of a program makes
 * what the others find, and the second has some odd small blocks left; where there are no small
 * ones, it will do. */
#define LEARN_FIRST 3u

/* Below this share of bytes served, in so many steps in a row, a plan does not fit: another
 * structure may repeat by now. One step alone is an odd batch. */
#define LEARN_GOOD_PPM 900000u
#define LEARN_IN_A_ROW 2u

/* Each time that new records bring no repetition, or one that does not last, patience doubles, up
 * to this many steps: who never repeats, or never for long, is not recorded every other step. */
#define LEARN_PATIENCE_MOST 64u

/* A plan that LEARN_WAIT steps in a row were served well by has proven itself: some odd steps, as
 * where one epoch ends and the next begins, do not end it. Where they did, and a record was like
 * the plan after all, there may be as many in each epoch: it keeps the patience that it has. */
#define LEARN_PATIENCE_PROVEN 4u

/* The moving mean keeps so much of what it was; below the second a plan is not worth its arena:
 * best fit alone is as tight. */
#define LEARN_KEEP_PPM 700000u
#define LEARN_SUSPEND_PPM 500000u

/* But warming up looks like that, too: so many times new records are tried first. It does not last,
 * though: below the same share a mean that keeps so much ends the plan whatever was tried. It takes
 * 23 steps that are served nothing, and more of others; good ones in between, as come by chance
 * where kinds of steps are drawn, do not begin it anew. */
#define LEARN_TRIES 2u
#define LEARN_KEEP_LONG_PPM 970000u

/* Below this share a plan is one of something else. Where LEARN_IN_A_ROW such steps follow one that
 * was only tried, nothing repeats, or a program is warming up: it is suspended, but for a short
 * while at first. */
#define LEARN_HOPELESS_PPM 250000u
#define LEARN_PAUSE 4u

/* What a plan and who follows it hold for each block. Where that is more than nobody minds, and
 * than a sixteenth of what is live, a plan is not tried: records have to be alike. */
#define LEARN_SLOT_BYTES 72u
#define LEARN_TRY_PART 16u

/* Nor is one kept, however alike records are, where that is more than the second and than all that
 * is live: however few pages such a plan needed, with it a step would hold more than without. */
#define LEARN_DEAR_BYTES ((uint64_t)1 << 20)

/* A suspended course is looked at again after so many steps. Each look in vain doubles the wait,
 * and each suspension without LEARN_WAIT good steps since the last: to record a step costs as much
 * as three others. A plan that got no pages in as many steps in a row is given up: it may be higher
 * than a pool's limit allows, and others that were in the way would have gone by then. */
#define LEARN_WAIT 16u
#define LEARN_WAIT_MOST 256u

/* Pages above live bytes that a planned step may take: the larger of a quarter and an amount that
 * matters to nobody. Of a step that is alone: above the most that was live in recent ones. */
#define LEARN_SLACK_PPM 250000u
#define LEARN_SLACK_BYTES ((uint64_t)256 << 10)

/* A plan that is enlarged may be so much higher than the live bytes that recent steps had at their
 * peak: sizes of steps that never meet in one step add up to more than any step needs. */
#define LEARN_HEIGHT_PPM 1250000u

/* So many times a plan is enlarged at once. Where sizes vary for themselves, some are larger than
 * ever in each step, and a larger plan serves hardly more: from then on it waits until what larger
 * steps missed is as much as LEARN_OUTGROWN steps, about what a plan costs; as one step where that
 * is bad. Of lengths that all blocks follow a new longest one misses everything, and waits for
 * nothing. Loops that are longer than their plan wait for as much until they are recorded. */
#define LEARN_GROWTHS 4u
#define LEARN_OUTGROWN 8u

/* Where bad steps, each with more live than those before it, have enlarged a plan more often than
 * that, and LEARN_WAIT good ones in a row never came between, sizes are on the rise, as in a
 * curriculum. A plan that fits the last step serves no other then: what grew gets such a part of
 * room more than it asked for, or down to the other part where that makes the plan too high. */
#define LEARN_AHEAD_PART 8u
#define LEARN_AHEAD_PART_LEAST 32u

/* Where so many growths by bad steps follow each other and no good step came between, none helps:
 * the plan stays, and bad steps count. Fewer would tell too early: sizes that rise and begin anew,
 * as with sequences sorted by length, fit the plan at last once it has room for the longest. */
#define LEARN_FUTILE 32u

/* Steps whose numbers of blocks differ by so small a part may differ in small blocks only. */
#define LEARN_NEARLY_PART 8u

/* Steps that "recent" means for peaks. */
#define LEARN_RECENT 16u

/* What there was no room for is tried again after LEARN_WAIT good steps, as what was in the way may
 * have gone; then after twice as many each time, up to these. It begins anew where it went well for
 * as long as the last wait: what was in the way comes and goes. */
#define LEARN_AGAIN_MOST ((uint32_t)1 << 30)

enum learn_mode {
    LEARN_PLAIN,  /* an ordinary region */
    LEARN_RECORD, /* its allocations are noted */
    LEARN_SERVE   /* it follows the plan */
};

enum learn_verdict {
    LEARN_KEEP,  /* all stays */
    LEARN_NOTE,  /* the record is kept, to be compared with the next */
    LEARN_ADOPT, /* a plan is made from the record */
    LEARN_GROW,  /* a larger plan is made from the present one and the sizes that did not fit */
    LEARN_FIT,   /* a plan is made from the present one's structure and the sizes of this step */
    LEARN_FEWER, /* the same plan is made with fewer guests */
    LEARN_MORE,  /* or with more again */
    LEARN_REFINE, /* a plan is made from what was kept of the record: its small blocks repeat, too;
                     the one that it takes the place of is kept */
    LEARN_COARSEN /* they do not: that one takes its place again */
};

/* A step that has ended, as far as it matters. */
struct learn_step {
    enum learn_mode mode; /* as it was carried out */
    uint64_t hit_bytes, missed_bytes, escaped_bytes;
    uint64_t tenured_bytes, wrong_bytes; /* born in the parent; of these: for nothing */
    uint64_t refused_bytes; /* not born there, as too large, and survived all the same */
    uint64_t guest_bytes, turned_away_bytes; /* lay in the parent for a while, or should have */
    bool newcomer; /* of the parent no more was known than what it had at the beginning */
    uint64_t used_peak, reserved_peak;
    uint64_t live_peak; /* of used: what was asked for */
    bool alone;         /* of late no two steps of the site were open, or readable, at once; nor did
                           other sites' in the same pool meet them */
    uint64_t hash; /* of its structure, if it was recorded */
    uint64_t coarse_hash; /* the same without small blocks; 0: too little is left */
    uint64_t blocks; /* that came */
    uint64_t slots;  /* of its plan; of a record: blocks in it, which a plan would have slots for */
    uint64_t coarse_blocks; /* of a record: of these without small ones */
    bool small;    /* blocks of the small lane were among those that were recorded */
    bool lost;     /* it was recorded, but not to its end, or with no block: as LEARN_PLAIN */
    bool grown;    /* slots were too small */
    bool keyed;    /* its plan is one of blocks with keys: loops may be longer, or shorter */
    bool complete; /* it did what the plan expects, but for sizes */
    bool taken_over;
    bool unserved; /* it was to be served, and there were no pages for that: as LEARN_PLAIN */
};

/* Before something is tried again. */
struct learn_pause {
    uint32_t left, next; /* good steps; 0: nothing waits; next time */
    uint32_t held;       /* good steps since it was tried */
};

struct learning {
    uint32_t to_record; /* so many steps are still to be recorded */
    uint32_t records;   /* so far, at most 2 are counted */
    uint64_t hash, coarse_hash; /* of the record before */
    uint64_t plan_hash;         /* of the plan's */
    bool noted, planned; /* there is such a hash */
    bool repeats;   /* the last record was like the one before */
    bool coarse;    /* but for its small blocks: those are left to their lane */
    bool plan_coarse; /* so is the plan */
    bool known;     /* a record that the plan was to give way to was like it */
    bool finer;     /* made of a record that is kept with its small blocks: the next may be so */
    bool refining;  /* the plan took the place of a coarse one, and has yet to prove itself */
    uint64_t record_blocks; /* how many came in the step that was recorded last */
    uint64_t refined; /* hash of that one, or of the last one that had to come back; 0: none */
    bool tried;     /* the plan is of a record that nothing was like */
    bool suspended;
    bool doubtful;  /* only what survived twice is born in the parent */
    bool pardoned;  /* doubt was dropped once; the next is for good */
    bool pardoning; /* what is recorded is for that alone */
    bool inherited; /* the plan is that of another course */
    bool highest;   /* the last step had more live than those before it of late */
    uint32_t mean_ppm, long_ppm; /* moving means of the share of bytes that were served */
    uint32_t hopeless_tries; /* until a plan serves well; the second counts when it begins */
    uint32_t fruitless; /* plans in a row adopted without a repetition, that served badly */
    uint32_t unproven;  /* plans that new records called for, since one has proven itself */
    uint32_t patience;  /* so many bad steps in a row before new records */
    uint32_t bad, hopeless, bloated, wrong, crowded; /* in a row */
    uint32_t good;      /* in a row */
    uint32_t unserved;  /* in a row */
    uint32_t shortened; /* times that a plan of loops was too long, until one has proven itself */
    uint32_t growths;   /* of plans of this structure, up to LEARN_GROWTHS */
    uint32_t futile;    /* of these: by bad steps, with no good one since, nor a suspension */
    uint64_t guests_most; /* bytes of a plan's guests */
    struct learn_pause fewer; /* until there may be more */
    struct learn_pause no_growth; /* until a larger plan is tried that could not be made */
    uint32_t rises;     /* growths by bad steps, up to LEARN_GROWTHS and one: sizes are rising */
    uint64_t outgrown;  /* bytes that steps missed which were larger than the plan, since it grew */
    uint32_t wait, wait_next; /* steps until a suspended course is recorded; next time */
    uint64_t plain_ppm, served_ppm; /* pages over live bytes, moving means without and with plan */
    uint64_t peak_now, peak_before; /* highest used peak in this stretch of LEARN_RECENT steps */
    uint64_t live_now, live_before; /* the same of live peaks */
    uint32_t peak_steps;
    uint64_t suspensions;
};

void learn_start(struct learning *learning);

/* The course begins with the plan of another one, of a structure with this hash, coarse or not. */
void learn_inherit(struct learning *learning, uint64_t hash, bool coarse);

/* What a step that begins now is. */
enum learn_mode learn_next(const struct learning *learning);

/* Takes notice of a step that has ended and says what is to be done. If `busy`, a plan is being
 * made already: nothing is to be done. */
enum learn_verdict learn_judge(struct learning *learning, const struct learn_step *step, bool busy);

/* After a step: it was not served well, and others before it were not, either. */
bool learn_does_badly(const struct learning *learning);

/* The same of a plan that has been made. */
void learn_adopted(struct learning *learning, uint64_t hash, bool coarse);

/* That was a larger one. */
void learn_grew(struct learning *learning);

/* It has no guests, as the step that it was made after had no parent that may have some. */
void learn_left_out(struct learning *learning);

/* No plan could be made, or a larger one would be too high. */
void learn_failed(struct learning *learning, enum learn_verdict verdict);

/* A larger plan should have room for some larger steps. */
bool learn_looks_ahead(const struct learning *learning);

/* The greatest height that a larger plan may have. */
uint64_t learn_height_most(const struct learning *learning);

#endif
