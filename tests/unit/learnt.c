// SPDX-License-Identifier: Apache-2.0
/*
 * learnt.c - the memory of what a site learns: as much as it needs, and gone when it is of no use.
 */
#include "kit/test.h"

#include "step/site.h"

#include <ebb/step.h>

#include <errno.h>

enum {
    BLOCKS = 3000,
    PER_BLOCK = 20 + 8 + 4 + 32, /* bytes of slots, places and order of the plan; of a track */
    PER_DUE = 16 + 4 + 5,        /* of a block that is due, and of stops */
    REST = 128 << 10,            /* the site, the ends of pages */
    SPARE = 64 << 10             /* hot pages, while nobody needs any */
};

static bool region_is(ebb_region a, ebb_region b) {
    return a.lane == b.lane && a.generation == b.generation;
}

static uint64_t owned(void) {
    return pool_stats_of(plan_pool()).owned;
}

/* Blocks of one size; the last of them. */
static void *fill(ebb_step step, size_t bytes) {
    void *block = NULL;
    for (int i = 0; i < BLOCKS; i++)
        assert_non_null(block = ebb_region_alloc(step.region, bytes, 16));
    return block;
}

/* Nothing else has opened any yet; who locks all that is open has it in memory. */
static void a_first_site_opens_few_addresses(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "few"));
    assert_non_null(site);
    size_t open = atomic_load(&range.user.open);
    assert_in_range(open, 1, (size_t)128 << 20);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void what_is_learnt_takes_what_it_needs(void **state) {
    uint64_t before = plan_pool() ? owned() : 0;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "learnt"));
    assert_non_null(site);
    for (int i = 0; i < 8; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        fill(step, 2048);
        assert_int_equal(ebb_step_end(step), 0);
    }
    uint64_t learnt = owned() - before;
    assert_true(learnt >= (uint64_t)BLOCKS * PER_BLOCK);
    assert_true(learnt <= (uint64_t)BLOCKS * PER_BLOCK + REST);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_true(owned() == before);
    assert_true(pool_stats_of(plan_pool()).cached <= SPARE);
}

static uint64_t cached(void) {
    return pool_stats_of(plan_pool()).cached;
}

/* Not in one piece, that is, as much as planning needs. */
static void making_a_plan_takes_no_pages_that_steps_did_not_have(void **state) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "small"));
    ebb_region root = ebb_region_open(EBB_REGION_OPTIONS(.name = "root", .pool = pool));
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "small"));
    assert_true(pool && site && ebb_region_is_open(root));
    for (int i = 0; i < 6; i++) {
        ebb_step step = ebb_step_begin_under(site, root, 0);
        for (int block = 0; block < BLOCKS; block++) {
            void *taken = ebb_region_alloc(step.region, 64, 16);
            assert_int_equal(ebb_region_release(step.region, taken), 0);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(stats.plans > 0);
    assert_true(pool_stats_of(pool).reserved.peak <= 64 * KIB);
    assert_true(cached() <= SPARE);
    assert_int_equal(ebb_region_close(root), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_pool_destroy(pool), 0);
}

static void take(ebb_site *site, int blocks) {
    ebb_step step = ebb_step_begin(site, 0);
    for (int i = 0; i < blocks; i++)
        assert_non_null(ebb_region_alloc(step.region, 16, 16));
    assert_int_equal(ebb_step_end(step), 0);
}

/* A long record is followed by none: the site is idle, or ends. */
static void what_the_next_record_would_need_is_little_or_goes_with_the_site(void **state) {
    enum { MANY = 200000 };
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "long"));
    take(site, MANY);
    assert_true(MANY * sizeof(struct record_entry) > 4 * MIB && cached() <= 2 * MIB);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_true(cached() <= 64 * KIB);
}

