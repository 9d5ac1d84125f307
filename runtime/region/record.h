// SPDX-License-Identifier: Apache-2.0
/* record.h - what comes and goes in a step, and blocks of it that are born above (see record.c). */
#ifndef EBB_REGION_RECORD_H
#define EBB_REGION_RECORD_H

#include "region/plan.h"

/* One allocation of a recorded step, or one that was born in the parent. */
struct record_entry {
    uintptr_t addr;     /* while it is alive; then 0 */
    size_t bytes;       /* the most that was requested */
    uint32_t passed;    /* releases before it came */
    uint32_t rank;      /* of its release; PLAN_NEVER */
    uint32_t until;     /* blocks that had come when it was released */
    uint32_t key;       /* born in the parent: the note that was there before */
    uint32_t above;     /* granules of the parent's large blocks, without the step's own */
    uint16_t align_log2;
    bool survived; /* promoted */
    bool further;  /* not to the parent, or not only */
    bool listed;   /* while a list of survivors is checked */
    bool claimed;  /* born in the parent: as for a large block (piece.h) */
    bool guest;    /* born in the parent, and not expected to survive */
    bool grew;     /* in place */
    bool bound;    /* by a call that takes no block in the parent */
    bool outgrew;  /* came as a small block and is a large one now */
};

/* Notes that a block came, from any lane, its end, or its new size. `tenure`: it could have been
 * born in the parent. */
void track_note_block(struct track *track, void *block, size_t bytes, size_t align, uint32_t key,
                      bool tenure);
void track_note_end(struct track *track, uintptr_t addr);
void track_note_resize(struct track *track, uintptr_t addr, size_t bytes);

/* The block is promoted and leaves the step. `further`: not only to the parent, or not as a whole,
 * so it had better not be born there. */
void track_note_survivor(struct track *track, uintptr_t addr, bool further);

/* A block in the parent for a slot that is tenured, or a guest's; or NULL. */
void *track_bear(struct track *track, size_t bytes, size_t align, bool guest);

/* The same for the next slot, which is tenured, and a request without a key, in the simple case.
 * NULL: it is not simple, or not valid, or the slot refuses it; then that is still the next. */
void *track_bear_next(struct track *track, size_t bytes, size_t align);

/* The same while the step follows the tables (due.h), which say that it is due. */
void *track_bear_due(struct track *track, size_t bytes, size_t align);

/* The entry of the block at `addr`, if it was born in the parent and not promoted yet; or NULL. */
struct record_entry *track_find_born(const struct track *track, uintptr_t addr);

/* Promotes such a block to the parent, if it is still alive: it just stays there. */
void track_leave_to_parent(struct track *track, struct record_entry *entry, uintptr_t addr);

/* The parent, if the block at `addr` was born there for the region and not promoted yet. */
struct region *track_home(const struct track *track, uintptr_t addr);

/* Ends the block at `addr`, which was born in the parent and is not held. */
void track_end(struct track *track, uintptr_t addr);

/* In a note: it names the entry of a block that was born in the parent and is the step's. So a
 * parent need not ask its bearers, who may be many, about blocks of its own. */
#define TRACK_NOTE_BORN ((uint32_t)1 << 31)
_Static_assert(PLAN_SLOTS_MOST < TRACK_NOTE_BORN, "they lie side by side");

/* The note of the live block at an address of the range. What an arena has is noted like small
 * blocks, until it is dissolved. */
static inline uint32_t *track_note_at(uintptr_t addr) {
    const struct ebb_piece *piece = range_block_at(addr);
    bool large = piece->state == PIECE_BLOCK && piece->addr == addr;
    return large ? range_block_note(addr) : range_note(addr);
}

/* True if the note at an address of the range says so; it may be an old one. */
static inline bool track_may_be_born(uintptr_t addr) {
    return *track_note_at(addr) & TRACK_NOTE_BORN;
}

/* The step that owns the block at `addr`, born in `parent`; NULL: it is the parent's own. */
struct region *track_of_step(const struct region *parent, uintptr_t addr);

/* The step is over: counts what was born in the parent for nothing, which lives until its region
 * ends. */
void track_note_lost(struct track *track);

/* Looks at how much the parent has: when a step begins or ends, or a block is born there. A parent
 * that is a planned step itself cannot tell at once, so there are no guests in it. */
void track_note_above(struct track *track);

/* Ends all blocks born in the parent and not promoted; held ones are left to the parent. */
void track_end_born(struct track *track);

#endif
