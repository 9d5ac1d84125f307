// SPDX-License-Identifier: Apache-2.0
/*
 * tracks.h - steps that do not go as planned: random steps are recorded, planned, and replayed with
 * mistakes of every kind.
 *
 *     stream     events of one step: allocations, and releases of earlier ones
 *     mutate     releases are lost, late, early or swapped; blocks are larger, smaller, extra or
 *                missing; the step ends early
 *     play       every block is filled when it comes and looked at when it goes: two that overlap
 *                show, as does a counter that is not what the model says
 */
#ifndef MODEL_TRACKS_H
#define MODEL_TRACKS_H

#include "kit/test.h"
#include "region/track.h"

#include <ebb/step.h>

#define STREAM_MOST 4096

struct event {
    bool alloc;
    uint32_t number; /* of the block: allocations count from 0 */
    uint32_t bytes, align, key;
};

struct stream {
    struct event events[STREAM_MOST];
    uint32_t count, blocks;
};

struct dice {
    uint64_t state, seed;
};

uint64_t dice_roll(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t n);
bool dice_chance(struct dice *dice, uint32_t one_in);

/* A random step: nested, queued or in no order; with or without keys, or such as goes along tables
 * where it repeats (region/due.c). */
void stream_make(struct dice *dice, struct stream *stream, bool suits_tables);

/* The same step with mistakes: `wild` of 16 events. */
void stream_mutate(struct dice *dice, const struct stream *from, struct stream *to, uint32_t wild);

/* What is done besides. */
enum play_kind {
    PLAY_PLAIN = 0,
    PLAY_PROMOTE = 1, /* blocks are promoted now and then, and born in the parent by later plans */
    PLAY_STOP = 2,    /* marks, seals and resets */
    PLAY_REMOTE = 4,  /* half of the releases come from another thread */
    PLAY_RESIZE = 8,
    PLAY_ABANDON = 16, /* some steps end by the close of their region alone */
    PLAY_COARSE = 32,  /* the plan is one without small blocks */
    PLAY_LIMIT = 64,   /* planned steps get hardly any pages beside the arena */
    PLAY_KEEP = 128,   /* some blocks, always the same, are promoted at the end */
    PLAY_TABLES = 256, /* steps are those that suit tables */
};

struct totals {
    uint64_t steps, allocations, hits, missed, takeovers, given_up, born, guests, wandered, remote;
    uint64_t refused, strayed; /* strayed: blocks served in steps that wandered, since then */
};

/* One step in a region of its own under `parent`. */
void stream_play(struct dice *dice, const struct stream *stream, struct track *track,
                 ebb_region parent, bool serve, unsigned kind, struct totals *totals);

/* A plan from the track's record, made the obvious way; NULL if there is nothing to plan. */
struct plan *plan_by_the_book(const struct record_entry *record, uint32_t count, unsigned kind);

/* Ends the process and says how to replay this. */
void play_fail(const struct dice *dice, const char *what);

#define PLAY_DEMAND(dice, claim) ((claim) ? (void)0 : play_fail(dice, #claim))

#endif
