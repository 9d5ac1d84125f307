// SPDX-License-Identifier: Apache-2.0
/*
 * tries.c - plans of records that nothing was like: how many of them there are, and how soon one is
 * given up again.
 */
#include "kit/policy.h"

static void warming_up_may_take_some_records(void **state) {
    struct learning learning;
    learn_start(&learning);
    record(&learning, 100);
    for (uint64_t hash = 1; hash <= 5; hash += 2) { /* seven steps, none like another */
        record(&learning, hash);
        assert_int_equal(record(&learning, hash + 1), LEARN_ADOPT);
        for (unsigned i = 0; hash < 5 && i < LEARN_IN_A_ROW; i++)
            assert_int_equal(pass(&learning, served(300, 700)), LEARN_KEEP);
    }
    assert_false(learning.suspended);
    assert_int_equal(learning.fruitless, 3);
    assert_int_equal(learn_next(&learning), LEARN_SERVE);
}

/* A course with a plan of the last of three records, none like another. */
static struct learning tried_course(void) {
    struct learning learning;
    learn_start(&learning);
    assert_int_equal(record(&learning, 1), LEARN_NOTE);
    assert_int_equal(record(&learning, 2), LEARN_NOTE);
    assert_int_equal(record(&learning, 3), LEARN_ADOPT);
    return learning;
}

static void serve_nothing(struct learning *learning, unsigned steps) {
    for (unsigned i = 0; i < steps; i++)
        assert_int_equal(pass(learning, served(200, 800)), LEARN_KEEP);
}

/* The program was warming up, and repeats from then on. */
static void a_try_that_serves_nothing_is_given_up_for_a_short_while(void **state) {
    struct learning learning = tried_course();
    serve_nothing(&learning, LEARN_IN_A_ROW);
    assert_true(learning.suspended);
    pass_plainly(&learning, LEARN_PAUSE);
    assert_int_equal(record(&learning, 7), LEARN_NOTE);
    assert_int_equal(record(&learning, 7), LEARN_ADOPT);
    assert_false(learning.suspended);
    serve_nothing(&learning, LEARN_IN_A_ROW); /* this one has been seen twice */
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

/* After the looks of a program that is warming up comes one more try, and then none. */
static void where_nothing_repeats_there_are_two_tries(void **state) {
    struct learning learning = tried_course();
    uint64_t hash = 100;
    serve_nothing(&learning, LEARN_IN_A_ROW);
    for (unsigned wait = LEARN_PAUSE; wait < LEARN_WAIT; wait *= 2) {
        pass_plainly(&learning, wait);
        assert_int_equal(record(&learning, hash++), LEARN_NOTE);
        assert_int_equal(record(&learning, hash++), LEARN_KEEP);
    }
    pass_plainly(&learning, LEARN_WAIT);
    assert_int_equal(record(&learning, hash++), LEARN_NOTE);
    assert_int_equal(record(&learning, hash++), LEARN_ADOPT);
    serve_nothing(&learning, LEARN_IN_A_ROW);
    for (unsigned wait = 2 * LEARN_WAIT; wait <= LEARN_WAIT_MOST; wait *= 2) {
        pass_plainly(&learning, wait);
        assert_int_equal(record(&learning, hash++), LEARN_NOTE);
        assert_int_equal(record(&learning, hash++), LEARN_KEEP);
    }
}

static void a_try_that_serves_something_is_not_given_up_that_soon(void **state) {
    struct learning odd = tried_course(), larger = tried_course();
    serve_nothing(&odd, 1);
    assert_int_equal(pass(&odd, served(1000, 0)), LEARN_KEEP);
    serve_nothing(&odd, 1);
    assert_false(odd.suspended);
    struct learn_step step = served(0, 1000);
    step.complete = step.grown = true;
    assert_int_equal(pass(&larger, step), LEARN_GROW);
    assert_int_equal(pass(&larger, served(1000, 0)), LEARN_KEEP);
    assert_int_equal(pass(&larger, served(1000, 0)), LEARN_KEEP);
    serve_nothing(&larger, LEARN_IN_A_ROW); /* it has served two steps, so it is more than a try */
    assert_int_equal(learn_next(&larger), LEARN_RECORD);
}

/* Who gives keys knows where they are: what is larger than all before is recorded at once. */
static void a_try_with_keys_is_recorded_again(void **state) {
    struct learning learning = tried_course();
    struct learn_step step = served(0, 1000);
    step.keyed = true;
    for (unsigned i = 0; i < LEARN_IN_A_ROW; i++)
        assert_int_equal(pass(&learning, step), LEARN_KEEP);
    assert_int_equal(learn_next(&learning), LEARN_RECORD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warming_up_may_take_some_records),
        cmocka_unit_test(a_try_that_serves_nothing_is_given_up_for_a_short_while),
        cmocka_unit_test(where_nothing_repeats_there_are_two_tries),
        cmocka_unit_test(a_try_that_serves_something_is_not_given_up_that_soon),
        cmocka_unit_test(a_try_with_keys_is_recorded_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
