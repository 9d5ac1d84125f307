// SPDX-License-Identifier: Apache-2.0
/*
 * rhythm.c - rows of steps, driven with counts alone: what is found, what is foretold, what an odd
 * step, a slip and another program do to a row.
 */
#include "kit/test.h"

#include "step/rhythm.h"

struct score {
    unsigned foretold, right;
};

/* A step with so many allocations, one at a time; looks for a row after it. */
static struct score pass(struct rhythm *rhythm, uint32_t count) {
    struct step_kind kind = {0, 0};
    uint64_t number = rhythm_begin(rhythm);
    struct score score = {rhythm_foretell(rhythm, number, &kind), 0};
    rhythm_end(rhythm, number, count);
    score.right = score.foretold && kind.count == count;
    rhythm_look(rhythm, number);
    return score;
}

static struct score pass_all(struct rhythm *rhythm, const uint32_t *counts, unsigned length,
                             unsigned times) {
    struct score sum = {0, 0};
    for (unsigned i = 0; i < length * times; i++) {
        struct score score = pass(rhythm, counts[i % length]);
        sum.foretold += score.foretold;
        sum.right += score.right;
    }
    return sum;
}

static const uint32_t gathering[] = {84, 84, 84, 234};

static struct rhythm gathered(void) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    pass_all(&rhythm, gathering, 4, 3);
    assert_int_equal(rhythm.period, 4);
    return rhythm;
}

/* ---- finding ---- */

static void a_row_is_believed_after_it_came_again_and_four_steps_more(void **state) {
    for (uint32_t period = 2; period <= RHYTHM_MOST; period++) {
        struct rhythm rhythm;
        rhythm_start(&rhythm);
        for (uint32_t i = 0; i < 2 * period + RHYTHM_SURE; i++) {
            assert_int_equal(rhythm.period, 0);
            pass(&rhythm, i % period == period - 1 ? 9 : 7);
        }
        assert_int_equal(rhythm.period, period);
        struct score score = {0, 0};
        for (uint32_t i = RHYTHM_SURE; i < 100 + RHYTHM_SURE; i++)
            score.right += pass(&rhythm, i % period == period - 1 ? 9 : 7).right;
        assert_int_equal(score.right, 100);
    }
}

static void a_longer_row_is_not_found(void **state) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    for (uint32_t i = 0; i < 20 * RHYTHM_MOST; i++)
        assert_int_equal(pass(&rhythm, i % (RHYTHM_MOST + 1) ? 7 : 9).foretold, 0);
}

static void steps_that_are_all_alike_are_no_row(void **state) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    for (uint32_t i = 0; i < 500; i++)
        assert_int_equal(pass(&rhythm, 7).foretold, 0);
}

static void what_never_repeats_is_no_row(void **state) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    for (uint32_t i = 1; i < 500; i++)
        assert_int_equal(pass(&rhythm, i).foretold, 0);
}

static void a_row_of_many_kinds_is_none(void **state) {
    static const uint32_t many[] = {1, 2, 3, 4, 5}, after_many[] = {1, 1, 2, 2, 3};
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    assert_int_equal(pass_all(&rhythm, many, 5, 20).foretold, 0);
    rhythm_start(&rhythm);
    assert_int_equal(pass_all(&rhythm, after_many, 5, 20).foretold, 0);
    rhythm_start(&rhythm);
    assert_true(pass_all(&rhythm, many, RHYTHM_KINDS, 20).foretold > 0);
}

static void a_kind_is_a_count_and_the_one_before(void **state) {
    static const uint32_t before[] = {234, 84, 84, 84};
    struct rhythm rhythm = gathered();
    for (unsigned i = 0; i < 40; i++) {
        struct step_kind kind;
        uint64_t number = rhythm_begin(&rhythm);
        assert_true(rhythm_foretell(&rhythm, number, &kind));
        assert_int_equal(kind.count, gathering[i % 4]);
        assert_int_equal(kind.before, before[i % 4]);
        rhythm_end(&rhythm, number, gathering[i % 4]);
    }
}

static void empty_steps_are_like_none(void **state) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(pass(&rhythm, i % 2 ? 7 : 0).foretold, 0);
}

static void counts_beyond_32_bits_are_the_largest(void **state) {
    assert_true(rhythm_count(UINT32_MAX - 1) == UINT32_MAX - 1);
    assert_true(rhythm_count(UINT32_MAX) == UINT32_MAX);
    assert_true(rhythm_count((uint64_t)UINT32_MAX + 2) == UINT32_MAX);
    assert_true(rhythm_count(UINT64_MAX) == UINT32_MAX);
}

