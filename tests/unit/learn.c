// SPDX-License-Identifier: Apache-2.0
/*
 * learn.c - the policy, driven with steps that never were: what is recorded, served, enlarged,
 * suspended and taken up again.
 */
#include "kit/policy.h"

static void the_third_step_is_served(void **state) {
    struct learning learning = planned_course();
    for (int i = 0; i < 100; i++)
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    assert_false(learning.suspended);
}

static void the_fourth_step_is_served_if_the_first_was_different(void **state) {
    struct learning learning;
    learn_start(&learning);
    assert_int_equal(record(&learning, 1), LEARN_NOTE);
    assert_int_equal(record(&learning, 2), LEARN_NOTE);
    assert_int_equal(record(&learning, 2), LEARN_ADOPT);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
    assert_true(learning.repeats && learning.plan_hash == 2);
    assert_int_equal(learning.patience.fruitless, 0);
}

static void the_fourth_step_is_served_even_if_all_were_different(void **state) {
    struct learning learning;
    learn_start(&learning);
    for (uint64_t hash = 1; hash < 3; hash++)
        assert_int_equal(record(&learning, hash), LEARN_NOTE);
    assert_int_equal(record(&learning, 3), LEARN_ADOPT);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
    assert_true(!learning.repeats && learning.plan_hash == 3);
    assert_int_equal(learning.patience.fruitless, 1); /* one plan that nothing speaks for */
}

static void a_larger_step_of_the_same_structure_enlarges_the_plan_at_once(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(100, 900);
    step.grown = step.complete = true;
    assert_int_equal(pass(&learning, step), LEARN_GROW);
    assert_int_equal(learning.bad, 0);
    step.taken_over = true;
    assert_int_equal(pass(&learning, step), LEARN_GROW);
    assert_true(learning.mean_ppm == LEARN_MILLION);
    assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
}

static void one_bad_step_changes_nothing(void **state) {
    struct learning learning = planned_course();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pass(&learning, served(800, 200)), LEARN_KEEP);
        assert_int_equal(pass(&learning, served(900, 100)), LEARN_KEEP);
    }
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

static void after_two_bad_steps_what_repeats_is_adopted(void **state) {
    struct learning learning = planned_course();
    assert_int_equal(pass(&learning, served(899, 101)), LEARN_KEEP);
    assert_int_equal(pass(&learning, served(899, 101)), LEARN_KEEP);
    assert_int_equal(record(&learning, 8), LEARN_NOTE);
    assert_int_equal(record(&learning, 8), LEARN_ADOPT);
    assert_true(learning.plan_hash == 8 && learning.mean_ppm == LEARN_MILLION);
    assert_int_equal(learning.patience.steps, LEARN_IN_A_ROW);
}

/* As where blocks survive by chance: there is nothing to be learnt. */
static void the_same_again_makes_patient(void **state) {
    struct learning learning = planned_course();
    for (uint32_t patience = LEARN_IN_A_ROW; patience < LEARN_PATIENCE_MOST; patience *= 2) {
        assert_int_equal(learning.patience.steps, patience);
        for (uint32_t i = 0; i < patience; i++)
            assert_int_equal(pass(&learning, served(800, 200)), LEARN_KEEP);
        learning.doubtful = !learning.doubtful;
        if (learning.doubtful)
            assert_int_equal(record(&learning, 7), LEARN_NOTE);
        assert_int_equal(record(&learning, 7), LEARN_ADOPT);
    }
    for (uint32_t i = 0; i < LEARN_PATIENCE_MOST; i++)
        assert_int_equal(pass(&learning, served(800, 200)), LEARN_KEEP);
    record(&learning, 8);
    assert_int_equal(record(&learning, 8), LEARN_ADOPT);
    assert_int_equal(learning.patience.steps, LEARN_IN_A_ROW);
}

static void after_two_bad_steps_a_record_like_the_plan_is_enough(void **state) {
    struct learning learning = planned_course();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pass(&learning, served(800, 200)), LEARN_KEEP);
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

/* However few bytes they are. */
static void after_two_steps_with_other_survivors_what_survives_is_recorded(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(9900, 100);
    step.tenured_bytes = 400;
    step.refused_bytes = 100;
    for (int i = 0; i < 10; i++)
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
    step.refused_bytes = 101;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
}

