// SPDX-License-Identifier: Apache-2.0
/*
 * coarse.c - plans without small blocks: when they are made, and when they become plans with them.
 */
#include "kit/passes.h"
#include "kit/policy.h"

#include "step/site.h"

enum { BLOCKS = 100 };

/* Two records that are alike but for their small blocks. */
static enum learn_verdict record_coarse(struct learning *learning, uint64_t hash,
                                        uint64_t coarse_hash) {
    struct learn_step step = step_of(LEARN_RECORD);
    step.hash = hash;
    step.coarse_hash = coarse_hash;
    step.blocks = BLOCKS;
    enum learn_verdict verdict = learn_judge(learning, &step, false);
    if (verdict == LEARN_ADOPT)
        learn_adopted(learning, learning->coarse ? coarse_hash : hash, learning->coarse);
    return verdict;
}

static void small_blocks_do_not_keep_large_ones_from_a_plan(void **state) {
    struct learning learning;
    learn_start(&learning);
    assert_int_equal(record_coarse(&learning, 7, 71), LEARN_NOTE);
    assert_int_equal(record_coarse(&learning, 8, 71), LEARN_ADOPT);
    assert_true(learning.coarse && learning.plan_coarse && learning.repeats);
    assert_int_equal(learning.plan_hash, 71);
}

static void a_record_that_repeats_in_full_is_planned_in_full(void **state) {
    struct learning learning;
    learn_start(&learning);
    record_coarse(&learning, 7, 71);
    assert_int_equal(record_coarse(&learning, 7, 71), LEARN_ADOPT);
    assert_false(learning.coarse || learning.plan_coarse);
    assert_int_equal(learning.plan_hash, 7);
}

/* Whose plan would hold more than the step. */
static void of_too_many_blocks_the_large_ones_alone_are_planned(void **state) {
    struct learning learning;
    struct learn_step step = step_of(LEARN_RECORD);
    step.coarse_hash = 71;
    step.blocks = step.slots = 20000;
    step.coarse_blocks = 100;
    step.live_peak = MIB;
    learn_start(&learning);
    assert_int_equal(learn_judge(&learning, &step, false), LEARN_KEEP); /* too large to keep */
    assert_int_equal(learn_judge(&learning, &step, false), LEARN_ADOPT);
    assert_true(learning.coarse && !learning.finer);
    learn_adopted(&learning, 71, true);
    struct learn_step next = served(1000, 0);
    next.blocks = step.blocks;
    for (int i = 0; i < 20; i++)
        assert_int_equal(pass(&learning, next), LEARN_KEEP);
}

static void a_record_with_hardly_any_large_block_has_no_coarse_plan(void **state) {
    struct learning learning;
    learn_start(&learning);
    record_coarse(&learning, 7, 0);
    record_coarse(&learning, 8, 0);
    assert_false(learning.coarse || learning.repeats);
}

static void a_new_record_like_the_coarse_plan_keeps_it(void **state) {
    struct learning learning;
    learn_start(&learning);
    record_coarse(&learning, 7, 71);
    record_coarse(&learning, 8, 71);
    for (int i = 0; i < 2; i++)
        pass(&learning, served(100, 900));
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
    assert_int_equal(record_coarse(&learning, 9, 71), LEARN_ADOPT);
    assert_true(learning.plan_coarse);
}

static void without_small_blocks_two_records_will_do(void **state) {
    struct learning learning;
    struct learn_step step = step_of(LEARN_RECORD);
    step.small = false;
    learn_start(&learning);
    assert_int_equal(pass(&learning, step), LEARN_NOTE);
    step.hash++;
    assert_int_equal(pass(&learning, step), LEARN_ADOPT);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

static struct learning coarse_course(void) {
    struct learning learning;
    learn_start(&learning);
    record_coarse(&learning, 7, 71);
    record_coarse(&learning, 8, 71);
    assert_true(learning.plan_coarse);
    return learning;
}

static enum learn_verdict serve_blocks(struct learning *learning, uint64_t blocks,
                                       bool complete) {
    struct learn_step step = served(1000, 0);
    step.blocks = blocks;
    step.complete = complete;
    return pass(learning, step);
}

static void the_next_step_has_as_many_blocks(void **state) {
    struct learning learning = coarse_course();
    assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_REFINE);
    learn_adopted(&learning, 8, false);
    assert_true(learning.planned && !learning.plan_coarse && learning.plan_hash == 8);
    assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP);
}

static void it_has_more_or_is_another(void **state) {
    for (unsigned complete = 0; complete < 2; complete++) {
        struct learning learning = coarse_course();
        assert_int_equal(serve_blocks(&learning, BLOCKS + complete, complete), LEARN_KEEP);
        assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP); /* too late */
        assert_true(learning.plan_coarse);
    }
}

static struct learning refined_course(void) {
    struct learning learning = coarse_course();
    assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_REFINE);
    learn_adopted(&learning, 8, false);
    return learning;
}

static enum learn_verdict miss_blocks(struct learning *learning, uint64_t blocks) {
    struct learn_step step = served(100, 900);
    step.blocks = blocks;
    return pass(learning, step);
}

/* Some small blocks more or less, or in another order: the coarse plan is back at once, without a
 * record, and no plan takes its place again. */
static void the_next_steps_are_not_alike(void **state) {
    static const uint64_t blocks[] = {BLOCKS, BLOCKS + BLOCKS / 8, BLOCKS - BLOCKS / 8};
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct learning learning = refined_course();
        assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP);
        assert_int_equal(miss_blocks(&learning, blocks[i]), LEARN_COARSEN);
        learn_adopted(&learning, 71, true);
        for (unsigned k = 0; k < LEARN_WAIT; k++)
            assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP);
        for (unsigned k = 0; k < LEARN_PATIENCE_PROVEN; k++)
            assert_int_equal(miss_blocks(&learning, BLOCKS), LEARN_KEEP);
        assert_int_equal(record_coarse(&learning, 10, 71), LEARN_ADOPT);
        assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP);
        assert_true(learning.plan_coarse);
    }
}

