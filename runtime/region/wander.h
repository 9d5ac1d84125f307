// SPDX-License-Identifier: Apache-2.0
/*
 * wander.h - steps of blocks with keys that have left the order of their plan: each key has its
 * slots, which take turns, and a slot is served wherever the step may be, if its place is free.
 *
 *     places   |   0   |  5  |    2    |  7 7 7  |     slots by offset; bits of those that are live
 *     by_key   | 0 5 7 | 1 3 | 2 4 6 |                 slots by key
 *     turns      ^       ^     ^                       of each key: the slot that is looked at next
 *
 * Where the place of a slot is free is looked up, not concluded: no two live slots overlap, so it
 * is enough to compare it with the live ones below and above (docs/planning.md, rule R4).
 */
#ifndef EBB_REGION_WANDER_H
#define EBB_REGION_WANDER_H

#include "plan/ranks.h"
#include "region/plan.h"

struct track;

struct wander_turn {
    uint32_t epoch; /* in which it was begun: to go on with a far older one is no harm */
    uint32_t at;
};

/* Of a track. It has memory from the first step that wanders, or goes far ahead, until another plan
 * is followed. */
struct wander {
    bool on;           /* this step wanders, to its end */
    bool made;         /* there is memory */
    uint64_t blocks, granules; /* that were served since: the cursor does not tell */
    uint32_t next;     /* behind the slot that was served last */
    uint32_t spare;    /* slots that may still be looked at */
    uint32_t *ranks;   /* of each slot: its number among the places, and one more; 0: no place */
    uint32_t *ends;    /* of each slot: its place in the order of releases; PLAN_NEVER: none */
    uint32_t *ends_from; /* the first place there of it, or of a slot behind it; behind all slots,
                            and where none is: the length of the order */
    struct wander_turn *turns; /* at the first slot of each key in by_key */
    struct rank_set live; /* of live slots */
    ebb_region memory;
};

/* There is memory from here on, with what it says of all slots; false: there is none. */
bool wander_prepare(struct track *track);

/* From here on the step wanders; false: there is no memory. */
bool wander_begin(struct track *track);

/* The first slot with the key; slot_count: there is none. The plan's blocks have keys. */
uint32_t plan_first_with(const struct plan *plan, uint32_t key);

/* Another plan is to be followed, or none. */
void wander_forget(struct track *track);

/* A slot for the request: one that fits and whose place is free, or without a place. If there is
 * none with its key, or all are live and much of the arena is free, it may be one with another key.
 * slot_count: none was found. */
uint32_t wander_seek(struct track *track, size_t bytes, size_t align, uint32_t key);

/* The slot is live from here on, or no longer. */
void wander_add(struct track *track, uint32_t slot);
void wander_drop(struct track *track, uint32_t slot);

/* The live slot of the place that is the first, by number, with the offset; slot_count: none. */
uint32_t wander_find(const struct track *track, uint32_t place, uint32_t offset);

/* Ends the process where the set is not that of the live slots, or two of these overlap. */
void wander_check(const struct track *track);

#endif
