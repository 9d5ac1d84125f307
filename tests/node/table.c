// SPDX-License-Identifier: Apache-2.0
/*
 * table.c - numbers of steps, and whose end ends them, in the table of the package for Node.
 */
#include "node/table.h"

#include "kit/test.h"

#define EXACT_MOST (((int64_t)1 << 53) - 1) /* whole numbers that JavaScript tells apart */

struct stand {
    struct table table;
    struct site *site;
};

static int stand_set(void **state) {
    static struct stand stand;
    stand = (struct stand){.table.innermost = TABLE_NOBODY, .site = site_create("stand")};
    *state = &stand;
    return stand.site ? 0 : -1;
}

static int stand_clear(void **state) {
    struct stand *stand = *state;
    table_clear(&stand->table);
    table_release(&stand->table, stand->site);
    return 0;
}

static struct site *make_site(const char *name) {
    struct site *site = site_create(name);
    assert_non_null(site);
    return site;
}

static int64_t begin(struct stand *stand) {
    assert_true(table_has_room(&stand->table));
    int64_t number = table_begin(&stand->table, stand->site, 0);
    assert_true(number > 0 && number <= EXACT_MOST);
    assert_non_null(table_find(&stand->table, number));
    return number;
}

static void end(struct stand *stand, int64_t number) {
    assert_int_equal(table_end(&stand->table, table_find(&stand->table, number)), 0);
    assert_null(table_find(&stand->table, number));
}

/* As if the first two places had been taken that often. */
static void wear(struct stand *stand, uint64_t turn) {
    assert_true(table_has_room(&stand->table));
    stand->table.place[0].turn = stand->table.place[1].turn = turn;
}

static void test_a_worn_place_has_numbers_that_are_exact(void **state) {
    struct stand *stand = *state;
    wear(stand, TABLE_TURNS - 4);
    for (unsigned i = 0; i < 4; i++) {
        int64_t one = begin(stand), other = begin(stand);
        assert_true(one != other);
        end(stand, other);
        assert_non_null(table_find(&stand->table, one));
        end(stand, one);
    }
}

static void test_turns_begin_again_with_a_place_that_is_taken(void **state) {
    struct stand *stand = *state;
    wear(stand, TABLE_TURNS - 2);
    int64_t last = begin(stand);
    end(stand, last);
    assert_int_equal(stand->table.place[0].turn, 0);
    int64_t first = begin(stand);
    assert_int_equal(first, TABLE_PLACES_MOST);
    assert_null(table_find(&stand->table, last));
    end(stand, first);
}

static void test_what_names_no_open_step_is_found_out(void **state) {
    struct stand *stand = *state;
    int64_t wrong[] = {0, 1, -1, INT64_MIN, INT64_MAX, EXACT_MOST, TABLE_PLACES_MOST - 1};
    int64_t number = begin(stand);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(table_find(&stand->table, wrong[i]));
    assert_null(table_find(&stand->table, number + 1));
    assert_null(table_find(&stand->table, number + 2 * (int64_t)TABLE_PLACES_MOST));
    end(stand, number);
}

/* Other threads have tables of their own, whose places are as new as this one's. */
static void test_what_names_a_step_of_another_table_is_found_out(void **state) {
    struct stand *stand = *state;
    struct stand other = {.table.innermost = TABLE_NOBODY, .site = stand->site};
    for (unsigned i = 0; i < 1000; i++) {
        int64_t one = begin(stand), two = begin(&other);
        assert_null(table_find(&stand->table, two));
        assert_null(table_find(&other.table, one));
        if (i % 2)
            end(stand, one);
        if (i % 3)
            end(&other, two);
    }
    table_clear(&other.table);
}

static void test_steps_keep_their_numbers_while_the_table_grows(void **state) {
    struct stand *stand = *state;
    int64_t numbers[1000];
    for (unsigned i = 0; i < 1000; i++)
        numbers[i] = begin(stand);
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(table_innermost(&stand->table), numbers[999]);
        end(stand, numbers[i]);
    }
    assert_int_equal(table_innermost(&stand->table), 0);
}

