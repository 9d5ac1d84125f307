// SPDX-License-Identifier: Apache-2.0
/* growth.c - when a plan is enlarged: at once where all blocks follow one length, ever more seldom
 * where each varies for itself. */
#include "kit/policy.h"

/* How many of the next steps enlarge the plan, each of which has some blocks larger than ever. */
static unsigned count_growths(struct learning *learning, unsigned steps) {
    unsigned growths = 0;
    struct learn_step step = served(990, 10);
    step.grown = step.complete = true;
    for (unsigned i = 0; i < steps; i++)
        growths += pass(learning, step) == LEARN_GROW;
    return growths;
}

static void sizes_that_vary_for_themselves_enlarge_the_plan_ever_more_seldom(void **state) {
    struct learning learning = planned_course();
    assert_int_equal(count_growths(&learning, LEARN_GROWTHS), LEARN_GROWTHS);
    assert_int_equal(count_growths(&learning, 1), 1); /* then after 1, 2, 4, 8 others */
    assert_int_equal(count_growths(&learning, 2 + 3 + 5 + 9), 4);
    assert_true(count_growths(&learning, 2000) <= 12);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
    assert_true(learning.growth_wait_next <= LEARN_GROWTH_WAIT_MOST);
}

/* As with padded lengths: a new longest one is rare after the first few. */
static void steps_that_fit_between_let_the_next_growth_come_at_once(void **state) {
    struct learning learning = planned_course();
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(count_growths(&learning, 1), 1);
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    }
    assert_true(count_growths(&learning, 40) < 12); /* and now it waits */
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(pass(&learning, served(1000, 0)), LEARN_KEEP);
    assert_int_equal(count_growths(&learning, LEARN_GROWTHS), LEARN_GROWTHS);
}

/* A course whose plan waits to be enlarged, and is dropped for new records meanwhile. */
static struct learning course_that_records_again(void) {
    struct learning learning = planned_course();
    count_growths(&learning, 20);
    struct learn_step step = served(100, 900);
    step.grown = step.complete = true;
    for (unsigned i = 0; i < 16 && learn_next(&learning) == LEARN_SERVE; i++)
        pass(&learning, step);
    return learning;
}

static void while_a_growth_waits_bad_steps_count(void **state) {
    struct learning learning = course_that_records_again();
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

static void a_plan_of_another_structure_grows_at_once_again(void **state) {
    struct learning learning = course_that_records_again();
    record(&learning, 8);
    assert_int_equal(record(&learning, 8), LEARN_ADOPT);
    assert_int_equal(count_growths(&learning, LEARN_GROWTHS), LEARN_GROWTHS);
    learning = course_that_records_again();
    record(&learning, 7);
    assert_int_equal(learn_next(&learning), LEARN_SERVE); /* like the plan: that goes on */
    assert_true(count_growths(&learning, LEARN_GROWTHS) < LEARN_GROWTHS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_vary_for_themselves_enlarge_the_plan_ever_more_seldom),
        cmocka_unit_test(steps_that_fit_between_let_the_next_growth_come_at_once),
        cmocka_unit_test(while_a_growth_waits_bad_steps_count),
        cmocka_unit_test(a_plan_of_another_structure_grows_at_once_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