/* There is no memory for a record like the last; this step needs little. */
static void a_short_step_after_a_long_one_is_recorded_in_little_memory(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "short"));
    struct ebb_pool_stats stats = {.size = sizeof stats};
    take(site, 100000);
    assert_int_equal(ebb_pool_read_stats(plan_pool(), &stats), 0);
    plan_pool()->limit_reserved = (size_t)stats.owned + 512 * KIB;
    ebb_step step = ebb_step_begin(site, 0);
    const struct track *track = site->lanes->ring[0].tracks[0];
    for (int block = 0; block < 1000; block++)
        assert_non_null(ebb_region_alloc(step.region, 16, 16));
    assert_true(track->recording && !track->record_lost);
    assert_int_equal(track->record_count, 1000);
    plan_pool()->limit_reserved = 0;
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Which of two blocks went before the third came makes another structure. */
static void a_record_says_how_many_had_come_when_a_block_went(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "ends"));
    ebb_step step = ebb_step_begin(site, 0);
    const struct track *track = site->lanes->ring[0].tracks[0];
    void *first = ebb_region_alloc(step.region, 100, 16);
    void *second = ebb_region_alloc(step.region, 5000, 16);
    assert_int_equal(ebb_region_release(step.region, second), 0);
    assert_non_null(ebb_region_alloc(step.region, 100, 16));
    assert_int_equal(ebb_region_release(step.region, first), 0);
    assert_int_equal(track->record[1].rank, 0);
    assert_int_equal(track->record[1].until, 2);
    assert_int_equal(track->record[0].rank, 1);
    assert_int_equal(track->record[0].until, 3);
    assert_int_equal(track->record[2].rank, PLAN_NEVER);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* It begins with room for as many blocks, though a plan was followed in between. */
static void a_record_is_as_long_as_the_last_one(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "long"));
    const struct track *track = NULL;
    for (int i = 0; i < 20; i++) { /* each has more blocks than the one before */
        ebb_step step = ebb_step_begin(site, 0);
        track = site->lanes->ring[0].tracks[0];
        assert_non_null(ebb_region_alloc(step.region, i < 6 ? 100 : 5000, 16));
        assert_true(!i || !track->recording || track->record_limit >= BLOCKS);
        for (int block = 0; block < BLOCKS + 10 * i; block++)
            assert_non_null(ebb_region_alloc(step.region, i < 6 ? 100 : 5000, 16));
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_true(site_stats(site).recorded_steps > 3 && site_stats(site).planned_steps > 3);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Records and planning need much, and seldom: hardly any of it stays cached, but for the next
 * record while one follows the other. */
static void what_learning_needed_goes_back_to_the_system(void **state) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "learnt"));
    for (int i = 0; i < 4; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        fill(step, 2048);
        assert_int_equal(ebb_step_end(step), 0);
        uint64_t record = i == 0 ? BLOCKS * sizeof(struct record_entry) : 0;
        assert_true(cached() <= size_larger(64 * KIB, record));
        assert_true(!record || cached() > record / 2);
    }
    assert_int_equal(ebb_pool_read_stats(plan_pool(), &stats), 0);
    assert_true(stats.given_back >= (uint64_t)BLOCKS * PER_BLOCK);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static struct track *track_of(ebb_step step) {
    return ((struct region *)step.region.lane)->track;
}

/* What was born in a planned step is noted as what its arena has, so that stays an arena. */
static void an_arena_in_which_others_were_born_is_not_dissolved(void **state) {
    ebb_site *outer = ebb_site_create(EBB_SITE_OPTIONS(.name = "outer"));
    ebb_site *inner = ebb_site_create(EBB_SITE_OPTIONS(.name = "inner"));
    for (int i = 0; i < 8; i++) {
        ebb_step above = ebb_step_begin(outer, 0);
        assert_non_null(ebb_region_alloc(above.region, 2048, 64));
        ebb_step below = ebb_step_begin_under(inner, above.region, 0);
        assert_non_null(ebb_region_alloc(below.region, 4096, 64));
        struct ebb_survivor kept = {.block = ebb_region_alloc(below.region, 8192, 64)};
        bool born = region_is(ebb_region_of(kept.block), above.region);
        bool laid = track_of(above) && track_of(above)->arena;
        assert_true(i < 7 || (born && laid));
        assert_true(!born || !laid || !track_dissolve(track_of(above)));
        assert_int_equal(ebb_step_end_keeping(below, above.region, &kept, 1, NULL, NULL), 0);
        assert_true(!track_of(above) || track_dissolve(track_of(above)));
        assert_int_equal(ebb_region_release(above.region, kept.block), 0);
        assert_int_equal(ebb_step_end(above), 0);
    }
    assert_int_equal(ebb_site_destroy(inner), 0);
    assert_int_equal(ebb_site_destroy(outer), 0);
}