static void test_the_innermost_step_is_the_one_entered_last(void **state) {
    struct stand *stand = *state;
    struct table *table = &stand->table;
    int64_t a = begin(stand), b = begin(stand), c = begin(stand);
    assert_int_equal(table_innermost(table), c);
    assert_int_equal(table_enter(table, table_find(table, a)), 0);
    assert_int_equal(table_innermost(table), a);
    assert_int_equal(table_leave(table, table_find(table, c)), 0);
    end(stand, a);
    assert_int_equal(table_innermost(table), b);
}

static void enter(struct stand *stand, int64_t number) {
    assert_int_equal(table_enter(&stand->table, table_find(&stand->table, number)), 0);
}

static void leave(struct stand *stand, int64_t number) {
    assert_int_equal(table_leave(&stand->table, table_find(&stand->table, number)), 0);
}

/* `expected` are entered, the innermost first and a 0 last; they are left. */
static void expect_entered(struct stand *stand, const int64_t *expected) {
    for (; *expected; expected++) {
        assert_int_equal(table_innermost(&stand->table), *expected);
        leave(stand, *expected);
    }
    assert_int_equal(table_innermost(&stand->table), 0);
}

static void test_after_a_function_the_same_steps_are_entered_as_before(void **state) {
    struct stand *stand = *state;
    int64_t step[5];
    for (unsigned i = 0; i < 5; i++)
        step[i] = begin(stand);
    leave(stand, step[4]);
    for (unsigned run = 0; run < 5; run++) {
        struct table_moment before =
            table_before(&stand->table, table_find(&stand->table, step[run]));
        enter(stand, step[run]);
        enter(stand, step[4]); /* meanwhile */
        table_go_back(&stand->table, &before);
    }
    expect_entered(stand, (int64_t[]){step[3], step[2], step[1], step[0], 0});
}

static void test_what_is_left_or_ended_while_a_function_runs_stays_so(void **state) {
    struct stand *stand = *state;
    int64_t step[5];
    for (unsigned i = 0; i < 5; i++)
        step[i] = begin(stand);
    struct table_moment before = table_before(&stand->table, table_find(&stand->table, step[0]));
    enter(stand, step[0]);
    leave(stand, step[1]);
    end(stand, step[4]);
    leave(stand, step[3]);
    enter(stand, step[3]);
    table_go_back(&stand->table, &before);
    expect_entered(stand, (int64_t[]){step[2], step[0], 0});
}

static void test_what_is_moved_while_a_function_runs_is_inside_of_all_but_one(void **state) {
    struct stand *stand = *state;
    int64_t a = begin(stand), b = begin(stand), c = begin(stand);
    struct table_moment before = table_before(&stand->table, NULL);
    int64_t run = begin(stand);
    enter(stand, a);
    end(stand, run);
    table_go_back(&stand->table, &before);
    expect_entered(stand, (int64_t[]){c, a, b, 0});
    table_go_back(&stand->table, &before); /* they are left */
    expect_entered(stand, (int64_t[]){0});
}

static void test_a_site_is_there_as_long_as_a_step_of_it(void **state) {
    struct stand *stand = *state;
    int64_t number = begin(stand);
    struct site *site = stand->site;
    stand->site = site_create("another");
    assert_non_null(stand->site);
    /* JavaScript's; a leak, or what is used too late, is found by others */
    table_release(&stand->table, site);
    assert_int_equal(site->holders, 1);
    assert_non_null(ebb_region_alloc(table_find(&stand->table, number)->step.region, 100, 16));
    end(stand, number);
}

static void test_a_site_has_a_number_that_is_no_steps(void **state) {
    struct stand *stand = *state;
    assert_true(table_has_room(&stand->table));
    struct site *site = make_site("numbered");
    int64_t number = table_add_site(&stand->table, site), step = begin(stand);
    assert_true(number > 0 && number <= EXACT_MOST);
    assert_null(table_find(&stand->table, number));
    assert_null(table_find_site(&stand->table, step));
    assert_ptr_equal(table_find_site(&stand->table, number)->site, site);
    table_drop_site(&stand->table, table_find_site(&stand->table, number));
    assert_null(table_find_site(&stand->table, number));
    assert_true(begin(stand) != number); /* in its place */
}

