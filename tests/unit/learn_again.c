// SPDX-License-Identifier: Apache-2.0
/*
 * learn_again.c - the policy, driven with steps that never were: what was in the way for a while is
 * not for ever, and who looks changes nothing else.
 */
#include "kit/policy.h"

/* Until then as many good steps as the last time, and as many again. */
static void guests_are_tried_again_after_a_while(void **state) {
    struct learning learning = planned_course();
    struct learn_step crowded = served(600, 400);
    crowded.turned_away_bytes = 400;
    for (unsigned wait = LEARN_WAIT; wait <= 8 * LEARN_WAIT; wait *= 2) {
        assert_int_equal(pass(&learning, crowded), LEARN_KEEP);
        assert_int_equal(pass(&learning, crowded), LEARN_FEWER);
        assert_int_equal(learning.guests_most, 0);
        for (unsigned i = 1; i < wait; i++)
            assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_MORE);
        assert_true(learning.guests_most == UINT64_MAX);
    }
    crowded.newcomer = true;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(pass(&learning, crowded), LEARN_KEEP);
}

/* As where two odd steps end each epoch of a training. */
static void guests_that_did_well_in_between_are_tried_again_as_soon(void **state) {
    struct learning learning = planned_course();
    struct learn_step crowded = served(600, 400);
    crowded.turned_away_bytes = 400;
    for (unsigned epoch = 0; epoch < 20; epoch++) {
        assert_int_equal(pass(&learning, crowded), LEARN_KEEP);
        assert_int_equal(pass(&learning, crowded), LEARN_FEWER);
        for (unsigned i = 1; i < LEARN_WAIT; i++)
            assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_MORE);
        for (unsigned i = 0; i < 1000; i++)
            assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    }
}

/* They go one after the other, and it is one wait: nothing was tried in between. */
static void guests_that_go_by_and_by_are_tried_again_as_soon(void **state) {
    struct learning learning = planned_course();
    for (unsigned left = 800; left >= 100; left /= 2) {
        struct learn_step crowded = served(1000, left + 1);
        crowded.guest_bytes = left;
        crowded.turned_away_bytes = left + 1;
        assert_int_equal(pass(&learning, crowded), LEARN_KEEP);
        assert_int_equal(pass(&learning, crowded), LEARN_FEWER);
        assert_int_equal(learning.guests_most, left);
    }
    unsigned steps = 1;
    while (pass(&learning, served(1000, 0)) != LEARN_MORE)
        steps++;
    assert_true(steps <= LEARN_WAIT);
}

/* The present plan goes on, and has the fewer ones. */
static void a_plan_with_more_guests_that_failed_is_tried_again(void **state) {
    struct learning learning = planned_course();
    struct learn_step crowded = served(600, 400);
    crowded.turned_away_bytes = 400;
    assert_int_equal(pass(&learning, crowded), LEARN_KEEP);
    assert_int_equal(pass(&learning, crowded), LEARN_FEWER);
    for (unsigned wait = LEARN_WAIT; wait <= 8 * LEARN_WAIT; wait *= 2) {
        for (unsigned i = 1; i < wait; i++)
            assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_MORE);
        learn_failed(&learning, LEARN_MORE);
    }
}

/* For what is missed it is worth a look now and then, and the more seldom. */
static void a_growth_that_failed_is_tried_again_after_a_while(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(950, 50);
    step.grown = step.complete = true;
    for (unsigned wait = LEARN_WAIT; wait <= 32 * LEARN_WAIT; wait *= 2) {
        assert_int_equal(learn_judge(&learning, &step, false), LEARN_GROW);
        learn_failed(&learning, LEARN_GROW);
        for (unsigned i = 0; i < wait; i++)
            assert_int_equal(pass(&learning, step), LEARN_KEEP);
    }
    assert_int_equal(learn_judge(&learning, &step, false), LEARN_GROW);
    learn_failed(&learning, LEARN_GROW);
    learn_adopted(&learning, 7, false);
    assert_int_equal(pass(&learning, step), LEARN_GROW);
    learn_grew(&learning);
    assert_int_equal(learning.enlarging.pause.next, LEARN_WAIT);
}