/* As the step itself was, or the one a row before. */
static void what_served_a_step_is_known_when_its_row_is_found(void **state) {
    static const uint8_t servers[] = {0, 1, 0, 0, 2, 1, 1, 0, 0, 1, 1, 0};
    static const struct step_kind kinds[] = {{234, 84}, {84, 84}, {84, 84}, {84, 234}};
    static const uint8_t found[] = {0, 1, 1, 2};
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    for (unsigned i = 0; i < 12; i++) {
        uint64_t number = rhythm_begin(&rhythm);
        rhythm_end(&rhythm, number, gathering[i % 4]);
        rhythm_note(&rhythm, number, servers[i]);
        assert_int_equal(rhythm_look(&rhythm, number), i == 11);
    }
    for (uint32_t back = 0; back < 4; back++) {
        uint8_t server = 9;
        struct step_kind kind = rhythm_kind(&rhythm, back, &server);
        assert_true(kind.count == kinds[back].count && kind.before == kinds[back].before);
        assert_int_equal(server, found[back]);
    }
}

/* ---- odd steps ---- */

static void an_odd_step_costs_itself_alone(void **state) {
    struct rhythm rhythm = gathered();
    for (unsigned place = 0; place < 4; place++) {
        uint32_t row[4];
        memcpy(row, gathering, sizeof row);
        row[place] = 777;
        assert_int_equal(pass_all(&rhythm, row, 4, 1).right, 3);
        assert_int_equal(pass_all(&rhythm, gathering, 4, 4).right, 16);
    }
    assert_int_equal(rhythm.period, 4);
}

static void a_row_that_breaks_off_costs_one_step(void **state) {
    struct rhythm rhythm = gathered();
    for (unsigned missing = 1; missing < 4; missing++) {
        struct score score = pass_all(&rhythm, gathering + missing, 4 - missing, 1);
        struct score after = pass_all(&rhythm, gathering, 4, 8);
        assert_int_equal(score.foretold + after.foretold, 4 - missing + 32);
        assert_true(score.right + after.right >= 4 - missing + 31);
    }
}

static void one_step_more_in_a_row_costs_one_step(void **state) {
    struct rhythm rhythm = gathered();
    static const uint32_t longer[] = {84, 84, 84, 84, 234};
    assert_int_equal(pass_all(&rhythm, longer, 5, 1).right, 4);
    assert_int_equal(pass_all(&rhythm, gathering, 4, 8).right, 32);
}

static void a_step_that_has_changed_for_good_is_learnt_where_it_is(void **state) {
    static const uint32_t thawed[] = {84, 84, 84, 300};
    struct rhythm rhythm = gathered();
    assert_int_equal(pass_all(&rhythm, thawed, 4, 2).right, 6);
    assert_int_equal(pass_all(&rhythm, thawed, 4, 5).right, 20);
    assert_int_equal(rhythm.period, 4);
}

/* Each has so much of the first row that it would never be lost, but for the last. */
static void a_row_that_has_become_another_one_is_followed(void **state) {
    static const struct {
        uint32_t before[4], after[6];
        unsigned before_length, length;
    } changes[] = {{{1, 1, 1, 2}, {1, 2, 1, 1, 1, 2}, 4, 6},
                   {{1, 1, 2}, {1, 1, 2, 1, 2}, 3, 5},
                   {{1, 1, 1, 2}, {1, 1, 1, 1, 2}, 4, 5},
                   {{1, 1, 1, 2}, {1, 1, 2, 2}, 4, 4}};
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) {
        unsigned length = changes[i].length, steps = 0;
        struct rhythm rhythm;
        rhythm_start(&rhythm);
        pass_all(&rhythm, changes[i].before, changes[i].before_length, 30);
        assert_int_equal(rhythm.period, changes[i].before_length);
        while (steps < 3 * length + RHYTHM_SURE)
            pass(&rhythm, changes[i].after[steps++ % length]);
        assert_int_equal(rhythm.period, length);
        for (unsigned k = 0; k < 50; k++)
            assert_int_equal(pass(&rhythm, changes[i].after[steps++ % length]).right, 1);
    }
}

static void steps_that_are_all_alike_are_no_other_row(void **state) {
    static const uint32_t alike[] = {84, 84, 84, 84, 84, 84, 234};
    struct rhythm rhythm = gathered();
    assert_true(sizeof alike / sizeof *alike > RHYTHM_SURE + 2);
    assert_int_equal(pass_all(&rhythm, alike, 7, 1).right, 4);
    assert_int_equal(pass_all(&rhythm, gathering, 4, 4).right, 16);
}