/* Rows of steps of three kinds. What was learnt of all of them together, before they were told
 * apart, goes with the plan that served them; its track lets it go as well. */
static void of_steps_in_rows_their_kinds_are_kept(void **state) {
    enum { ROWS = 40, LONG = BLOCKS + BLOCKS / 2 };
    uint64_t before = plan_pool() ? owned() : 0, together = 0;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "rows"));
    for (int i = 0; i < 4 * ROWS; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (int block = 0; block < (i % 4 == 3 ? LONG : BLOCKS); block++)
            assert_non_null(ebb_region_alloc(step.region, i % 4 == 3 ? 3000 : 2048, 16));
        assert_int_equal(ebb_step_end(step), 0);
        if (!site_stats(site).row_steps)
            together = size_larger(together, owned() - before);
    }
    assert_int_equal(site_stats(site).row_steps, 4);
    assert_true(together > BLOCKS * PER_BLOCK); /* there was such a plan */
    uint64_t learnt = owned() - before, kinds = (uint64_t)PER_BLOCK * (2 * BLOCKS + LONG);
    uint64_t due = (uint64_t)PER_DUE * (2 * BLOCKS + LONG);
    assert_in_range(learnt, PER_BLOCK * (BLOCKS + LONG), kinds + due + REST); /* two share one */
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_true(owned() == before);
}

/* So many steps of one tag in rows, each as long as the row says. */
static void take_rows(ebb_site *site, uint64_t tag, const unsigned row[4], unsigned steps) {
    for (unsigned i = 0; i < steps; i++) {
        ebb_step step = ebb_step_begin(site, tag);
        for (unsigned k = 0; k < row[i % 4]; k++)
            assert_non_null(ebb_region_alloc(step.region, 3000, 16));
        assert_int_equal(ebb_step_end(step), 0);
    }
}

/* It is open while entries are taken for kinds of other tags. */
static void the_kind_of_an_open_step_is_given_to_no_other(void **state) {
    static const unsigned first[] = {20, 30, 50, 60}, second[] = {24, 36, 44, 56},
                          others[] = {40, 64, 40, 64};
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "open", .pool = stage->pool));
    take_rows(site, 1, first, 80);
    ebb_step open = ebb_step_begin(site, 1);
    const struct course *course = ((const struct lane *)open.lane)->course;
    struct step_kind kind = course->kind;
    assert_true(kind.count);
    take_rows(site, 2, second, 80);
    for (uint64_t tag = 3; tag < 8; tag++)
        take_rows(site, tag, others, 400);
    assert_int_equal(site->kind_count, SITE_KINDS);
    assert_true(course->tag == 1 && course->kind.count == kind.count &&
                course->kind.before == kind.before);
    assert_int_equal(ebb_step_end(open), 0);
    const struct lane_past *past = &((struct lane *)open.lane)->past[course - site->courses];
    assert_true(past->peak > 0);
    open = ebb_step_begin(site, 2); /* in the same lane: the others are in another */
    for (uint64_t tag = 3; tag < 8; tag++)
        take_rows(site, tag, others, 400);
    assert_int_not_equal(course->tag, 1); /* from then on it is */
    assert_int_equal(past->peak, 0);      /* nor is known what its steps saw */
    assert_int_equal(ebb_step_end(open), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void take_large(ebb_site *site, uint64_t tag) {
    ebb_step step = ebb_step_begin(site, tag);
    fill(step, 2048);
    assert_int_equal(ebb_step_end(step), 0);
}

/* Many steps that were open at once, and then one at a time. */
static void what_a_crowd_has_learnt_goes_when_it_is_gone(void **state) {
    enum { CROWD = 20, ALONE = 400 };
    ebb_step steps[CROWD];
    uint64_t before = plan_pool() ? owned() : 0, each = (uint64_t)BLOCKS * 32;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "crowd"));
    for (int i = 0; i < 4; i++)
        take_large(site, 0);
    for (int i = 0; i < CROWD; i++)
        fill(steps[i] = ebb_step_begin(site, 0), 2048);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(ebb_step_end(steps[i]), 0);
    assert_true(owned() - before > CROWD * each);
    for (int i = 0; i < ALONE; i++)
        take_large(site, 0);
    assert_true(owned() - before <= (uint64_t)BLOCKS * (PER_BLOCK + PER_DUE) + REST);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_true(owned() == before);
}