/* They say that another plan is wanted, and not a larger one. */
static void bad_steps_bring_no_growth_that_failed_nearer(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(500, 500);
    step.grown = step.complete = true;
    assert_int_equal(learn_judge(&learning, &step, false), LEARN_GROW);
    learn_failed(&learning, LEARN_GROW);
    learning.patience.steps = LEARN_PATIENCE_MOST;
    for (unsigned i = 0; i < 2 * LEARN_WAIT; i++)
        assert_int_not_equal(learn_judge(&learning, &step, false), LEARN_GROW);
    assert_int_equal(learning.enlarging.pause.left, LEARN_WAIT);
}

/* What came with the record says nothing against the plan, whatever it is like. */
static void looks_for_longer_loops_change_nothing_else(void **state) {
    struct learning learning = planned_course();
    struct learn_step longer = served(950, 50);
    longer.keyed = longer.longer = true;
    const struct learning before = learning;
    struct learn_step same = step_of(LEARN_RECORD), huge = same, small = same;
    same.hash = 7;
    huge.hash = small.hash = 8;
    huge.slots = huge.coarse_blocks = 1 << 20; /* a plan would hold more than the step */
    small.coarse_hash = 9;
    assert_int_equal(pass(&learning, longer), LEARN_KEEP);
    assert_int_equal(pass(&learning, same), LEARN_LONGER);
    assert_int_equal(pass(&learning, longer), LEARN_KEEP);
    assert_int_equal(pass(&learning, huge), LEARN_KEEP);
    assert_true(learning.patience.steps == before.patience.steps);
    assert_true(!learning.patience.fruitless && !learning.noted);
    assert_int_equal(pass(&learning, longer), LEARN_KEEP);
    assert_int_equal(pass(&learning, small), LEARN_LONGER);
    assert_false(learning.coarse);
    learning.plan_coarse = true;
    assert_int_equal(pass(&learning, longer), LEARN_KEEP);
    assert_int_equal(pass(&learning, small), LEARN_LONGER);
    assert_true(learning.coarse && learn_next(&learning) == LEARN_SERVE);
}

/* What makes longer loops may have nothing longer to show: looks wait for twice as much each time,
 * until a plan is made. */
