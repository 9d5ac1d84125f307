// SPDX-License-Identifier: Apache-2.0
/*
 * tracks.c - planned steps against everything that can go otherwise (see tracks.h). (The linker has
 * put a function of ours in the place of one that takes memory.)
 */
#include "kit/short_of.h"
#include "model/tracks.h"

#include "step/draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATIONS_EACH 60000 /* of one test; EBB_TRACK_ALLOCATIONS says otherwise */
#define REPLAYS 12             /* of one plan */
#define SHORT_EVERY 4          /* one in so many plans' steps have no memory to wander */

static struct plan *learn(struct dice *dice, const struct stream *stream, struct track *track,
                          ebb_region parent, unsigned kind, struct totals *totals) {
    unsigned promotes = kind & (PLAY_PROMOTE | PLAY_KEEP);
    stream_play(dice, stream, track, parent, false, promotes, totals);
    if (!(kind & PLAY_COARSE))
        return plan_by_the_book(track->record, track->record_count, kind);
    struct coarse_record coarse;
    struct plan *plan = NULL;
    if (coarse_make(&coarse, track->record, track->record_count))
        plan = plan_by_the_book(coarse.record, coarse.count, kind);
    if (plan)
        plan->coarse = true;
    coarse_drop(&coarse);
    return plan;
}

static struct track *make_track(ebb_region *memory) {
    *memory = ebb_region_open(EBB_REGION_OPTIONS(.name = "tracks", .pool = plan_pool()));
    struct track *track = track_create(*memory);
    assert_non_null(track);
    return track;
}

static void end_track(struct track *track, ebb_region memory) {
    track_destroy(track);
    assert_int_equal(ebb_region_close(memory), 0);
}

/* Some steps repeat to the letter, or nearly so: between others, and several in a row. */
static uint32_t wildness(struct dice *dice, bool repeats, uint32_t wild) {
    if (repeats ? !dice_chance(dice, 4) : dice_chance(dice, 4))
        return 0;
    return repeats ? 1 : wild;
}

/* The track follows a plan of another step than before. */
static void play_plan(struct dice *dice, struct track *track, ebb_region parent, unsigned kind,
                      uint32_t wild, struct totals *totals) {
    static struct stream stream, mutant;
    stream_make(dice, &stream, (kind & PLAY_TABLES) != 0);
    struct plan *plan = learn(dice, &stream, track, parent, kind, totals);
    assert_true(plan || (kind & PLAY_COARSE)); /* too many are small */
    assert_int_equal(track_follow(track, plan), 0);
    plan_drop(plan);
    short_of_memory = dice_chance(dice, SHORT_EVERY);
    bool repeats = (kind & PLAY_TABLES) || dice_chance(dice, 2);
    for (int i = 0; plan && i < REPLAYS; i++) {
        stream_mutate(dice, &stream, &mutant, wildness(dice, repeats, wild));
        stream_play(dice, &mutant, track, parent, true, kind, totals);
    }
    short_of_memory = false;
}

static void play_one(struct dice *dice, ebb_region parent, unsigned kind, uint32_t wild,
                     struct totals *totals) {
    ebb_region memory;
    struct track *track = make_track(&memory);
    do
        play_plan(dice, track, parent, kind, wild, totals);
    while (dice_chance(dice, 2));
    end_track(track, memory);
}

static struct totals play(ebb_region parent, unsigned kind, uint32_t wild) {
    struct totals totals = {0};
    uint64_t seed = fresh_seed();
    uint64_t most = number_from("EBB_TRACK_ALLOCATIONS", ALLOCATIONS_EACH);
    if (kind & PLAY_TABLES) /* large ones, which take long to fill */
        most /= 4;
    while (totals.allocations < most) {
        struct dice dice = {seed, seed};
        play_one(&dice, parent, kind, wild, &totals);
        seed++;
    }
    fprintf(stderr,
            "# %llu steps, %llu allocations, %llu hits, %llu missed, %llu takeovers, %llu given "
            "up, %llu born above, %llu guests, %llu wandered and served %llu, %llu remote\n",
            (unsigned long long)totals.steps, (unsigned long long)totals.allocations,
            (unsigned long long)totals.hits, (unsigned long long)totals.missed,
            (unsigned long long)totals.takeovers, (unsigned long long)totals.given_up,
            (unsigned long long)totals.born, (unsigned long long)totals.guests,
            (unsigned long long)totals.wandered, (unsigned long long)totals.strayed,
            (unsigned long long)totals.remote);
    return totals;
}

