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
    assert_int_equal(learning.patience.fruitless, 3);
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

/* The second try is the last, also if it serves more than nothing but too little, or if no plan can
 * be made of it. */
static void what_the_second_try_serves_makes_no_third_one(void **state) {
    for (int can_be_made = 0; can_be_made < 2; can_be_made++) {
        struct learning learning = tried_course();
        uint64_t hash = 100;
        unsigned recorded = 0, served_steps = 0;
        serve_nothing(&learning, LEARN_IN_A_ROW);
        for (unsigned i = 0; i < 5000; i++) {
            struct learn_step step = step_of(learn_next(&learning));
            step.hash = hash++;
            recorded += i >= 1000 && step.mode == LEARN_RECORD;
            served_steps += i >= 1000 && step.mode == LEARN_SERVE;
            if (step.mode == LEARN_SERVE)
                step = served(400, 600);
            enum learn_verdict verdict = learn_judge(&learning, &step, false);
            if (verdict == LEARN_ADOPT && can_be_made)
                learn_adopted(&learning, step.hash, false);
            else if (verdict == LEARN_ADOPT)
                learn_failed(&learning, verdict);
        }
        assert_int_equal(served_steps, 0);
        assert_in_range(recorded, 2, 2 * 4000 / LEARN_WAIT_MOST + 2);
    }
}

/* Steps of several threads were begun to be recorded: they are one look, and no try before its
 * time. */
static void records_at_once_are_no_try(void **state) {
    struct learning learning = tried_course();
    serve_nothing(&learning, LEARN_IN_A_ROW);
    pass_plainly(&learning, LEARN_PAUSE);
    assert_int_equal(record(&learning, 100), LEARN_NOTE);
    assert_int_equal(record(&learning, 101), LEARN_KEEP);
    pass_plainly(&learning, 2 * LEARN_PAUSE);
    for (uint64_t hash = 102; hash < 106; hash++) {
        struct learn_step step = step_of(LEARN_RECORD);
        step.hash = hash;
        enum learn_verdict verdict = learn_judge(&learning, &step, false);
        assert_true(verdict == LEARN_NOTE || verdict == LEARN_KEEP);
    }
    assert_true(learning.suspended && learning.wait == LEARN_WAIT);
}

/* They tell what two that ended first have told. */
static void what_is_late_changes_no_plan_and_no_patience(void **state) {
    struct learning learning = planned_course();
    for (uint64_t hash = 7; hash < 9; hash++) {
        struct learn_step late = step_of(LEARN_RECORD);
        late.hash = hash;
        assert_int_equal(learn_judge(&learning, &late, false), LEARN_KEEP);
    }
    assert_true(learning.plan_hash == 7 && learning.planned && !learning.tried);
    assert_int_equal(learning.patience.steps, LEARN_IN_A_ROW);
    assert_int_equal(learning.patience.fruitless + learning.patience.unproven, 0);
}

