// SPDX-License-Identifier: Apache-2.0
/* due.h - a step that repeats to the letter: its tables, and where it is in them (see due.c). */
#ifndef EBB_REGION_DUE_H
#define EBB_REGION_DUE_H

#include "region/region.h"

/* Nothing is due: no request is like it, and no release. */
extern HIDDEN const struct ebb_due due_nothing;

/* The `request` of an event that is a birth in the parent, and no request's; `addr` is the number
 * of its slot. */
#define DUE_BIRTH 2

/* Shuts the inline path. */
static inline void due_shut(struct region *region) {
    region->lane.due = &due_nothing;
}

struct due {
    struct ebb_due *events; /* of the plan, in order, and one that never is due; NULL: no tables */
    uint32_t *blocks;       /* for each slot: the event that is its allocation */
    uint32_t *releases;     /* for each event that is a release: its place in the order; behind
                               them the length of that */
    uint32_t event_count;
    struct due_span *spans; /* between the stops of a step */
    ebb_region memory;      /* that the tables are in */
    uintptr_t base;      /* of the arena that they are right for */
    uint32_t event;      /* that the lane was put at */
    uint32_t early_from, early_to; /* releases among these events came early in this step */
    bool too_large;      /* no tables: they would be too large beside the plan's height */
    bool in_order;       /* the last step was complete, and released slots in order */
    bool tried;          /* in this step */
    bool on;             /* the lane follows them: the track does not know how far it is */
    bool unmarked;       /* the track knows, but slots are not marked from these on: */
    uint32_t marked_slots, marked_passed;
    bool paused;         /* does not go on: we may be in the middle of a call */
    bool strayed;        /* some slots are not live or dead as the tables say */
    bool sizes_right;    /* slots have the sizes that the tables say */
    uint32_t span_count; /* known so far */
    uint32_t stops, stops_most; /* of this step; as many as there may be, with its end and births */
    uint32_t births;            /* of this step, which were no stops */
    uint32_t fails, wait; /* tries in a row that did not pay, or found no memory for tables; steps
                             left until the next one */
};

/* The track was tied, and its paths are open if nothing is in the way. */
void due_begin(struct track *track);

/* The track knows all again: how far the step is, what it counts, which slots are live. */
void due_settle(struct track *track);

/* Before a block that is not the due one: due_settle(); or, if the step goes on and its next slot
 * has no place, just enough to pass that inline. Then due_resume() follows. */
void due_stop(struct track *track);

/* The track knows how far the step is, which does not go on along the tables before its next block:
 * where no more is expected. */
void due_rest(struct track *track);

/* track_gather(), and goes on along the tables. */
void due_gather(struct track *track);

/* After such a block, or release: goes on along the tables, or settles. */
void due_resume(struct track *track);

/* The slot is served with the number of bytes that it says now. */
void due_note_size(struct track *track, uint32_t id);

/* The step is over: notes whether the tables were worth it, then due_end(). */
void due_finish(struct track *track);

/* Nothing is due any more; slots say what they have, for reports. */
void due_end(struct track *track);

/* Drops the tables: the plan changes. Of a track that is not tied. */
void due_forget(struct track *track);

/* track_include() of what the track does not know yet. Any thread, while it is tied. */
void due_include(const struct track *track, struct flow *counted, struct flow *requested,
                 struct flow *used);

#endif