static void a_rhythm_that_is_lost_is_looked_for_later_each_time_longer(void **state) {
    static const uint32_t other[] = {10, 20};
    struct rhythm rhythm = gathered();
    uint64_t wait = RHYTHM_WAIT;
    for (unsigned time = 0; time < 10; time++) {
        uint64_t steps = 0;
        while (rhythm.period)
            pass(&rhythm, (uint32_t)(1000 + steps++));
        assert_true(steps <= RHYTHM_LOST / RHYTHM_MISS);
        for (steps = 0; !rhythm.period; steps += 2)
            pass_all(&rhythm, other, 2, 1);
        assert_int_equal(steps, wait);
        wait = wait < RHYTHM_WAIT_MOST ? 2 * wait : wait;
    }
    assert_int_equal(rhythm.wait, RHYTHM_WAIT_MOST);
}

/* The time of the rows before the last one counts. */
static void a_row_that_has_become_another_one_is_no_new_rhythm(void **state) {
    static const uint32_t other[] = {84, 84, 234, 234};
    struct rhythm rhythm = gathered();
    for (unsigned time = 0; time < 3; time++) {
        for (unsigned i = 0; rhythm.period; i++)
            pass(&rhythm, 1000 + i);
        while (!rhythm.period)
            pass_all(&rhythm, gathering, 4, 1);
    }
    assert_true(rhythm.wait > 2 * RHYTHM_WAIT);
    pass_all(&rhythm, gathering, 4, rhythm.wait);
    pass_all(&rhythm, other, 4, 4);
    assert_int_equal(pass_all(&rhythm, other, 4, 1).right, 4);
    for (unsigned i = 0; rhythm.period; i++)
        pass(&rhythm, 1000 + i);
    assert_true(rhythm.look_at - rhythm.begun < RHYTHM_WAIT);
    assert_int_equal(rhythm.wait, 2 * RHYTHM_WAIT);
}

static void a_rhythm_that_is_found_again_bears_as_much_as_the_first(void **state) {
    struct rhythm rhythm = gathered();
    for (unsigned i = 0; rhythm.period; i++)
        pass(&rhythm, 1000 + i);
    while (!rhythm.period)
        pass_all(&rhythm, gathering, 4, 1);
    for (unsigned i = 1; i < RHYTHM_LOST / RHYTHM_MISS; i++)
        pass(&rhythm, 2000 + i);
    assert_int_equal(rhythm.period, 4);
}

static void an_empty_step_is_learnt_by_no_row(void **state) {
    static const uint32_t hollow[] = {84, 84, 84, 0};
    struct rhythm rhythm = gathered();
    pass_all(&rhythm, hollow, 4, 2);
    assert_int_equal(pass_all(&rhythm, gathering, 4, 4).right, 16);
}

/* ---- overlaps ---- */

/* What its place in the history had before is forgotten when a step begins. */
static void a_step_that_is_still_open_is_like_none(void **state) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    for (unsigned i = 0; i < 3 * RHYTHM_HISTORY; i++)
        rhythm_end(&rhythm, rhythm_begin(&rhythm), gathering[i % 4]);
    rhythm_begin(&rhythm);
    for (unsigned i = 1; i < 12; i++)
        assert_int_equal(pass(&rhythm, gathering[i % 4]).foretold, 0);
    assert_int_equal(rhythm.period, 0);
    assert_true(pass(&rhythm, 84).foretold == 0 && rhythm.period == 4);
}

/* It is not taken for the newer one that has its place in the history. */
static void a_step_that_could_not_begin_is_none_of_the_row(void **state) {
    struct rhythm rhythm = gathered();
    for (uint32_t i = 0; i < 40; i++) {
        rhythm_return(&rhythm, rhythm_begin(&rhythm));
        assert_int_equal(pass(&rhythm, gathering[i % 4]).right, 1);
    }
    uint64_t number = rhythm_begin(&rhythm), next = rhythm_begin(&rhythm);
    rhythm_return(&rhythm, number); /* too late: the other one has its number */
    assert_int_equal(rhythm.begun, next + 1);
}

static void a_step_that_ends_after_all_history_moves_no_row(void **state) {
    static const uint32_t row[] = {10, 10, 20};
    for (unsigned place = 0; place < 3; place++) {
        struct rhythm rhythm;
        rhythm_start(&rhythm);
        pass_all(&rhythm, row, 3, 4);
        pass_all(&rhythm, row, place, 1);
        uint64_t old = rhythm_begin(&rhythm);
        for (unsigned i = 1; i < 3 * RHYTHM_HISTORY; i++)
            assert_int_equal(pass(&rhythm, row[(place + i) % 3]).right, 1);
        struct rhythm before = rhythm;
        rhythm_end(&rhythm, old, row[place] == 10 ? 20 : 10);
        assert_memory_equal(rhythm.counts, before.counts, sizeof rhythm.counts);
        for (unsigned i = 0; i < 12; i++)
            assert_int_equal(pass(&rhythm, row[(place + i) % 3]).right, 1);
    }
}