static void a_step_that_repeats_is_served_from_its_plan(void **state) {
    struct stage *stage = *state;
    struct totals totals = {0};
    static struct stream stream;
    for (uint64_t seed = 1; seed < 60; seed++) {
        struct dice dice = {seed, seed};
        ebb_region memory;
        struct track *track = make_track(&memory);
        stream_make(&dice, &stream, seed % 2);
        struct plan *plan = learn(&dice, &stream, track, stage->root, 0, &totals);
        assert_int_equal(track_follow(track, plan), 0);
        plan_drop(plan);
        totals = (struct totals){0};
        for (int i = 0; i < 3; i++)
            stream_play(&dice, &stream, track, stage->root, true, 0, &totals);
        assert_int_equal(totals.hits, 3 * stream.blocks);
        assert_int_equal(totals.missed, 0);
        end_track(track, memory);
    }
}

static void steps_with_mistakes_never_overlap(void **state) {
    struct stage *stage = *state;
    struct totals totals = play(stage->root, PLAY_PLAIN, 2);
    assert_true(totals.hits > totals.allocations / 10);
    assert_true(totals.missed > totals.allocations / 200);
}

static void wild_steps_never_overlap(void **state) {
    struct stage *stage = *state;
    struct totals totals = play(stage->root, PLAY_RESIZE, 16);
    assert_true(totals.hits && totals.missed && totals.takeovers);
}

static void steps_that_promote_never_overlap(void **state) {
    struct stage *stage = *state;
    struct totals totals = play(stage->root, PLAY_PROMOTE | PLAY_RESIZE | PLAY_ABANDON, 5);
    assert_true(totals.hits && totals.born && totals.guests);
}

static void steps_that_keep_the_same_never_overlap(void **state) {
    struct stage *stage = *state;
    struct totals totals = play(stage->root, PLAY_KEEP, 2);
    assert_true(totals.hits && totals.born);
    totals = play(stage->root, PLAY_KEEP | PLAY_RESIZE | PLAY_REMOTE, 3);
    assert_true(totals.hits && totals.born);
}

static void steps_along_tables_never_overlap(void **state) {
    static const unsigned kinds[] = {
        0, PLAY_KEEP, PLAY_KEEP | PLAY_ABANDON, PLAY_KEEP | PLAY_REMOTE, PLAY_PROMOTE,
        PLAY_RESIZE | PLAY_STOP, PLAY_LIMIT,
    };
    struct stage *stage = *state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct totals totals = play(stage->root, PLAY_TABLES | kinds[k], 1);
        assert_true(totals.hits > totals.allocations / 10);
    }
}

static void steps_that_are_stopped_never_overlap(void **state) {
    struct stage *stage = *state;
    play(stage->root, PLAY_STOP | PLAY_PROMOTE | PLAY_ABANDON, 3);
}

static void remote_releases_never_overlap(void **state) {
    struct stage *stage = *state;
    struct totals totals = play(stage->root, PLAY_REMOTE | PLAY_PROMOTE, 4);
    assert_true(totals.remote && totals.guests);
}

static void coarse_plans_never_overlap(void **state) {
    struct stage *stage = *state;
    struct totals totals = play(stage->root, PLAY_COARSE, 3);
    assert_true(totals.hits);
    play(stage->root, PLAY_COARSE | PLAY_PROMOTE | PLAY_RESIZE | PLAY_REMOTE, 3);
}

static void steps_under_a_limit_never_overlap(void **state) {
    static const unsigned kinds[] = {0, PLAY_RESIZE | PLAY_REMOTE, PLAY_PROMOTE | PLAY_STOP,
                                     PLAY_COARSE | PLAY_RESIZE, PLAY_ABANDON | PLAY_PROMOTE};
    struct stage *stage = *state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct totals totals = play(stage->root, PLAY_LIMIT | kinds[k], 4);
        assert_true(totals.hits && totals.takeovers && totals.refused);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_step_that_repeats_is_served_from_its_plan),
        STAGED(steps_with_mistakes_never_overlap),
        STAGED(wild_steps_never_overlap),
        STAGED(steps_that_promote_never_overlap),
        STAGED(steps_that_keep_the_same_never_overlap),
        STAGED(steps_along_tables_never_overlap),
        STAGED(steps_that_are_stopped_never_overlap),
        STAGED(remote_releases_never_overlap),
        STAGED(coarse_plans_never_overlap),
        STAGED(steps_under_a_limit_never_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