/* There will be fewer of them; what the step does is as it was. */
static void guests_that_were_turned_away_make_no_bad_step(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(600, 400);
    step.turned_away_bytes = 350;
    assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(pass(&learning, step), LEARN_FEWER);
    assert_int_equal(learning.bad, 0);
    learning = planned_course();
    step.turned_away_bytes = 300; /* 100 of 700 were missed otherwise */
    assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

static void survivors_in_the_arena_count_as_missed(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    step.escaped_bytes = 101;
    assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

/* Loops that are longer now and then, by a little. */
static void what_longer_loops_missed_adds_up(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(950, 50);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    step.keyed = step.longer = true;
    for (unsigned i = 0; i < LEARN_GROWTHS; i++) {
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
        assert_int_equal(record(&learning, 8 + i), LEARN_LONGER);
        assert_int_equal(learn_next(&learning), LEARN_SERVE);
    }
    for (unsigned i = 0; i < LEARN_OUTGROWN * 1000 / 50; i++) {
        assert_int_equal(learn_next(&learning), LEARN_SERVE);
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    }
    assert_int_equal(record(&learning, 20), LEARN_LONGER);
    assert_int_equal(learning.enlarging.outgrown, 0);
    assert_int_equal(learning.patience.fruitless, 0);
    assert_int_equal(learning.patience.steps, LEARN_PATIENCE_PROVEN);
}

/* As where all blocks have no bytes. */
static void a_loop_that_asked_the_plan_for_nothing_wants_no_longer_one(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(0, 0);
    step.keyed = step.longer = true;
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

/* Steps that are served to 60 per cent and never repeat are recorded more and more rarely. */
static void patience_grows_where_nothing_repeats(void **state) {
    struct learning learning = planned_course();
    unsigned recorded = 0;
    for (unsigned i = 0; i < 1000; i++) {
        if (learn_next(&learning) == LEARN_RECORD) {
            recorded++;
            record(&learning, 100 + i);
        } else {
            assert_int_equal(pass(&learning, served(600, 400)), LEARN_KEEP);
        }
    }
    assert_in_range(recorded, 10, 45);
    assert_int_equal(learning.patience.steps, LEARN_PATIENCE_MOST);
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    assert_int_equal(learning.patience.steps, LEARN_PATIENCE_PROVEN);
}

/* Between two epochs, say. The same steps in a row more than that are another phase. */
static void some_odd_steps_do_not_end_a_plan_that_has_proven_itself(void **state) {
    struct learning learning = planned_course();
    for (int epoch = 0; epoch < 5; epoch++) {
        for (unsigned i = 0; i < LEARN_WAIT; i++)
            assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
        for (unsigned i = 1; i < LEARN_PATIENCE_PROVEN; i++)
            assert_int_equal(pass(&learning, served(10, 990)), LEARN_KEEP);
    }
    assert_int_equal(pass(&learning, served(10, 990)), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

/* Steps with hardly any hits whose structure never comes again, until the course is suspended: how
 * many. */
static unsigned fail_until_suspended(struct learning *learning) {
    static uint64_t strange = 1000;
    unsigned steps = 0;
    while (!learning->suspended && steps++ < 1000) {
        if (learn_next(learning) == LEARN_RECORD)
            record(learning, strange++);
        else
            assert_int_equal(pass(learning, served(300, 700)), LEARN_KEEP);
    }
    assert_true(learning->suspended && !learning->planned);
    return steps;
}

static void hardly_any_hits_suspend(void **state) {
    struct learning learning = planned_course();
    unsigned a_try = LEARN_IN_A_ROW + 2;
    assert_int_equal(fail_until_suspended(&learning), (LEARN_TRIES + 1) * a_try + 1);
    pass_plainly(&learning, LEARN_WAIT);
    assert_int_equal(record(&learning, 1), LEARN_NOTE);
    assert_int_equal(record(&learning, 2), LEARN_KEEP);
    assert_true(learning.suspended);
    pass_plainly(&learning, 2 * LEARN_WAIT);
    assert_int_equal(record(&learning, 3), LEARN_NOTE);
    assert_int_equal(record(&learning, 3), LEARN_ADOPT);
    assert_false(learning.suspended);
    assert_true(learning.mean_ppm == LEARN_MILLION);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

static void records_on_both_sides_of_a_suspension_are_not_compared(void **state) {
    struct learning learning = planned_course();
    fail_until_suspended(&learning);
    pass_plainly(&learning, LEARN_WAIT);
    assert_int_equal(record(&learning, 7), LEARN_NOTE); /* as the plan was, but only once now */
    assert_int_equal(record(&learning, 9), LEARN_KEEP);
}

static void pages_for_nothing_suspend(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    step.reserved_peak = PEAK + PEAK / 4;
    for (int i = 0; i < 10; i++)
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_false(learning.suspended);
    step.reserved_peak = PEAK + PEAK / 2;
    pass(&learning, step);
    assert_false(learning.suspended); /* twice in a row, at least */
    pass(&learning, step);
    assert_true(learning.suspended);
}

/* The longest loop led the others, and does not come any more. Where that plan cannot be made
 * shorter two steps are recorded. */
static void plans_of_loops_that_were_longer_are_shortened_first(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    step.keyed = true;
    step.reserved_peak = 2 * PEAK;
    for (uint64_t hash = 10; hash < 10 + 2 * LEARN_TRIES; hash++) {
        for (unsigned i = 1; i < LEARN_IN_A_ROW; i++)
            assert_int_equal(pass(&learning, step), LEARN_KEEP);
        assert_int_equal(pass(&learning, step), LEARN_SHORTEN);
        learn_failed(&learning, LEARN_SHORTEN);
        assert_false(learning.suspended);
        assert_int_equal(record(&learning, hash), LEARN_NOTE);
        assert_int_equal(record(&learning, ++hash), LEARN_ADOPT);
    }
    for (unsigned i = 0; i < LEARN_IN_A_ROW; i++)
        pass(&learning, step);
    assert_true(learning.suspended);
}

/* Every other step does something else: the plan is good for the rest. */
static void pages_for_nothing_now_and_then_do_not_suspend(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    pass(&learning, served(1000, 0));
    for (int i = 0; i < 40; i++) {
        step.reserved_peak = i % 4 < 2 ? PEAK : PEAK + PEAK / 3;
        pass(&learning, step);
    }
    assert_false(learning.suspended);
}

static void a_small_step_may_have_some_pages_more(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    step.used_peak = step.live_peak = 10000;
    step.reserved_peak = 10000 + LEARN_SLACK_BYTES;
    for (int i = 0; i < 10; i++)
        pass(&learning, step);
    assert_false(learning.suspended);
}

/* Steps of many lengths, planned for the longest: each fourth is one, others need a quarter. */
static struct learning padded_course(bool alone) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    step.alone = alone;
    for (int i = 0; i < 40 && !learning.suspended; i++) {
        step.used_peak = step.live_peak = i % 4 ? PEAK / 4 : PEAK;
        pass(&learning, step);
    }
    return learning;
}

static void pages_that_longer_steps_need_are_there_anyway(void **state) {
    assert_false(padded_course(true).suspended);
    assert_true(padded_course(false).suspended); /* others could have them */
}

static void they_are_not_once_no_longer_step_comes(void **state) {
    struct learning learning = padded_course(true);
    struct learn_step step = served(1000, 0);
    int steps = 0;
    step.alone = true;
    step.used_peak = step.live_peak = PEAK / 4;
    while (!learning.suspended && steps++ < 1000)
        pass(&learning, step);
    assert_in_range(steps, LEARN_RECENT, 4 * LEARN_RECENT);
}

static void a_plan_that_takes_no_more_pages_than_best_fit_stays(void **state) {
    struct learning learning;
    struct learn_step step = step_of(LEARN_RECORD);
    step.reserved_peak = 2 * PEAK;
    learn_start(&learning);
    pass(&learning, step);
    pass(&learning, step);
    step = served(1000, 0);
    step.reserved_peak = 2 * PEAK - MIB;
    for (int i = 0; i < 10; i++)
        pass(&learning, step);
    assert_false(learning.suspended);
}

static void each_suspension_lasts_longer_than_the_one_before(void **state) {
    struct learning learning = planned_course();
    unsigned wait = LEARN_WAIT;
    for (int round = 0; round < 9; round++) {
        fail_until_suspended(&learning);
        pass_plainly(&learning, wait);
        record(&learning, 5);
        assert_int_equal(record(&learning, 5), LEARN_ADOPT);
        wait = wait * 2 > LEARN_WAIT_MOST ? LEARN_WAIT_MOST : wait * 2;
    }
    assert_int_equal(wait, LEARN_WAIT_MOST);
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        pass(&learning, served(1000, 0));
    fail_until_suspended(&learning);
    pass_plainly(&learning, LEARN_WAIT);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

/* Steps that never repeat are recorded ever more rarely, and what repeats again is still found. */
static void each_look_in_vain_doubles_the_wait(void **state) {
    struct learning learning = planned_course();
    uint64_t hash = 100;
    fail_until_suspended(&learning);
    for (unsigned wait = LEARN_WAIT; wait <= LEARN_WAIT_MOST; wait *= 2) {
        pass_plainly(&learning, wait);
        assert_int_equal(record(&learning, hash++), LEARN_NOTE);
        assert_int_equal(record(&learning, hash++), LEARN_KEEP);
        assert_true(learning.suspended);
    }
    pass_plainly(&learning, LEARN_WAIT_MOST);
    record(&learning, 5);
    assert_int_equal(record(&learning, 5), LEARN_ADOPT);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

/* They are loops of other numbers of trips, of which one has a key that the other has not. */
static void records_with_most_keys_in_common_end_a_suspension(void **state) {
    for (unsigned alike = 0; alike < 2; alike++) {
        struct learning learning = planned_course();
        struct learn_step step = step_of(LEARN_RECORD);
        fail_until_suspended(&learning);
        pass_plainly(&learning, LEARN_WAIT);
        step.hash = 100;
        step.keys = 0x17;
        assert_int_equal(pass(&learning, step), LEARN_NOTE);
        step.hash = 101;
        step.keys = alike ? 0x7 : 0x71;
        assert_int_equal(pass(&learning, step), alike ? LEARN_ADOPT : LEARN_KEEP);
    }
}

/* Lanes of several threads: more steps than two had begun to be recorded when the look was over. */
static void steps_recorded_at_once_are_one_look(void **state) {
    struct learning learning = planned_course();
    uint64_t hash = 100;
    fail_until_suspended(&learning);
    pass_plainly(&learning, LEARN_WAIT);
    for (int lane = 0; lane < 4; lane++)
        assert_int_equal(learn_next(&learning), LEARN_RECORD);
    for (int lane = 0; lane < 4; lane++) {
        struct learn_step step = step_of(LEARN_RECORD);
        step.hash = hash++;
        learn_judge(&learning, &step, false);
    }
    assert_int_equal(learning.wait, 2 * LEARN_WAIT);
}

/* Patience is what a plan has earned; the next one has not. */
static void a_new_plan_has_to_prove_itself(void **state) {
    struct learning learning = planned_course();
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    for (unsigned i = 0; i < LEARN_PATIENCE_PROVEN; i++)
        assert_int_equal(pass(&learning, served(10, 990)), LEARN_KEEP);
    assert_int_equal(record(&learning, 8), LEARN_NOTE);
    assert_int_equal(record(&learning, 8), LEARN_ADOPT);
    for (unsigned i = 0; i < LEARN_IN_A_ROW; i++)
        assert_int_equal(pass(&learning, served(10, 990)), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

static void wrong_guesses_about_survivors_raise_doubt(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(1000, 0);
    step.tenured_bytes = 400;
    step.wrong_bytes = 100;
    for (int i = 0; i < 10; i++)
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    step.wrong_bytes = 101;
    pass(&learning, step);
    assert_false(learning.doubtful);
    pass(&learning, step);
    assert_true(learning.doubtful);
    assert_int_equal(record(&learning, 7), LEARN_NOTE); /* one more, to be sure */
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
}

/* 15 good steps leave the doubt, the 16th asks for one more record, and that is like the plan. */
static void doubt_is_dropped_once_where_steps_go_well(void **state) {
    struct learning learning = planned_course();
    struct learn_step wrong = served(1000, 0);
    wrong.tenured_bytes = wrong.wrong_bytes = 100;
    for (int round = 0; round < 3; round++) {
        unsigned steps = round < 2 ? LEARN_IN_A_ROW : LEARN_PATIENCE_PROVEN;
        for (unsigned i = 0; i < steps; i++)
            assert_int_equal(pass(&learning, wrong), LEARN_KEEP);
        assert_true(learning.doubtful);
        assert_int_equal(record(&learning, 7), LEARN_NOTE);
        assert_int_equal(record(&learning, 7), LEARN_ADOPT);
        for (unsigned i = 1; i < LEARN_WAIT; i++)
            assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
        assert_true(learning.doubtful);
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
        if (round == 0)
            assert_int_equal(record(&learning, 7), LEARN_ADOPT);
        assert_int_equal(learning.doubtful, round > 0);
        assert_int_equal(learn_next(&learning), LEARN_SERVE);
    }
}

/* Steps that are served well but differ a little: two such records do not end their plan. */
static void dropping_doubt_costs_no_plan_that_serves_well(void **state) {
    struct learning learning = planned_course();
    struct learn_step wrong = served(1000, 0);
    wrong.tenured_bytes = wrong.wrong_bytes = 100;
    for (unsigned i = 0; i < LEARN_IN_A_ROW; i++)
        assert_int_equal(pass(&learning, wrong), LEARN_KEEP);
    assert_int_equal(record(&learning, 7), LEARN_NOTE);
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        assert_int_equal(pass(&learning, served(950, 50)), LEARN_KEEP);
    record(&learning, 8);
    record(&learning, 9);
    assert_true(learning.plan_hash == 7);
}

static void heights_are_measured_against_recent_peaks(void **state) {
    struct learning learning = planned_course();
    struct learn_step small = served(1000, 0);
    assert_true(peaks_height_most(&learning.peaks) == PEAK + PEAK / 4 + LEARN_SLACK_BYTES);
    small.used_peak = small.live_peak = small.reserved_peak = MIB;
    for (unsigned i = 0; i < 2 * LEARN_RECENT; i++)
        pass(&learning, small);
    assert_true(peaks_height_most(&learning.peaks) == MIB + MIB / 4 + LEARN_SLACK_BYTES);
}

static void while_a_plan_is_made_nothing_else_is_decided(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = served(0, 1000);
    for (int i = 0; i < 10; i++)
        assert_int_equal(learn_judge(&learning, &step, true), LEARN_KEEP);
    assert_false(learning.suspended);
    assert_true(learning.mean_ppm == LEARN_MILLION);
}

static void steps_that_began_before_a_change_decide_nothing(void **state) {
    struct learning learning = planned_course();
    struct learn_step old = served(0, 1000);
    fail_until_suspended(&learning);
    assert_int_equal(learn_judge(&learning, &old, false), LEARN_KEEP);
    assert_int_equal(learning.wait, LEARN_WAIT);
}

static void without_memory_for_a_plan_it_is_tried_again_later(void **state) {
    struct learning learning;
    learn_start(&learning);
    record(&learning, 7);
    struct learn_step step = step_of(LEARN_RECORD);
    assert_int_equal(learn_judge(&learning, &step, false), LEARN_ADOPT);
    learn_failed(&learning, LEARN_ADOPT);
    pass_plainly(&learning, LEARN_WAIT);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

static void steps_that_could_not_be_recorded_are_recorded_later(void **state) {
    struct learning learning;
    struct learn_step step = step_of(LEARN_PLAIN);
    learn_start(&learning);
    for (int i = 0; i < 40; i++)
        assert_int_equal(learn_judge(&learning, &step, false), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
    assert_int_equal(learning.to_record, LEARN_FIRST);
}

/* Steps that badly fit a plan, and whose records come to nothing, as they are too long. */
static void steps_whose_records_are_lost_are_recorded_ever_more_rarely(void **state) {
    struct learning learning = planned_course();
    struct learn_step step = step_of(LEARN_PLAIN);
    unsigned recorded = 0;
    step.lost = true;
    for (int i = 0; i < 1000; i++) {
        bool records = learn_next(&learning) == LEARN_RECORD;
        recorded += records;
        assert_int_equal(records ? learn_judge(&learning, &step, false)
                                 : pass(&learning, served(800, 200)), LEARN_KEEP);
    }
    assert_int_equal(learning.patience.steps, LEARN_PATIENCE_MOST);
    assert_in_range(recorded, 8, 64);
}

static void a_course_that_inherits_is_served_at_once_and_then_fitted(void **state) {
    struct learning learning;
    learn_start(&learning);
    learn_inherit(&learning, 7, false);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
    struct learn_step step = served(1000, 0);
    assert_int_equal(learn_judge(&learning, &step, false), LEARN_FIT);
    learn_adopted(&learning, 7, false);
    assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
}

static void a_course_that_inherits_what_does_not_fit_is_recorded(void **state) {
    struct learning learning;
    learn_start(&learning);
    learn_inherit(&learning, 7, false);
    struct learn_step step = served(500, 500);
    assert_int_equal(learn_judge(&learning, &step, false), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_course_that_inherits_is_served_at_once_and_then_fitted),
        cmocka_unit_test(a_course_that_inherits_what_does_not_fit_is_recorded),
        cmocka_unit_test(the_third_step_is_served),
        cmocka_unit_test(the_fourth_step_is_served_if_the_first_was_different),
        cmocka_unit_test(the_fourth_step_is_served_even_if_all_were_different),
        cmocka_unit_test(a_larger_step_of_the_same_structure_enlarges_the_plan_at_once),
        cmocka_unit_test(one_bad_step_changes_nothing),
        cmocka_unit_test(after_two_bad_steps_what_repeats_is_adopted),
        cmocka_unit_test(the_same_again_makes_patient),
        cmocka_unit_test(after_two_bad_steps_a_record_like_the_plan_is_enough),
        cmocka_unit_test(after_two_steps_with_other_survivors_what_survives_is_recorded),
        cmocka_unit_test(guests_that_were_turned_away_make_no_bad_step),
        cmocka_unit_test(survivors_in_the_arena_count_as_missed),
        cmocka_unit_test(what_longer_loops_missed_adds_up),
        cmocka_unit_test(a_loop_that_asked_the_plan_for_nothing_wants_no_longer_one),
        cmocka_unit_test(patience_grows_where_nothing_repeats),
        cmocka_unit_test(some_odd_steps_do_not_end_a_plan_that_has_proven_itself),
        cmocka_unit_test(hardly_any_hits_suspend),
        cmocka_unit_test(records_on_both_sides_of_a_suspension_are_not_compared),
        cmocka_unit_test(pages_for_nothing_suspend),
        cmocka_unit_test(plans_of_loops_that_were_longer_are_shortened_first),
        cmocka_unit_test(pages_for_nothing_now_and_then_do_not_suspend),
        cmocka_unit_test(a_small_step_may_have_some_pages_more),
        cmocka_unit_test(pages_that_longer_steps_need_are_there_anyway),
        cmocka_unit_test(they_are_not_once_no_longer_step_comes),
        cmocka_unit_test(a_plan_that_takes_no_more_pages_than_best_fit_stays),
        cmocka_unit_test(each_suspension_lasts_longer_than_the_one_before),
        cmocka_unit_test(each_look_in_vain_doubles_the_wait),
        cmocka_unit_test(records_with_most_keys_in_common_end_a_suspension),
        cmocka_unit_test(steps_recorded_at_once_are_one_look),
        cmocka_unit_test(a_new_plan_has_to_prove_itself),
        cmocka_unit_test(wrong_guesses_about_survivors_raise_doubt),
        cmocka_unit_test(doubt_is_dropped_once_where_steps_go_well),
        cmocka_unit_test(dropping_doubt_costs_no_plan_that_serves_well),
        cmocka_unit_test(heights_are_measured_against_recent_peaks),
        cmocka_unit_test(while_a_plan_is_made_nothing_else_is_decided),
        cmocka_unit_test(steps_that_began_before_a_change_decide_nothing),
        cmocka_unit_test(without_memory_for_a_plan_it_is_tried_again_later),
        cmocka_unit_test(steps_that_could_not_be_recorded_are_recorded_later),
        cmocka_unit_test(steps_whose_records_are_lost_are_recorded_ever_more_rarely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