static void steps_that_overlap_have_no_rhythm(void **state) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    uint64_t last = rhythm_begin(&rhythm);
    for (unsigned i = 0; i < 400; i++) {
        uint64_t number = rhythm_begin(&rhythm);
        rhythm_end(&rhythm, last, gathering[i % 4]);
        rhythm_look(&rhythm, last);
        assert_int_equal(rhythm.period, 0);
        last = number;
    }
}

/* Each step ends so many steps late, in a row that was found before. */
static void late_ends_are_taken_as_they_come(void **state) {
    for (unsigned late = 1; late < 3 * RHYTHM_HISTORY; late += 7) {
        struct rhythm rhythm = gathered();
        uint64_t first = rhythm.begun;
        for (unsigned i = 0; i < 400; i++) {
            struct step_kind kind;
            uint64_t number = rhythm_begin(&rhythm);
            assert_true(rhythm_foretell(&rhythm, number, &kind));
            assert_int_equal(kind.count, gathering[i % 4]);
            if (i >= late)
                rhythm_end(&rhythm, number - late, gathering[(i - late) % 4]);
        }
        assert_true(rhythm.begun == first + 400 && rhythm.period == 4 && !rhythm.strikes);
    }
}

/* Six steps begin before a row is found and end in it, each as no other. */
static void ends_of_steps_older_than_the_row_are_no_long_life_of_it(void **state) {
    struct rhythm rhythm;
    uint64_t old[RHYTHM_LOST / RHYTHM_MISS];
    rhythm_start(&rhythm);
    for (unsigned time = 0; time < 3; time++) {
        for (unsigned i = 0; i < RHYTHM_LOST / RHYTHM_MISS; i++)
            old[i] = rhythm_begin(&rhythm);
        while (!rhythm.period)
            pass_all(&rhythm, gathering, 4, 1);
        assert_int_equal(rhythm.wait, RHYTHM_WAIT << time);
        for (unsigned i = 0; i < RHYTHM_LOST / RHYTHM_MISS; i++)
            rhythm_end(&rhythm, old[i], 1000 + i);
        assert_int_equal(rhythm.period, 0);
    }
}

static void steps_that_never_end_are_no_part_of_a_row(void **state) {
    struct rhythm rhythm;
    rhythm_start(&rhythm);
    for (unsigned i = 0; i < 400; i++) {
        uint64_t number = rhythm_begin(&rhythm);
        if (i % 4 == 1)
            continue;
        rhythm_end(&rhythm, number, gathering[i % 4]);
        rhythm_look(&rhythm, number);
        assert_int_equal(rhythm.period, 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_believed_after_it_came_again_and_four_steps_more),
        cmocka_unit_test(a_longer_row_is_not_found),
        cmocka_unit_test(steps_that_are_all_alike_are_no_row),
        cmocka_unit_test(what_never_repeats_is_no_row),
        cmocka_unit_test(a_row_of_many_kinds_is_none),
        cmocka_unit_test(a_kind_is_a_count_and_the_one_before),
        cmocka_unit_test(empty_steps_are_like_none),
        cmocka_unit_test(counts_beyond_32_bits_are_the_largest),
        cmocka_unit_test(what_served_a_step_is_known_when_its_row_is_found),
        cmocka_unit_test(an_odd_step_costs_itself_alone),
        cmocka_unit_test(a_row_that_breaks_off_costs_one_step),
        cmocka_unit_test(one_step_more_in_a_row_costs_one_step),
        cmocka_unit_test(a_step_that_has_changed_for_good_is_learnt_where_it_is),
        cmocka_unit_test(a_row_that_has_become_another_one_is_followed),
        cmocka_unit_test(steps_that_are_all_alike_are_no_other_row),
        cmocka_unit_test(a_rhythm_that_is_lost_is_looked_for_later_each_time_longer),
        cmocka_unit_test(a_row_that_has_become_another_one_is_no_new_rhythm),
        cmocka_unit_test(a_rhythm_that_is_found_again_bears_as_much_as_the_first),
        cmocka_unit_test(an_empty_step_is_learnt_by_no_row),
        cmocka_unit_test(a_step_that_is_still_open_is_like_none),
        cmocka_unit_test(a_step_that_could_not_begin_is_none_of_the_row),
        cmocka_unit_test(a_step_that_ends_after_all_history_moves_no_row),
        cmocka_unit_test(steps_that_overlap_have_no_rhythm),
        cmocka_unit_test(late_ends_are_taken_as_they_come),
        cmocka_unit_test(ends_of_steps_older_than_the_row_are_no_long_life_of_it),
        cmocka_unit_test(steps_that_never_end_are_no_part_of_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