/* Records that are like nothing, and no plan of theirs. */
static void a_try_that_is_not_made_counts_once(void **state) {
    struct learning learning = planned_course();
    for (uint64_t hash = 100; hash < 100 + 2 * LEARN_TRIES; hash += 2) {
        for (unsigned i = 0; i < LEARN_IN_A_ROW; i++)
            assert_int_equal(pass(&learning, served(800, 200)), LEARN_KEEP);
        assert_int_equal(record(&learning, hash), LEARN_NOTE);
        struct learn_step step = step_of(LEARN_RECORD);
        step.hash = hash + 1;
        assert_int_equal(learn_judge(&learning, &step, false), LEARN_ADOPT);
        learn_failed(&learning, LEARN_ADOPT);
    }
    assert_int_equal(learning.patience.fruitless, LEARN_TRIES);
    assert_int_equal(learning.patience.steps, LEARN_IN_A_ROW);
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

/* Of records that are alike: what others before served badly is not held against it. */
static void a_plan_of_what_repeats_begins_anew(void **state) {
    struct learning learning = planned_course();
    while (learn_next(&learning) == LEARN_SERVE)
        serve_nothing(&learning, 1);
    learning.patience.fruitless = LEARN_TRIES;
    assert_int_equal(record(&learning, 9), LEARN_NOTE);
    assert_int_equal(record(&learning, 9), LEARN_ADOPT);
    assert_int_equal(learning.patience.fruitless, 0);
}

/* What a plan holds for so many small blocks would be more than it could save. */
static void a_plan_that_would_hold_too_much_is_not_tried(void **state) {
    static const struct {
        uint64_t blocks, live;
        bool tried;
    } cases[] = {{20000, 9 << 20, false}, {20000, 30 << 20, true}, {3000, 1 << 20, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct learning learning;
        struct learn_step step = step_of(LEARN_RECORD);
        learn_start(&learning);
        step.slots = cases[i].blocks;
        step.live_peak = cases[i].live;
        for (step.hash = 1; step.hash < 3; step.hash++)
            assert_int_equal(learn_judge(&learning, &step, false), LEARN_NOTE);
        assert_int_equal(learn_judge(&learning, &step, false),
                         cases[i].tried ? LEARN_ADOPT : LEARN_KEEP);
        assert_int_equal(learning.suspended, !cases[i].tried);
        if (cases[i].tried)
            continue;
        pass_plainly(&learning, LEARN_PAUSE); /* it may have been warming up: what repeats counts */
        assert_int_equal(learn_next(&learning), LEARN_RECORD);
        assert_int_equal(learn_judge(&learning, &step, false), LEARN_NOTE);
        assert_int_equal(learn_judge(&learning, &step, false), LEARN_ADOPT);
    }
}

/* However alike records are. */
static void a_plan_that_would_hold_more_than_the_step_is_not_made(void **state) {
    static const struct {
        uint64_t blocks, coarse_blocks, live;
        bool planned;
    } cases[] = {{20000, 0, 1 << 20, false}, {20000, 20000, 1 << 20, false},
                 {20000, 0, 2 << 20, true}, {13000, 0, 1000, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct learning learning;
        struct learn_step step = step_of(LEARN_RECORD);
        learn_start(&learning);
        step.slots = cases[i].blocks;
        step.coarse_blocks = cases[i].coarse_blocks;
        step.coarse_hash = cases[i].coarse_blocks ? 71 : 0;
        step.live_peak = cases[i].live;
        assert_int_equal(learn_judge(&learning, &step, false),
                         cases[i].planned ? LEARN_NOTE : LEARN_KEEP);
        assert_int_equal(learn_judge(&learning, &step, false),
                         cases[i].planned ? LEARN_ADOPT : LEARN_KEEP);
        assert_int_equal(learning.suspended, !cases[i].planned);
        if (cases[i].planned)
            continue;
        pass_plainly(&learning, LEARN_WAIT); /* there may be fewer by then */
        assert_int_equal(learn_next(&learning), LEARN_RECORD);
    }
}

/* Of another tag, whose steps have more. */
static void nor_is_one_inherited(void **state) {
    for (uint64_t live = MIB; live <= 2 * MIB; live += MIB) {
        struct learning learning;
        struct learn_step step = served(1000, 0);
        learn_start(&learning);
        learn_inherit(&learning, 7, false);
        step.slots = 20000;
        step.live_peak = live;
        bool fits = live > step.slots * LEARN_SLOT_BYTES;
        assert_int_equal(pass(&learning, step), fits ? LEARN_FIT : LEARN_KEEP);
        assert_int_equal(learning.suspended, !fits);
    }
}

/* Survivors were the recorded step's own. */
static void one_is_that_holds_less_than_what_is_in_the_parent(void **state) {
    struct learning learning;
    struct learn_step step = served(1000, 0);
    learn_start(&learning);
    learn_inherit(&learning, 7, false);
    step.slots = 20000;
    step.live_peak = 200 * KIB;
    step.tenured_bytes = step.guest_bytes = MIB;
    assert_int_equal(pass(&learning, step), LEARN_FIT);
}

/* The pool's limit, say. Others may have had the pages for a while. */
static void a_plan_that_gets_no_pages_for_long_is_given_up(void **state) {
    struct learning learning = planned_course();
    struct learn_step unserved = step_of(LEARN_PLAIN);
    unserved.unserved = true;
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 1; i < LEARN_WAIT; i++)
            assert_int_equal(learn_judge(&learning, &unserved, false), LEARN_KEEP);
        assert_int_equal(learn_next(&learning), LEARN_SERVE);
        assert_int_equal(learn_judge(&learning, round ? &unserved : &(struct learn_step){
            .mode = LEARN_SERVE, .hit_bytes = 1, .complete = true}, false), LEARN_KEEP);
    }
    assert_true(learning.suspended);
    pass_plainly(&learning, LEARN_WAIT);
    assert_int_equal(record(&learning, 8), LEARN_NOTE);
    assert_int_equal(record(&learning, 8), LEARN_ADOPT);
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

/* Steps of two structures take turns, so many of one and then of the other; a plan serves its own
 * well and the others to this part: how many of a thousand are recorded. */
static unsigned take_turns(struct learning *learning, unsigned turn, uint64_t part) {
    unsigned recorded = 0;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t hash = 7 + i / turn % 2;
        bool records = learn_next(learning) == LEARN_RECORD;
        recorded += records;
        if (records)
            record(learning, hash);
        else
            assert_int_equal(pass(learning, learning->plan_hash == hash
                                                ? served(1000, 0)
                                                : served(part, 1000 - part)), LEARN_KEEP);
    }
    return recorded;
}

/* Each repeats, but not for so long that its plan is worth it. */
static void structures_that_take_turns_are_recorded_ever_more_rarely(void **state) {
    for (unsigned turn = 4; turn < LEARN_WAIT; turn++) {
        struct learning learning = tried_course();
        assert_in_range(take_turns(&learning, turn, 600), 2, 60);
    }
}

static void turns_that_are_long_enough_are_planned_each(void **state) {
    struct learning learning = tried_course();
    unsigned turn = 2 * LEARN_WAIT, turns = 1000 / turn;
    assert_in_range(take_turns(&learning, turn, 600), 2 * turns - 2, 2 * turns + 2);
}

/* After two bad steps two are recorded, of other structures, and then two are good. */
static void two_good_steps_do_not_prove_a_plan(void **state) {
    struct learning learning = tried_course();
    unsigned recorded = 0;
    for (unsigned i = 0; i < 1000; i++) {
        struct learn_step good = served(1000, 0), bad = served(700, 300);
        bool records = learn_next(&learning) == LEARN_RECORD;
        recorded += records;
        if (records)
            record(&learning, 100 + i);
        else
            assert_int_equal(pass(&learning, i % 6 < 4 ? good : bad), LEARN_KEEP);
    }
    assert_in_range(recorded, 2, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warming_up_may_take_some_records),
        cmocka_unit_test(a_try_that_serves_nothing_is_given_up_for_a_short_while),
        cmocka_unit_test(where_nothing_repeats_there_are_two_tries),
        cmocka_unit_test(what_the_second_try_serves_makes_no_third_one),
        cmocka_unit_test(records_at_once_are_no_try),
        cmocka_unit_test(what_is_late_changes_no_plan_and_no_patience),
        cmocka_unit_test(a_try_that_is_not_made_counts_once),
        cmocka_unit_test(a_try_that_serves_something_is_not_given_up_that_soon),
        cmocka_unit_test(a_plan_that_gets_no_pages_for_long_is_given_up),
        cmocka_unit_test(a_try_with_keys_is_recorded_again),
        cmocka_unit_test(a_plan_of_what_repeats_begins_anew),
        cmocka_unit_test(a_plan_that_would_hold_too_much_is_not_tried),
        cmocka_unit_test(a_plan_that_would_hold_more_than_the_step_is_not_made),
        cmocka_unit_test(nor_is_one_inherited),
        cmocka_unit_test(one_is_that_holds_less_than_what_is_in_the_parent),
        cmocka_unit_test(structures_that_take_turns_are_recorded_ever_more_rarely),
        cmocka_unit_test(turns_that_are_long_enough_are_planned_each),
        cmocka_unit_test(two_good_steps_do_not_prove_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
