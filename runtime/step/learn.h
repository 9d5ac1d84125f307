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

/* Steps that are recorded at first, unless two are alike before. A program's first step creates
 * what later ones find, and its second still has some odd small blocks; without small ones the
 * second will do. */
#define LEARN_FIRST 3u

/* A plan that serves less than this share of bytes, in so many steps in a row, does not fit:
 * another structure may repeat by now. A single such step is just an odd batch. */
#define LEARN_GOOD_PPM 900000u
#define LEARN_IN_A_ROW 2u

/* Each time that new records show no repetition, or one that does not last, patience doubles, up to
 * this many steps: so a program that never repeats for long is not recorded every other step. */
#define LEARN_PATIENCE_MOST 64u

/* A plan that has served LEARN_WAIT steps in a row well has proven itself: a few odd steps, as
 * between two epochs, do not end it. If they did, and a new record was like the plan after all,
 * every epoch may have as many: then the plan keeps the patience that it has. */
#define LEARN_PATIENCE_PROVEN 4u

/* The moving mean of served shares keeps so much of what it was. Below the second number a plan is
 * not worth its arena: best fit alone is as tight. */
#define LEARN_KEEP_PPM 700000u
#define LEARN_SUSPEND_PPM 500000u

/* Warming up looks like that, too, so new records are tried first, so many times. But warming up
 * ends: a slower mean, which keeps so much of what it was, ends the plan below the same share
 * whatever was tried. That takes 23 steps that are served nothing, or more others; good steps in
 * between, as happen by chance where kinds of steps are drawn, do not start it anew. */
#define LEARN_TRIES 2u
#define LEARN_KEEP_LONG_PPM 970000u

/* Below this share the plan is of something else. If LEARN_IN_A_ROW such steps follow a plan that
 * was only tried, nothing repeats, or the program is warming up: the course is suspended, at first
 * for so many steps only. */
#define LEARN_HOPELESS_PPM 250000u
#define LEARN_PAUSE 4u

/* Bytes that a plan and a track that follows it hold for each block. If that is more than
 * LEARN_SLACK_BYTES and than a sixteenth of what is live, no plan is just tried: records have to be
 * alike first. */
#define LEARN_SLOT_BYTES 76u
#define LEARN_TRY_PART 16u

/* And if it is more than this and than all that is live, no plan is kept, however alike records
 * are: a step would hold more with it than without, however few pages the plan needed. */
#define LEARN_DEAR_BYTES ((uint64_t)1 << 20)

/* A suspended course is looked at again after so many steps. Each look in vain doubles the wait,
 * and so does each suspension that does not follow LEARN_WAIT good steps: recording a step costs as
 * much as three others. A plan that got no pages in LEARN_WAIT steps in a row is given up: it may
 * be higher than the pool's limit allows; anything else in the way would have gone by then. */
#define LEARN_WAIT 16u
#define LEARN_WAIT_MOST 256u

/* Pages that a planned step may take above its live bytes: a quarter of these, or an amount that
 * matters to nobody if that is larger. For a step that is alone: above the most that was live in
 * recent ones. */
#define LEARN_SLACK_PPM 250000u
#define LEARN_SLACK_BYTES ((uint64_t)256 << 10)

/* An enlarged plan may have this height, as a share of the live bytes of recent steps at their
 * peak: sizes that never meet in one step add up to more than any step needs. */
#define LEARN_HEIGHT_PPM 1250000u

/* A plan for steps that differ, of which no one needs all of it, may be higher by this part than
 * the live bytes of recent steps at their peak. Much more, and it takes pages for nothing soon. */
#define LEARN_MERGED_PART 8u

/* A plan of loops that takes too many pages is shortened until it is higher than that by this part:
 * as loops vary, what comes next may be somewhat longer than recent steps. */
#define LEARN_SHORTER_PART 10u

/* A plan is enlarged at once so many times. After that it waits until larger steps have missed as
 * much as LEARN_OUTGROWN steps have in all, about what a plan costs, or as one step has if that
 * step is bad: where sizes vary independently some are larger than ever in each step, and a larger
 * plan hardly serves more; where all follow one length a new longest one misses everything, so it
 * waits for nothing. A loop that was longer than its plan has the next step recorded: at once as
 * often, whatever is planned, and then, when such loops have missed as much, as often again; or
 * once, if records are lost. */
#define LEARN_GROWTHS 4u
#define LEARN_OUTGROWN 8u

/* If bad steps, each with more live than those before it, have enlarged a plan more than
 * LEARN_GROWTHS times, without LEARN_WAIT good ones in a row between, sizes are on the rise, as in
 * a curriculum. A plan that just fits the last step would serve no other: so what grew gets this
 * part more room than it asked for, or a smaller part, down to the second one, if that makes the
 * plan too high. */
#define LEARN_AHEAD_PART 8u
#define LEARN_AHEAD_PART_LEAST 32u