/* A step that the table does not know keeps a site, as does a scope that could not end. */
static void test_a_site_that_cannot_go_yet_goes_later(void **state) {
    struct stand *stand = *state;
    struct table *table = &stand->table;
    for (unsigned i = 0; i < 2; i++) {
        struct site *first = make_site("first"), *second = make_site("second");
        ebb_step step = ebb_step_begin(first->site, 0), other = ebb_step_begin(second->site, 0);
        table_release(table, first);
        table_release(table, second);
        assert_ptr_equal(table->staying, second);
        assert_int_equal(ebb_step_end(step), 0);
        table_release(table, make_site("another"));
        assert_ptr_equal(table->staying, second); /* and the first has gone */
        assert_null(second->next);
        assert_int_equal(ebb_step_end(other), 0);
        if (i)
            table_clear(table);
        else
            end(stand, begin(stand));
        assert_null(table->staying);
    }
}

static void test_the_end_of_the_table_ends_its_sites(void **state) {
    struct stand *stand = *state;
    int64_t step = begin(stand);
    int64_t number = table_add_site(&stand->table, stand->site);
    assert_non_null(table_find_site(&stand->table, number));
    table_clear(&stand->table); /* a leak, or what is used too late, is found by others */
    assert_null(table_find_site(&stand->table, number));
    assert_null(table_find(&stand->table, step));
    stand->site = site_create("another");
    assert_non_null(stand->site);
}

static void test_the_end_of_the_table_ends_its_steps(void **state) {
    struct stand *stand = *state;
    ebb_step steps[3];
    for (unsigned i = 0; i < 3; i++)
        steps[i] = table_find(&stand->table, begin(stand))->step;
    assert_int_equal(table_leave(&stand->table, &stand->table.place[1]), 0);
    table_release(&stand->table, stand->site); /* before its steps end: they hold it */
    table_clear(&stand->table);
    for (unsigned i = 0; i < 3; i++)
        assert_false(ebb_region_is_open(steps[i].region));
    stand->site = site_create("another");
    end(stand, begin(stand));
}

static void test_a_table_is_full_or_short_of_memory(void **state) {
    struct table table = {.innermost = TABLE_NOBODY};
    assert_false(table_is_full(&table));
    table.count = table.unused = TABLE_PLACES_MOST;
    assert_true(table_is_full(&table));
    assert_false(table_has_room(&table));
    table.unused = TABLE_PLACES_MOST - 1;
    assert_false(table_is_full(&table));
    assert_true(table_has_room(&table));
}

#define STOOD(test) cmocka_unit_test_setup_teardown(test, stand_set, stand_clear)

int main(void) {
    const struct CMUnitTest tests[] = {
        STOOD(test_a_worn_place_has_numbers_that_are_exact),
        STOOD(test_turns_begin_again_with_a_place_that_is_taken),
        STOOD(test_what_names_no_open_step_is_found_out),
        STOOD(test_what_names_a_step_of_another_table_is_found_out),
        STOOD(test_steps_keep_their_numbers_while_the_table_grows),
        STOOD(test_the_innermost_step_is_the_one_entered_last),
        STOOD(test_after_a_function_the_same_steps_are_entered_as_before),
        STOOD(test_what_is_left_or_ended_while_a_function_runs_stays_so),
        STOOD(test_what_is_moved_while_a_function_runs_is_inside_of_all_but_one),
        STOOD(test_a_site_is_there_as_long_as_a_step_of_it),
        STOOD(test_a_site_has_a_number_that_is_no_steps),
        STOOD(test_a_site_that_cannot_go_yet_goes_later),
        STOOD(test_the_end_of_the_table_ends_its_sites),
        STOOD(test_the_end_of_the_table_ends_its_steps),
        cmocka_unit_test(test_a_table_is_full_or_short_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