static void looks_in_vain_become_rare(void **state) {
    struct learning learning = planned_course();
    struct learn_step longer = served(950, 50), other = step_of(LEARN_RECORD);
    longer.keyed = longer.longer = true;
    for (unsigned round = 0; round < 20; round++) {
        unsigned doubled = round < 4 ? 0 : round < 8 ? round - 3 : LEARN_VAIN_MOST;
        unsigned wait = round < LEARN_GROWTHS ? 1 : (LEARN_OUTGROWN * 1000 / 50) << doubled;
        for (unsigned i = 0; i < wait; i++) {
            assert_int_equal(learn_next(&learning), LEARN_SERVE);
            assert_int_equal(pass(&learning, longer), LEARN_KEEP);
        }
        other.hash = 100 + round;
        assert_int_equal(pass(&learning, other), LEARN_LONGER);
        learn_failed(&learning, LEARN_LONGER);
    }
    learn_adopted(&learning, 99, false);
    for (unsigned i = 0; i < LEARN_OUTGROWN * 1000 / 50; i++)
        assert_int_equal(pass(&learning, longer), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

/* Nor does one that was broken off. That may happen each time, so the next look waits. */
static void a_look_whose_record_is_lost_changes_nothing_else(void **state) {
    struct learning learning = planned_course();
    struct learn_step longer = served(950, 50), lost = step_of(LEARN_PLAIN);
    longer.keyed = longer.longer = lost.lost = true;
    const struct learning before = learning;
    for (unsigned round = 0; round < 10; round++) {
        unsigned wait = round ? LEARN_OUTGROWN * 1000 / 50 : 1;
        for (unsigned i = 0; i < wait; i++)
            assert_int_equal(pass(&learning, longer), LEARN_KEEP);
        assert_int_equal(learn_next(&learning), LEARN_RECORD);
        assert_int_equal(learn_judge(&learning, &lost, false), LEARN_KEEP);
        assert_int_equal(learn_next(&learning), LEARN_SERVE);
    }
    assert_true(!learning.patience.fruitless && !learning.patience.unproven && !learning.looking);
    assert_int_equal(learning.patience.steps, LEARN_PATIENCE_PROVEN);
    assert_int_equal(before.patience.steps, LEARN_IN_A_ROW);
}

/* One step was odd, so survivors were doubted; after good ones two are to be recorded. */
static struct learning pardoned_course(void) {
    struct learning learning = planned_course();
    struct learn_step wrong = served(1000, 0);
    wrong.tenured_bytes = wrong.wrong_bytes = 100;
    for (unsigned i = 0; i < LEARN_IN_A_ROW; i++)
        assert_int_equal(pass(&learning, wrong), LEARN_KEEP);
    assert_int_equal(record(&learning, 7), LEARN_NOTE);
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    return learning;
}

static void a_record_that_is_lost_where_doubt_was_dropped_changes_nothing_else(void **state) {
    struct learning learning = pardoned_course();
    struct learn_step lost = step_of(LEARN_PLAIN);
    lost.lost = true;
    uint32_t fruitless = learning.patience.fruitless, unproven = learning.patience.unproven;
    assert_int_equal(record(&learning, 8), LEARN_NOTE);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
    assert_int_equal(learn_judge(&learning, &lost, false), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
    assert_true(learning.patience.fruitless == fruitless && learning.patience.unproven == unproven);
    assert_false(learning.noted);
}

/* Records that were to drop doubt did not repeat, and then there were no pages for the plan. What
 * is recorded after that is for another plan, as ever: loops that are alike make one. */
static void a_plan_that_is_given_up_is_pardoned_no_more(void **state) {
    struct learning learning = pardoned_course();
    struct learn_step unserved = step_of(LEARN_PLAIN);
    struct learn_step loop = step_of(LEARN_RECORD);
    (void)state;
    unserved.unserved = true;
    loop.keys = 0xff;
    assert_int_equal(record(&learning, 8), LEARN_NOTE);
    assert_int_equal(record(&learning, 9), LEARN_KEEP);
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        assert_int_equal(learn_judge(&learning, &unserved, false), LEARN_KEEP);
    assert_true(learning.suspended);
    pass_plainly(&learning, LEARN_WAIT);
    loop.hash = 10;
    assert_int_equal(pass(&learning, loop), LEARN_NOTE);
    loop.hash = 11;
    assert_int_equal(pass(&learning, loop), LEARN_ADOPT);
}

/* Before any step of its own was recorded. */
static void a_plan_that_is_another_ones_is_looked_at_like_any_other(void **state) {
    struct learning learning;
    learn_start(&learning);
    learn_inherit(&learning, 7, false);
    struct learn_step longer = served(950, 50), step = step_of(LEARN_RECORD);
    longer.keyed = longer.longer = true;
    assert_int_equal(pass(&learning, served(1000, 0)), LEARN_FIT);
    assert_int_equal(pass(&learning, longer), LEARN_KEEP);
    assert_int_equal(pass(&learning, step), LEARN_LONGER);
    assert_false(learning.noted);
}

/* Loops may get shorter for as long as there are steps. */
static void a_plan_that_is_proven_may_be_shortened_as_often_again(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    step.keyed = true;
    for (unsigned plan = 0; plan < 3 * LEARN_TRIES; plan++) {
        step.reserved_peak = PEAK;
        for (unsigned i = 0; i < LEARN_WAIT; i++)
            assert_int_equal(pass(&learning, step), LEARN_KEEP);
        step.reserved_peak = 2 * PEAK;
        for (unsigned i = 1; i < LEARN_IN_A_ROW; i++)
            assert_int_equal(pass(&learning, step), LEARN_KEEP);
        assert_int_equal(pass(&learning, step), LEARN_SHORTEN);
        learn_adopted(&learning, learning.plan_hash, false);
    }
    assert_false(learning.suspended);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_growth_that_failed_is_tried_again_after_a_while),
        cmocka_unit_test(bad_steps_bring_no_growth_that_failed_nearer),
        cmocka_unit_test(guests_are_tried_again_after_a_while),
        cmocka_unit_test(guests_that_did_well_in_between_are_tried_again_as_soon),
        cmocka_unit_test(guests_that_go_by_and_by_are_tried_again_as_soon),
        cmocka_unit_test(a_plan_with_more_guests_that_failed_is_tried_again),
        cmocka_unit_test(looks_for_longer_loops_change_nothing_else),
        cmocka_unit_test(looks_in_vain_become_rare),
        cmocka_unit_test(a_look_whose_record_is_lost_changes_nothing_else),
        cmocka_unit_test(a_record_that_is_lost_where_doubt_was_dropped_changes_nothing_else),
        cmocka_unit_test(a_plan_that_is_given_up_is_pardoned_no_more),
        cmocka_unit_test(a_plan_that_is_another_ones_is_looked_at_like_any_other),
        cmocka_unit_test(a_plan_that_is_proven_may_be_shortened_as_often_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
