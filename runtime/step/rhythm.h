// SPDX-License-Identifier: Apache-2.0
/*
 * rhythm.h - steps of one tag that come in rows: three that gather gradients, then one that uses
 * them; a discriminator's, then a generator's; nine of training, then one of evaluation.
 *
 *     allocations   84  84  84 234  84  84  84 234  84  84  84 234 | 84
 *                                    a row of four, seen often enough: what comes is foretold
 *
 * A step is known by the number of its allocations, which is the same whether it was planned or
 * not, unless it reallocates: a block that has to move counts again. Its *kind* is that number and
 * the one before it, since the first step after another sort often differs in what survives. An odd
 * step between leaves the row as it is; where a row breaks off, as at the end of an epoch, it goes
 * on at the place that the last steps agree with; where they have come in another row by now, that
 * takes its place.
 *
 * Steps of one tag that overlap in time have no rhythm. Nothing here fails. The caller's lock.
 */
#ifndef EBB_STEP_RHYTHM_H
#define EBB_STEP_RHYTHM_H

#include <stdbool.h>
#include <stdint.h>

/* Steps in a row. In longer rows nearly all are alike, as a rule, and one plan does well. */
#define RHYTHM_MOST 16u
#define RHYTHM_HISTORY 40u /* twice that, and what follows */

/* A row has at most so many kinds of steps: what changes with each step is no rhythm, even where
 * the same data come again and again. */
#define RHYTHM_KINDS 4u

/* A row is believed after it came again whole, and so many steps more. */
#define RHYTHM_SURE 4u

/* Each step that is not as foretold counts so much, each other takes back one; at the second the
 * rhythm is lost. */
#define RHYTHM_MISS 4u
#define RHYTHM_LOST 24u

/* Steps until a rhythm is looked for after one was lost; each time twice as many, unless it lasted
 * for longer than that, in one row or in several that became each other. */
#define RHYTHM_WAIT 16u
#define RHYTHM_WAIT_MOST 1024u

struct rhythm {
    uint64_t begun;                  /* steps so far */
    uint32_t counts[RHYTHM_HISTORY]; /* of step n at n modulo that; 0: not known */
    uint8_t servers[RHYTHM_HISTORY]; /* the same: what served it well; 0: nothing */
    uint32_t row[RHYTHM_MOST];       /* counts of its steps */
    uint32_t period;                 /* of these; 0: no rhythm */
    uint32_t shift;                  /* step n is at n + shift, modulo the period */
    uint32_t strikes;
    uint32_t wait;                   /* steps, once it is lost */
    uint64_t found_at, look_at;      /* steps after which it was found, one may be looked for */
};

/* Which steps are planned together. */
struct step_kind {
    uint32_t count, before; /* allocations of a step, and of the one before it */
};

void rhythm_start(struct rhythm *rhythm);

/* A step begins; returns its number. */
uint64_t rhythm_begin(struct rhythm *rhythm);

/* That step has not begun after all. If others began since, it stays one of which nothing is
 * known. */
void rhythm_return(struct rhythm *rhythm, uint64_t number);

/* True if it is known what that step will be. */
bool rhythm_foretell(struct rhythm *rhythm, uint64_t number, struct step_kind *kind);

/* What steps with so many allocations are known by. */
static inline uint32_t rhythm_count(uint64_t allocations) {
    return allocations < UINT32_MAX ? (uint32_t)allocations : UINT32_MAX;
}

/* The step has ended, with that count. */
void rhythm_end(struct rhythm *rhythm, uint64_t number, uint32_t count);

/* The step was served well by this, a number that the caller gives a meaning; 0: by nothing. */
static inline void rhythm_note(struct rhythm *rhythm, uint64_t number, uint8_t server) {
    if (rhythm->begun - number <= RHYTHM_HISTORY)
        rhythm->servers[number % RHYTHM_HISTORY] = server;
}

/* That step was not served well, without a rhythm: looks for one. True: it is found. */
bool rhythm_look(struct rhythm *rhythm, uint64_t number);

/* Of a rhythm that was just found: the kind of the step so many before the last one, and what
 * served it, or the one a row before. */
struct step_kind rhythm_kind(struct rhythm *rhythm, uint32_t back, uint8_t *server);

#endif
