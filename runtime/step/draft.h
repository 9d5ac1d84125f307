// SPDX-License-Identifier: Apache-2.0
/*
 * draft.h - what a step did, without places: from its record to a plan.
 *
 *     record (region/track.h)         draft                          plan (region/plan.h)
 *     bytes, all releases      ->     rooms, releases of what   ->   offsets
 *                                     is placed
 *
 * Placed is what fits a slot and did not survive. A survivor is born in the parent if nothing
 * speaks against it, else it is left to best fit, from where it can be relinked. Of what is placed
 * some may become guests of the parent (guests.h). A draft is in memory of its own and is changed
 * by one thread at a time.
 */
#ifndef EBB_STEP_DRAFT_H
#define EBB_STEP_DRAFT_H

#include "plan/packing.h"
#include "region/track.h"

struct draft_slot {
    uint32_t room;   /* granules; 0: not placed */
    uint32_t needed; /* the same, also of what is not placed */
    uint32_t passed; /* releases of placed slots and guests before it */
    uint32_t rank;   /* of its own among these, or PLAN_NEVER */
    uint32_t key;
    uint32_t above;     /* granules that large blocks of the parent had when it came */
    uint16_t align;     /* of placed slots, at most PLAN_ALIGN_MOST */
    uint8_t align_log2; /* as it was asked for */
    bool survived, tenured, guest;
    bool bound; /* no guest: in the parent it might have to move where the plan has no place, or it
                   is asked for by what takes no block there */
    uint8_t age; /* drafts that were merged since a record had it */
};

/* The block is one of the large lane, where it has no place of the plan's, too. */
static inline bool draft_slot_is_large(const struct draft_slot *slot) {
    return (size_t)slot->needed * RANGE_GRANULE > EBB_SMALL_MAX_BYTES ||
           (size_t)1 << slot->align_log2 > EBB_SMALL_MAX_ALIGN;
}

struct draft {
    ebb_region memory;
    uint32_t count;    /* of slots */
    uint32_t placed;   /* of these */
    uint32_t tenured;  /* of the others */
    uint32_t guests;   /* of the others */
    uint32_t released; /* of placed slots and guests: before the step ended */
    uint64_t hash;     /* of the structure, see draft_hash() */
    bool keyed;        /* a slot has a key */
    bool confirmed;    /* two steps were alike */
    bool coarse;       /* of a coarse record */
    bool several;      /* of steps that differ: each leaves some slots out */
    bool wider;        /* it has room for other steps than the one that was recorded */
    ebb_pool *desk; /* where packing has its tables meanwhile, if it can spare the pages; else, and
                       if it is NULL, in plan_pool() */
    struct draft_slot slots[];
};

/* Which survivors are born in the parent. */
enum draft_tenure {
    DRAFT_TENURE_NONE,
    DRAFT_TENURE_ONCE, /* all, but those that did not survive in the record before */
    DRAFT_TENURE_TWICE /* only those that survived in the record before, too */
};

/* Of a record's structure: which blocks came, and between which of them each one went. In what
 * order several went between the same two is nothing that a plan depends on. */
uint64_t draft_hash(const struct record_entry *record, uint32_t count);

/* Which keys the blocks of a record have: a bit for each, which others may share. */
uint64_t draft_keys(const struct record_entry *record, uint32_t count);

/* The record without blocks of the small lane, as if they had never been there. */
struct coarse_record {
    ebb_region memory;
    struct record_entry *record;
    uint32_t count;
};

/* False: nothing is left of it, or less than half of its bytes, or there is no memory. */
bool coarse_make(struct coarse_record *coarse, const struct record_entry *record, uint32_t count);

/* Also of one that is all zero. */
void coarse_drop(struct coarse_record *coarse);

/* A draft with room for so many slots, all else in it zero. NULL: EBB_E_MEMORY. */
struct draft *draft_create(uint32_t count);

/*
 * A draft of a record with draft_hash() `hash`; the draft of a record before it, or NULL, counts
 * only if its structure is the same. NULL: EBB_E_MEMORY, or EBB_E_SIZE: no step of this kind can
 * be planned (nothing to place, or more slots than a plan may have).
 */
struct draft *draft_from_record(const struct record_entry *record, uint32_t count, uint64_t hash,
                                const struct draft *before, enum draft_tenure tenure);

/* The draft that a plan was made from: all but offsets can be read from it. NULL: EBB_E_MEMORY. */
struct draft *draft_of_plan(const struct plan *plan);

/* Each slot gets the larger of its size and the other's, if both have the same structure. True if
 * one has become larger. NULL: nothing. */
bool draft_widen(struct draft *draft, const struct draft *other);

/* A plan of `longer`, or NULL, would have a slot for each block of the draft and for others: both
 * have keys, those of the draft in this order among them. */
bool draft_leads(const struct draft *longer, const struct draft *draft);

/* Those slots get room for these blocks. True if one had less. */
bool draft_widen_along(struct draft *longer, const struct draft *draft);

/* Slot `number`, if it is placed, gets room for `bytes` at least; if it is tenured, it is one of so
 * many. True if it had less. */
bool draft_fit(struct draft *draft, uint32_t number, size_t bytes);

/* The same; if it had less, it gets an `ahead`-th of that more. */
bool draft_fit_ahead(struct draft *draft, uint32_t number, size_t bytes, size_t ahead);

/*
 * A plan with one user, in memory of its own. NULL: EBB_E_MEMORY, or EBB_E_SIZE: it would be
 * higher than `height_most`, or than offsets of slots can say.
 */
struct plan *draft_plan(const struct draft *draft, const struct packing_effort *effort,
                        uint64_t height_most);

/* The same with `bytes`, more or less than it had. */
void draft_refit(struct draft *draft, uint32_t number, size_t bytes);

/* NULL: nothing. */
void draft_drop(struct draft *draft);

#endif
