// SPDX-License-Identifier: Apache-2.0
/*
 * plan.h - a plan: where each allocation of a step goes, before the step begins.
 *
 *     slots    | 0 | 1 | 2 | 3 | ...   in the order of allocation: place, room, releases before it
 *     order    | 1 | 0 | 3 | ...       slots in the order in which they are released
 *     arena    |   2      | 0   |  3  |      height: what all places together need
 *              |  1   |       4       |
 *
 * Made from the record of a step (step/), shared by all lanes that serve it, ended by the last.
 * Nothing of it changes afterwards but how many they are, and what good steps had no room for.
 * Law, checked by a sweep before a plan is published: let i come before j. If i is not among the
 * `passed` releases before j, their places do not overlap. The rooms of all slots add up to at most
 * PLAN_ROOMS_MOST.
 */
#ifndef EBB_REGION_PLAN_H
#define EBB_REGION_PLAN_H

#include "region/region.h"

#define PLAN_NEVER UINT32_MAX /* is not released before the step ends */
#define PLAN_SLOTS_MOST ((uint32_t)1 << 22)
#define PLAN_ROOM_MOST ((size_t)UINT32_MAX - RANGE_GRANULE + 1) /* larger blocks are not planned */
#define PLAN_ALIGN_MOST EBB_PAGE /* of the arena, too: it is a run */
#define PLAN_ROOMS_MOST ((uint64_t)UINT32_MAX * RANGE_GRANULE) /* of all slots together */

struct plan_slot {
    uint32_t offset; /* granules from the start of the arena; if not placed: those that it needs */
    uint32_t room;   /* granules; 0: not placed in the arena */
    uint32_t passed; /* releases of slots before it */
    uint32_t key;       /* of the place in the program; 0: none */
    uint32_t above;     /* granules that large blocks of the parent had when it was recorded */
    uint8_t align_log2; /* as it was asked for */
    bool tenured : 1;   /* not placed: born in the parent */
    bool guest : 1;     /* not placed: in the parent for a while, it does not survive */
    bool survived : 1;  /* so does what is tenured */
    bool bound : 1;     /* may not be a guest */
    uint8_t age; /* drafts that were merged since a record had it */
};

/* Where a slot is: few bytes, since they are searched. */
struct plan_place {
    uint32_t offset; /* of the slot */
    uint32_t slot;
};

struct plan {
    atomic_uint users;
    atomic_uint followers; /* of these: tracks */
    uint32_t slot_count, order_count, placed_count, guest_count;
    const struct plan_slot *slots;
    const uint32_t *order;  /* placed slots and guests that are released; then slot_count */
    const struct plan_place *places; /* placed slots by offset, then by number */
    const uint32_t *by_key; /* slots by key, then by number; NULL: no slot has a key */
    _Atomic(uint32_t) *wanted; /* for each slot: the most bytes that good steps had no room for */
    size_t height_bytes;    /* multiple of EBB_PAGE */
    size_t max_live_bytes;
    uint64_t hash;          /* of the structure */
    bool confirmed; /* two steps were alike */
    bool coarse; /* only of blocks that do not fit the small lane: others are not in its slots */
    bool several; /* of steps that differ in what comes: each leaves some slots out */
    bool apart;  /* of blocks with keys: what stays to the end has places of its own */
    ebb_region memory;      /* of all this */
};

/* Where sites live, and what they learn: a pool of its own. NULL with an error. Any thread. */
ebb_pool *plan_pool(void);

/* A block in a region of its own of that pool, which has no page more than `bytes` need; the region
 * is in *memory then. NULL with an error. Any thread. */
void *plan_pool_take(const char *name, size_t bytes, ebb_region *memory);

/* Gives back pages of that pool that nobody has, but for `wanted` bytes, 2 MiB at most, and a few:
 * learning needs many, and seldom. Any thread. */
void plan_pool_rest(size_t wanted);

void plan_share(struct plan *plan);

/* The last user ends it. NULL: nothing. Any thread. */
void plan_drop(struct plan *plan);

/* A good step had no room for so many bytes in a slot. Any thread. */
void plan_want(struct plan *plan, uint32_t slot, uint32_t bytes);

/* What that was at most; 0: nothing. Any thread. */
static inline uint32_t plan_wanted(const struct plan *plan, uint32_t slot) {
    /* relaxed: what another thread notes just now is for the next larger plan */
    return atomic_load_explicit(&plan->wanted[slot], memory_order_relaxed);
}

/* The same for a track. */
void plan_follow(struct plan *plan);
void plan_leave(struct plan *plan);

/* Only tracks have it, and no step will be served by it any more. Any thread. */
bool plan_is_forgotten(const struct plan *plan);

#endif
