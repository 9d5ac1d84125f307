// SPDX-License-Identifier: Apache-2.0
/*
 * numbers.h - the numbers of the policy (learn.h), and why they are what they are. A test compares
 * docs/planning.md, which lists them all, so each stands in a line of its own.
 */
#ifndef EBB_STEP_NUMBERS_H
#define EBB_STEP_NUMBERS_H

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
#define LEARN_WAIT_MOST 1024u

/* Pages that a planned step may take above its live bytes: a quarter of these, or an amount that
 * matters to nobody if that is larger. For a step that is alone: above the most that was live in
 * recent ones. */
#define LEARN_SLACK_PPM 250000u
#define LEARN_SLACK_BYTES ((uint64_t)256 << 10)

/* An enlarged plan may have this height, as a share of the live bytes of recent steps at their
 * peak: sizes that never meet in one step add up to more than any step needs. */
#define LEARN_HEIGHT_PPM 1250000u

/* A plan for steps that differ, of which no one needs all of it, may have more alive by this part
 * than recent steps had at their peak. Much more, and it takes pages for nothing soon. It may be
 * higher than that by as much, or by LEARN_SLACK_BYTES, since some programs pack badly alone. */
#define LEARN_MERGED_PART 8u

/* And such a plan, with a track, holds no more than this, or LEARN_TRY_PART: it has slots for all
 * programs, of which a step needs those of one. */
#define LEARN_MERGED_BYTES ((uint64_t)512 << 10)

/* A plan of blocks with keys that were in no two steps alike is a guess, which is wrong by more
 * than other orders would win. It is low enough if it is higher by this part than what recent steps
 * used, or by so many bytes. */
#define LEARN_GUESS_PART 32u
#define LEARN_GUESS_BYTES ((uint64_t)64 << 10)

/* A plan of loops that takes too many pages is shortened until it is higher than that by this part:
 * as loops vary, what comes next may be somewhat longer than recent steps. */
#define LEARN_SHORTER_PART 10u

/* A plan is enlarged at once so many times. After that it waits until larger steps have missed as
 * much as LEARN_OUTGROWN steps have in all, about what a plan costs, or as one step has if that
 * step is bad: where sizes vary independently some are larger than ever in each step, and a larger
 * plan hardly serves more; where all follow one length a new longest one misses everything, so it
 * waits for nothing. A loop that was longer than its plan has the next step recorded: at once as
 * often, whatever is planned, and then, when such loops have missed as much, as often again; or
 * once, if records are lost, or nothing longer was found: then what they are to have missed before
 * doubles each time, so many times. */
#define LEARN_GROWTHS 4u
#define LEARN_OUTGROWN 8u
#define LEARN_VAIN_MOST 5u

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

#endif
