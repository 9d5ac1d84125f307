// SPDX-License-Identifier: Apache-2.0
/*
 * turns.c - structures that take turns under one tag, by chance or as epochs do: what is recorded
 * and planned of them, and when none of them is any more. What kinds of steps begin with, once it
 * is known which one comes.
 */
#include "kit/policy.h"

/* One of 0 to count - 1. */
static uint64_t draw(uint64_t count) {
    static uint64_t chance = 1;
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (chance >> 33) % count;
}

/* A step of this structure: all of it is served if the plan is one of that, and else nothing. */
static void take(struct learning *learning, uint64_t hash) {
    enum learn_mode mode = learn_next(learning);
    if (mode == LEARN_RECORD)
        record(learning, hash);
    else if (mode == LEARN_PLAIN)
        pass_plainly(learning, 1);
    else
        pass(learning, learning->plan_hash == hash ? served(1000, 0) : served(0, 1000));
}

/* How many of the steps are served by a plan, each of a structure that is drawn: the first of
 * `count`, or of `often` more. */
static unsigned count_served(struct learning *learning, unsigned steps, uint64_t count,
                             uint64_t often) {
    unsigned planned = 0;
    for (unsigned i = 0; i < steps; i++) {
        uint64_t drawn = draw(count + often);
        planned += learn_next(learning) == LEARN_SERVE;
        take(learning, 7 + (drawn < count ? drawn : 0));
    }
    return planned;
}

/* Two of the same come in a row now and then, and say nothing. */
static void one_plan_of_three_structures_that_are_drawn_is_not_kept(void **state) {
    enum { BEGIN = 1000, STEPS = 10000 };
    struct learning learning = planned_course();
    (void)state;
    count_served(&learning, BEGIN, 3, 0);
    assert_in_range(count_served(&learning, STEPS, 3, 0), 1, STEPS / 5);
}

static void a_plan_of_the_one_that_comes_most_is_kept(void **state) {
    enum { BEGIN = 1000, STEPS = 5000 };
    struct learning learning = planned_course();
    (void)state;
    count_served(&learning, BEGIN, 3, 6);
    assert_in_range(count_served(&learning, STEPS, 3, 6), STEPS / 10 * 9, STEPS);
}

static void a_plan_that_serves_nothing_ends_even_if_patience_would_last(void **state) {
    struct learning learning = planned_course();
    unsigned steps = 0;
    (void)state;
    learning.patience.steps = LEARN_PATIENCE_MOST;
    for (; !learning.suspended && steps < 100; steps++)
        take(&learning, 8);
    assert_in_range(steps, 16, 32);
    pass_plainly(&learning, LEARN_WAIT); /* what came meanwhile is found */
    assert_int_equal(record(&learning, 8), LEARN_NOTE);
    assert_int_equal(record(&learning, 8), LEARN_ADOPT);
    for (unsigned i = 0; i < 100; i++)
        take(&learning, 8);
    assert_true(!learning.suspended && learning.good == 100);
}

/* What is odd ends each time just when it is recorded, as where five steps evaluate. */
static void what_is_odd_for_a_while_in_each_epoch_is_recorded_once(void **state) {
    enum { TRAIN = 20, ODD = LEARN_PATIENCE_PROVEN + 1, EPOCHS = 50 };
    struct learning learning = planned_course();
    unsigned recorded = 0;
    (void)state;
    for (unsigned i = 0; i < EPOCHS * (TRAIN + ODD); i++) {
        recorded += learn_next(&learning) == LEARN_RECORD;
        take(&learning, i % (TRAIN + ODD) < TRAIN ? 7 : 8);
        assert_false(learning.suspended);
    }
    assert_int_equal(recorded, 2);
    while (learn_next(&learning) == LEARN_SERVE && recorded++ < 100)
        take(&learning, 8); /* for good */
    assert_int_equal(recorded - 2, 2 * LEARN_PATIENCE_PROVEN - ODD);
    record(&learning, 8);
    assert_int_equal(record(&learning, 8), LEARN_ADOPT);
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        take(&learning, 8);
    assert_int_equal(learning.patience.steps, LEARN_PATIENCE_PROVEN); /* of what it is not known */
}

/* However well those before it were served: it may be one in a row. */
static void after_each_bad_step_rows_are_looked_for(void **state) {
    struct learning learning = planned_course();
    for (int i = 0; i < 20; i++) {
        for (int good = 0; good < 9; good++)
            pass(&learning, served(1000, 0));
        assert_false(learn_does_badly(&learning));
        pass(&learning, served(899, 101));
        assert_true(learn_does_badly(&learning));
    }
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

static void of_steps_that_are_foretold_one_record_will_do(void **state) {
    struct learning learning;
    learn_start(&learning);
    learning.foretold = true;
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
    assert_true(learning.tried);
    struct learn_step dear = step_of(LEARN_RECORD);
    dear.slots = PEAK / LEARN_TRY_PART / LEARN_SLOT_BYTES + 1;
    learn_start(&learning);
    learning.foretold = true;
    assert_int_equal(pass(&learning, dear), LEARN_NOTE);
    assert_int_equal(pass(&learning, dear), LEARN_ADOPT);
    assert_false(learning.tried);
}

/* But for what was about to follow from the steps of others. */
static void a_kind_goes_on_with_what_was_learnt_of_it(void **state) {
    struct learning before = planned_course(), learning;
    for (unsigned i = 0; i < LEARN_WAIT; i++)
        pass(&before, served(1000, 0));
    for (unsigned i = 0; i < LEARN_PATIENCE_PROVEN; i++)
        pass(&before, served(10, 990));
    assert_int_equal(learn_next(&before), LEARN_RECORD);
    learn_share(&learning, &before);
    for (unsigned i = 1; i < LEARN_PATIENCE_PROVEN; i++)
        assert_int_equal(pass(&learning, served(10, 990)), LEARN_KEEP);
    assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    assert_true(!learning.suspended && learn_next(&learning) == LEARN_SERVE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_plan_of_three_structures_that_are_drawn_is_not_kept),
        cmocka_unit_test(a_plan_of_the_one_that_comes_most_is_kept),
        cmocka_unit_test(a_plan_that_serves_nothing_ends_even_if_patience_would_last),
        cmocka_unit_test(what_is_odd_for_a_while_in_each_epoch_is_recorded_once),
        cmocka_unit_test(after_each_bad_step_rows_are_looked_for),
        cmocka_unit_test(of_steps_that_are_foretold_one_record_will_do),
        cmocka_unit_test(a_kind_goes_on_with_what_was_learnt_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