/* A tag that came in all berths of a ring, of which none comes any more. */
static void what_a_tag_has_learnt_in_a_ring_goes_when_it_is_gone(void **state) {
    enum { RING = 4, STEPS = 3 * (RING + 1), ALONE = 300 };
    uint64_t before = plan_pool() ? owned() : 0, each = (uint64_t)BLOCKS * 32;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "tags", .ring = RING));
    for (int i = 0; i < 2 * STEPS; i++)
        take_large(site, (uint64_t)(i / STEPS));
    assert_true(owned() - before > 2 * (RING + 1) * each);
    for (int i = 0; i < ALONE; i++)
        take_large(site, 1);
    uint64_t plans = 2 * (uint64_t)BLOCKS * PER_BLOCK; /* those of the tags stay */
    uint64_t tracks = (RING + 1) * (each + (uint64_t)BLOCKS * PER_DUE + 2 * EBB_PAGE);
    assert_true(owned() - before <= plans + tracks + REST);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_true(owned() == before);
}

/* As long as others come meanwhile, a lane's track keeps what it has. */
static void lanes_that_take_turns_keep_what_they_have(void **state) {
    enum { LANES = 20, ROUNDS = 40 };
    ebb_step steps[LANES];
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "turns"));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LANES; i++)
            fill(steps[i] = ebb_step_begin(site, 0), 2048);
        for (int i = 0; i < LANES; i++)
            assert_int_equal(ebb_step_end(steps[i]), 0);
        for (const struct lane *lane = site->lanes; lane && round > 5; lane = lane->next)
            assert_true(lane->ring[0].tracks[0]->plan == site->courses[0].plan);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* So many blocks, four alive at once; then some large ones, one at a time. The most that is learnt
 * in it. */
static uint64_t take_in_turn(ebb_site *site, uint32_t small, uint32_t large) {
    void *live[4] = {NULL};
    uint64_t most = 0;
    ebb_step step = ebb_step_begin(site, 0);
    for (uint32_t i = 0; i < small + large; i++) {
        uint32_t at = i < small ? i % 4 : 0;
        if (live[at])
            assert_int_equal(ebb_region_release(step.region, live[at]), 0);
        live[at] = ebb_region_alloc(step.region, i < small ? 64 : 100 * KIB, 16);
        assert_non_null(live[at]);
        most = i % 1000 == 0 ? size_larger(most, owned()) : most;
    }
    assert_int_equal(ebb_step_end(step), 0);
    return most;
}

/* Their plan, and the record that it is made of, would be far larger than the step. */
static void of_very_many_small_blocks_little_is_held(void **state) {
    enum { MANY = 300000 };
    uint64_t before = plan_pool() ? owned() : 0;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "many"));
    for (int i = 0; i < 30; i++)
        assert_true(take_in_turn(site, MANY, 0) - before < 12 * MIB);
    assert_true(owned() - before <= REST);
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.planned_steps == 0 && stats.recorded_steps >= 3);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void beside_many_small_blocks_the_large_ones_are_planned(void **state) {
    enum { MANY = 20000, LARGE = 40 };
    uint64_t before = plan_pool() ? owned() : 0;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "large"));
    for (int i = 0; i < 30; i++)
        (void)take_in_turn(site, MANY, LARGE);
    assert_true(owned() - before <= REST);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.plan_slots, LARGE);
    assert_int_equal(stats.planned_steps, 28);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Steps that are never alike get no plan: after the tries that it was worth, hardly anything is
 * held for them, not even what they did. */