/* That says nothing about small blocks. */
static void the_next_step_is_another_altogether(void **state) {
    struct learning learning = refined_course();
    assert_int_equal(miss_blocks(&learning, BLOCKS / 2), LEARN_KEEP);
    assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP);
    assert_true(learning.refining && !learning.plan_coarse);
}

static void a_finer_plan_that_has_proven_itself_stays(void **state) {
    struct learning learning = refined_course();
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP);
    assert_int_equal(miss_blocks(&learning, BLOCKS), LEARN_KEEP);
    assert_true(!learning.plan_coarse && !learning.refining && !learning.refined);
}

static void a_finer_plan_that_takes_pages_for_nothing(void **state) {
    struct learning learning = refined_course();
    struct learn_step step = served(1000, 0);
    step.blocks = BLOCKS;
    step.reserved_peak = 2 * PEAK;
    assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(pass(&learning, step), LEARN_COARSEN);
    assert_false(learning.suspended);
}

static void a_finer_plan_that_cannot_be_made_changes_nothing(void **state) {
    struct learning learning = coarse_course();
    assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_REFINE);
    learn_failed(&learning, LEARN_REFINE);
    assert_true(learning.planned && learning.plan_coarse && !learning.patience.fruitless);
    assert_int_equal(serve_blocks(&learning, BLOCKS, true), LEARN_KEEP);
}

/* ---- with a site ---- */

/* What programs do: the first steps are odd, and all others are the same. */
static void small_blocks_repeat_from_the_second_step_on(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    take_loose_step(site, 0, 8);
    take_loose_step(site, 0, 5);
    const struct course *course = &site->courses[0];
    assert_true(course->plan->coarse && course->finer);
    take_loose_step(site, 0, 5);
    assert_true(!course->plan->coarse && course->plan->confirmed && !course->finer);
    take_loose_step(site, 0, 5);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.hits, 2 + 7);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(stats.recorded_steps, 2);
    assert_int_equal(stats.plans, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The draft with small blocks is kept for one step only. */
static void small_blocks_never_repeat(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    const struct course *course = &site->courses[0];
    for (unsigned i = 0; i < 8; i++) {
        take_loose_step(site, 0, 3 + i % 4);
        assert_true((course->finer != NULL) == (i == 1));
    }
    assert_true(course->plan->coarse);
    assert_int_equal(site_stats(site).hits, 6 * 2);
    assert_int_equal(site_stats(site).plans, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Every fourth step has some more, now so many, now others: the coarse plan serves them all. */
static void small_blocks_repeat_most_of_the_time(void **state) {
    enum { STEPS = 200 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    const struct course *course = &site->courses[0];
    uint32_t chance = 1;
    for (unsigned i = 0; i < STEPS; i++) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        take_loose_step(site, 0, 64 + (i % 4 == 0 ? 2 + chance % 5 : 0));
        assert_true((course->coarser != NULL) == (i == 2 || i == 3));
    }
    assert_true(course->plan->coarse);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.recorded_steps, 2);
    assert_int_equal(stats.row_steps, 0);
    assert_in_range(stats.missed, 1, 64 + 8);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* For lack of memory, whatever of it could still be made. */
static void a_coarse_plan_that_cannot_be_made_leaves_nothing(void **state) {
    enum { ROOMS = 40, LOOSE = 600 };
    struct stage *stage = *state;
    for (unsigned room = 0; room < ROOMS; room++) {
        uint64_t learnt = pool_stats_of(plan_pool()).open_regions;
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        take_loose_step(site, 0, LOOSE);
        (void)ebb_pool_trim(plan_pool(), 0);
        size_t limit = pool_stats_of(plan_pool()).owned + room * PAGE;
        assert_int_equal(ebb_pool_set_reserved_limit(plan_pool(), limit), 0);
        for (unsigned i = 1; i < 4; i++)
            take_loose_step(site, 0, LOOSE + i);
        assert_int_equal(ebb_pool_set_reserved_limit(plan_pool(), 0), 0);
        assert_true(room + 1 < ROOMS || site->courses[0].plan->coarse);
        assert_int_equal(ebb_site_destroy(site), 0);
        assert_int_equal(pool_stats_of(plan_pool()).open_regions, learnt);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_small_blocks_two_records_will_do),
        cmocka_unit_test(small_blocks_do_not_keep_large_ones_from_a_plan),
        cmocka_unit_test(a_record_that_repeats_in_full_is_planned_in_full),
        cmocka_unit_test(of_too_many_blocks_the_large_ones_alone_are_planned),
        cmocka_unit_test(a_record_with_hardly_any_large_block_has_no_coarse_plan),
        cmocka_unit_test(a_new_record_like_the_coarse_plan_keeps_it),
        cmocka_unit_test(the_next_step_has_as_many_blocks),
        cmocka_unit_test(it_has_more_or_is_another),
        cmocka_unit_test(the_next_steps_are_not_alike),
        cmocka_unit_test(the_next_step_is_another_altogether),
        cmocka_unit_test(a_finer_plan_that_has_proven_itself_stays),
        cmocka_unit_test(a_finer_plan_that_takes_pages_for_nothing),
        cmocka_unit_test(a_finer_plan_that_cannot_be_made_changes_nothing),
        STAGED(small_blocks_repeat_from_the_second_step_on),
        STAGED(small_blocks_never_repeat),
        STAGED(small_blocks_repeat_most_of_the_time),
        STAGED(a_coarse_plan_that_cannot_be_made_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
