// SPDX-License-Identifier: Apache-2.0
/*
 * learn_step.h - what the policy is told of a step that has ended, and what that says of it by
 * itself, whatever came before.
 */
#ifndef EBB_STEP_LEARN_STEP_H
#define EBB_STEP_LEARN_STEP_H

#include "base/size.h"
#include "step/numbers.h"

enum learn_mode {
    LEARN_PLAIN,  /* an ordinary region */
    LEARN_RECORD, /* its allocations are noted */
    LEARN_SERVE   /* it follows the plan */
};

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

/* That the plan could have served. */
static inline uint64_t learn_step_bytes(const struct learn_step *step) {
    return step->hit_bytes + step->missed_bytes;
}

/* Share of these that were well served, if so many were missed; survivors that were copied were
 * not. */
static inline uint32_t learn_step_share_ppm(const struct learn_step *step, uint64_t missed_bytes) {
    uint64_t all = step->hit_bytes + missed_bytes;
    uint64_t well = step->hit_bytes - size_smaller(step->escaped_bytes, step->hit_bytes);
    return well < all ? (uint32_t)((double)well / (double)all * LEARN_MILLION) : LEARN_MILLION;
}

/* Survivors are far larger than those that the plan was learnt from. */
static inline bool learn_step_has_other_survivors(const struct learn_step *step) {
    return step->refused_bytes > step->tenured_bytes / 4;
}

/* Guests that were turned away, which are missed as well, are another matter: there will be
 * fewer. */
static inline bool learn_step_is_bad(const struct learn_step *step) {
    uint64_t missed = step->missed_bytes - step->turned_away_bytes;
    return learn_step_share_ppm(step, missed) < LEARN_GOOD_PPM || step->taken_over ||
           learn_step_has_other_survivors(step);
}

/* A plan of so many blocks of the step's would hold more than the step itself, and what it has in
 * the parent, which was its own when it was recorded. */
static inline bool learn_step_outweighs(const struct learn_step *step, uint64_t blocks) {
    uint64_t held = blocks * LEARN_SLOT_BYTES;
    return held > LEARN_DEAR_BYTES &&
           held > step->live_peak + step->tenured_bytes + step->guest_bytes;
}

/* A plan of all of its blocks would hold more than may be tried. */
static inline bool learn_step_is_dear(const struct learn_step *step) {
    uint64_t held = step->slots * LEARN_SLOT_BYTES;
    return held > LEARN_SLACK_BYTES && held > step->live_peak / LEARN_TRY_PART;
}

#endif