/* After so many growths by bad steps without a good step between, growing does not help: the plan
 * stays, and bad steps count. Fewer would be too early: sizes that rise and start anew, as with
 * sequences sorted by length, fit once the plan has room for the longest. */
#define LEARN_FUTILE 32u

/* Steps whose numbers of blocks differ by at most this part may differ in small blocks only. */
#define LEARN_NEARLY_PART 8u

/* Steps that "recent" means for peaks. */
#define LEARN_RECENT 16u

/* What there was no room for is tried again after LEARN_WAIT good steps, since what was in the way
 * may have gone; then after twice as many each time, up to these. The wait starts anew if it went
 * well for as long as the last wait: then what is in the way comes and goes. */
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

/* A step that has ended, as far as the policy needs to know. */
struct learn_step {
    enum learn_mode mode; /* as it was carried out */
    uint64_t hit_bytes, missed_bytes, escaped_bytes;
    uint64_t tenured_bytes, wrong_bytes; /* born in the parent; of these: for nothing */
    uint64_t refused_bytes; /* too large to be born there, but survived all the same */
    uint64_t guest_bytes, turned_away_bytes; /* lay in the parent for a while, or should have */
    bool newcomer; /* of the parent only what it had at the step's beginning was known */
    uint64_t used_peak, reserved_peak;
    uint64_t live_peak; /* of used: as requested */
    bool alone;         /* lately no two steps of the site were open, or readable, at once, nor did
                           they meet other sites' in the same pool */
    uint64_t hash; /* of its structure, if it was recorded */
    uint64_t coarse_hash; /* the same without small blocks; 0: too little is left */
    uint64_t keys; /* of its blocks, see draft_keys(); 0: none has one */
    uint64_t blocks; /* that came */
    uint64_t slots;  /* of its plan; of a record: blocks in it, which a plan would have slots for */
    uint64_t coarse_blocks; /* of a record: of these without small ones */
    bool small;    /* blocks of the small lane were among those that were recorded */
    bool lost;     /* it was recorded, but not to its end, or with no block: as LEARN_PLAIN */
    bool grown;    /* slots were too small */
    bool longer;   /* a block came whose key no slot behind the last one had: it is not complete */
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
    uint64_t hash, coarse_hash, keys; /* of the record before */
    uint64_t plan_hash;         /* of the plan's */
    bool noted, planned; /* there is such a hash */
    bool repeats;   /* the last record was like the one before */
    bool kin;       /* or it had most keys of that one, so its loops: they are longer, or shorter */
    bool coarse;    /* but for its small blocks: those are left to their lane */
    bool plan_coarse; /* so is the plan */
    bool known;     /* a record that the plan was to give way to was like it */
    bool finer;     /* made of a record that is kept with its small blocks: the next may be so */
    bool refining;  /* the plan took the place of a coarse one, and has yet to prove itself */
    uint64_t record_blocks; /* how many came in the step that was recorded last */
    uint64_t refined; /* hash of that one, or of the last one that had to come back; 0: none */
    bool tried;     /* the plan is of a record that nothing was like */
    bool proven;    /* it has served LEARN_WAIT steps in a row well */
    bool foretold;  /* steps are known before they begin: one record will do; set after the start */
    bool suspended;
    bool doubtful;  /* only what survived twice is born in the parent */
    bool pardoned;  /* doubt was dropped once; the next is for good */
    bool pardoning; /* what is recorded is for that alone */
    bool looking;   /* what is recorded is for a longer loop alone */
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
    uint32_t looks;     /* for longer loops, up to LEARN_GROWTHS, since there was a wait */
    uint64_t guests_most; /* bytes of a plan's guests */
    struct learn_pause fewer; /* until there may be more */
    struct learn_pause no_growth; /* until a larger plan is tried that could not be made */
    uint32_t rises;     /* growths by bad steps, up to LEARN_GROWTHS and one: sizes are rising */
    uint64_t outgrown;  /* bytes that steps missed which were larger than the plan, since it grew */
    uint32_t wait, wait_next; /* steps until a suspended course is recorded; next time */
    uint64_t plain_ppm, served_ppm; /* pages over live bytes, moving means without and with plan */
    uint64_t peak_now, peak_before; /* highest used peak in this stretch of LEARN_RECENT steps, and
                                       in the one before */
    uint64_t live_now, live_before; /* the same of live peaks */
    uint32_t peak_steps;            /* of this stretch so far */
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

/* True if a larger plan should have room to spare, for larger steps to come. */
bool learn_looks_ahead(const struct learning *learning);

/* The greatest height that a larger plan may have. */
uint64_t learn_height_most(const struct learning *learning);

/* The highest use of recent steps. */
static inline uint64_t learn_recent_peak(const struct learning *learning) {
    bool rose = learning->peak_now > learning->peak_before;
    return rose ? learning->peak_now : learning->peak_before;
}

#endif