static void a_site_that_does_not_repeat_holds_little(void **state) {
    uint64_t before = plan_pool() ? owned() : 0;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "wild"));
    uint32_t random = 1;
    for (int i = 0; i < 60; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (int block = 0; block < BLOCKS; block++) {
            random = random * 1664525 + 1013904223;
            void *at = ebb_region_alloc(step.region, 1024 + (random >> 8) % 8192, 16);
            assert_non_null(at);
            if (random >> 31)
                assert_int_equal(ebb_region_release(step.region, at), 0);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_true(stats.suspended);
    assert_true(owned() - before <= REST / 2);
    assert_true(cached() <= 64 * KIB);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A track asks for the pages that it kept under the lock of their pool, which may have ended. */
static void the_lock_of_a_pool_outlives_it(void **state) {
    (void)state;
    ebb_pool *first = POOL(.name = "first");
    pool_end(first);
    pthread_mutex_lock(&first->lock);
    ebb_pool *next = POOL(.name = "next");
    assert_ptr_equal(next, first);
    assert_int_equal(pthread_mutex_trylock(&next->lock), EBUSY);
    pthread_mutex_unlock(&first->lock);
    pool_end(next);
}

static ebb_region home_of(ebb_step step, size_t bytes, struct ebb_survivor *survivor) {
    block_of(step.region, 3000, 64);
    survivor->block = block_of(step.region, bytes, 64);
    block_of(step.region, 2000, 64);
    return ebb_region_of(survivor->block);
}

/* A step with a survivor of that size; true if it was born in the parent. */
static bool is_born_above(const struct stage *stage, ebb_site *site, size_t bytes, bool survives) {
    ebb_step step = ebb_step_begin_under(site, stage->root, 0);
    struct ebb_survivor survivor = {.mode = EBB_PROMOTE_COPY};
    bool born = region_is(home_of(step, bytes, &survivor), stage->root);
    uint64_t wrong = site_stats(site).tenured_wrong;
    assert_int_equal(ebb_step_end_keeping(step, stage->root, &survivor, survives, NULL, NULL), 0);
    if (survives)
        assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    assert_int_equal(site_stats(site).tenured_wrong - wrong, born && !survives);
    return born;
}

/* What comes in a survivor's place is none if it is far larger, however often. */
static void a_block_far_larger_than_survivors_were_is_not_born_in_the_parent(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "learnt", .pool = stage->pool));
    for (int i = 0; i < 200; i++) {
        bool odd = i % 20 == 19;
        assert_int_equal(is_born_above(stage, site, odd ? 17000 : 8000, !odd), i >= 2 && !odd);
    }
    assert_true(is_born_above(stage, site, 16000, true));
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void survivors_that_have_become_far_larger_are_learnt(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "learnt", .pool = stage->pool));
    for (int i = 0; i < 10; i++)
        assert_int_equal(is_born_above(stage, site, 8000, true), i >= 2);
    int steps = 0;
    while (!is_born_above(stage, site, 17000, true))
        assert_true(++steps < 20);
    assert_true(steps > 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_site_opens_few_addresses),
        cmocka_unit_test(what_is_learnt_takes_what_it_needs),
        cmocka_unit_test(making_a_plan_takes_no_pages_that_steps_did_not_have),
        cmocka_unit_test(what_the_next_record_would_need_is_little_or_goes_with_the_site),
        cmocka_unit_test(a_short_step_after_a_long_one_is_recorded_in_little_memory),
        cmocka_unit_test(a_record_says_how_many_had_come_when_a_block_went),
        cmocka_unit_test(a_record_is_as_long_as_the_last_one),
        cmocka_unit_test(what_learning_needed_goes_back_to_the_system),
        cmocka_unit_test(an_arena_in_which_others_were_born_is_not_dissolved),
        cmocka_unit_test(of_steps_in_rows_their_kinds_are_kept),
        STAGED(the_kind_of_an_open_step_is_given_to_no_other),
        cmocka_unit_test(what_a_crowd_has_learnt_goes_when_it_is_gone),
        cmocka_unit_test(what_a_tag_has_learnt_in_a_ring_goes_when_it_is_gone),
        cmocka_unit_test(lanes_that_take_turns_keep_what_they_have),
        cmocka_unit_test(of_very_many_small_blocks_little_is_held),
        cmocka_unit_test(beside_many_small_blocks_the_large_ones_are_planned),
        cmocka_unit_test(a_site_that_does_not_repeat_holds_little),
        cmocka_unit_test(the_lock_of_a_pool_outlives_it),
        STAGED(a_block_far_larger_than_survivors_were_is_not_born_in_the_parent),
        STAGED(survivors_that_have_become_far_larger_are_learnt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
