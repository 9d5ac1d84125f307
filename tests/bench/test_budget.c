// SPDX-License-Identifier: Apache-2.0
//
// test_budget.c - ebb budget on steps whose cost is known: which are named, with which numbers, and
// the exit code. One claim per bound: at the bound is within it, one below is not.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "trace_scratch.h"

static void expect(int code, const char *options, const char *words)
{
    char arguments[2048];

    snprintf(arguments, sizeof arguments, "%s %s", options, scratch_path());
    program_says("EBB_BUDGET", arguments, code, words);
}

// `steps` steps of three blocks, 600 bytes together, of which the 100 last stay until the next step
// has begun; step `odd` asks for 50 bytes more. Between them a step of another kind, of 10 bytes.
static void write_steps(int steps, int odd)
{
    struct text *text = new_text();

    for (int step = 0; step < steps; step++) {
        add(text, "B train %d 0\n", step);
        if (step)
            add(text, "f 2\n"); // the 100 bytes before the 10 of the step between
        add(text, "a 200 C\nf 1\na 300 C\nf 1\na %d C\nE train 0\n", step == odd ? 150 : 100);
        add(text, "B log %d 0\na 10 C\nE log 0\n", step);
    }
    write_bytes(text->bytes, text->used);
}

static void a_step_at_its_budget_passes_and_one_above_is_named_with_its_numbers(void **state)
{
    (void)state;
    write_steps(6, -1);
    expect(0, "--bytes 600", ": 12 steps, 0 over the budget\n");
    expect(0, "--allocations 3", ": 12 steps, 0 over the budget\n");
    expect(0, "--promoted 4096", ": 12 steps, 0 over the budget\n");
    expect(1, "--bytes 599", "step 0 of 'train': 600 bytes over 599\n");
    expect(1, "--allocations 2", "step 5 of 'train': 3 allocations over 2\n");
    expect(1, "--allocations 2", ": 12 steps, 6 over the budget\n");
    expect(1, "--promoted 1", " promoted bytes over 1\n");
    expect(1, "--reserved 1", " reserved bytes over 1\n");
}

static void one_odd_step_is_found_among_many_that_are_learnt(void **state)
{
    (void)state;
    write_steps(60, 41);
    expect(1, "--bytes 600 --allocations 3", "step 41 of 'train': 650 bytes over 600\n");
    expect(1, "--bytes 600 --allocations 3", ": 120 steps, 1 over the budget\n");
    assert_null(strstr(said, "more\n"));
}

static void all_bounds_that_a_step_passes_are_named(void **state)
{
    (void)state;
    write_steps(1, 0);
    expect(1, "--bytes 9 --allocations 1", "'train': 650 bytes over 9, 3 allocations over 1\n");
    expect(1, "--bytes 9 --allocations 1", "'log': 10 bytes over 9\n");
}

static void ten_steps_are_named_and_the_others_counted(void **state)
{
    (void)state;
    write_steps(10, -1);
    expect(1, "--bytes 599", "step 9 of 'train'");
    assert_null(strstr(said, "more\n"));
    write_steps(13, -1);
    expect(1, "--bytes 599", ": and 3 more\n");
    assert_null(strstr(said, "step 10 of"));
}

static void a_budget_may_be_for_one_kind_alone(void **state)
{
    (void)state;
    write_steps(6, -1);
    expect(0, "--bytes 10 --site log", ": 6 steps, 0 over the budget\n");
    expect(1, "--bytes 9 --site log", ": 6 steps, 6 over the budget\n");
    assert_null(strstr(said, "'train'"));
    expect(2, "--bytes 10 --site eval",
           "--site: no region of this kind, there are train, log\n");
    struct text *text = new_text();
    for (int i = 0; i < 12; i++)
        add(text, "B kind%d 0 0\nE kind%d 0\n", i, i);
    write_bytes(text->bytes, text->used);
    expect(2, "--bytes 10 --site eval", "there are kind0, kind1, kind2, kind3, kind4, kind5, "
                                        "kind6, kind7, kind8, kind9 and 2 more\n");
}

static void moved_and_resized_blocks_are_counted_where_they_are_born(void **state)
{
    const char *text = MAGIC "p 70 16 C\nB a 0 0\nr 1 100 C\nm 64 64 C\nc 5 C\nr 1 9 C\nE a 0\n"
                       "B a 1 0\nB b 0 0\na 1 C\nE b 0\nE a 0\nf 1\n";

    (void)state;
    write_bytes(text, strlen(text));
    expect(1, "--allocations 1", "step 0 of 'a': ");
    expect(1, "--bytes 1", ": 3 steps, 1 over the budget\n");
}

// Whether a block grows where it is follows from plans and pages, not from the trace.
static void a_block_that_grows_where_it_is_counts_as_one_that_moves(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (int step = 0; step < 30; step++)
        add(text, "B train %d 0\na 1000 C\nr 1 1600 C\na 70000 C\nr 1 300000 C\nr 3 900 C\n"
                  "f 1\nf 2\nE train 0\n", step);
    write_bytes(text->bytes, text->used);
    expect(0, "--allocations 5 --bytes 373500", ": 30 steps, 0 over the budget\n");
    expect(1, "--allocations 4", ": 30 steps, 30 over the budget\n");
    expect(1, "--bytes 373499", "step 9 of 'train': 373500 bytes over 373499\n");
    expect(1, "--bytes 373499", ": 30 steps, 30 over the budget\n");
}

// What it leaves to the step around it may be copied, relinked, or be born there.
static void a_nested_step_counts_for_itself_alone(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (int step = 0; step < 30; step++)
        add(text, "B outer %d 0\na 50 C\nf 1\nB inner %d 0\na 1000 C\na 300 C\nf 2\n"
                  "E inner 0\nf 1\nE outer 0\n", step, step);
    write_bytes(text->bytes, text->used);
    expect(0, "--site outer --bytes 50 --allocations 1", ": 30 steps, 0 over the budget\n");
    expect(0, "--site inner --bytes 1300 --allocations 2", ": 30 steps, 0 over the budget\n");
    expect(1, "--site outer --bytes 49", "step 0 of 'outer': 50 bytes over 49\n");
}

static void bad_input_is_refused_and_the_other_traces_are_still_checked(void **state)
{
    char arguments[2048];

    (void)state;
    write_steps(2, -1);
    snprintf(arguments, sizeof arguments, "--bytes 599 /nowhere/at.all %s", scratch_path());
    assert_int_equal(run_program("EBB_BUDGET", arguments), 2);
    assert_non_null(strstr(said, "/nowhere/at.all: cannot open: No such file or directory "
                                 "(TRACE_ERROR_OPEN)\n")); // as report and advise say it
    assert_non_null(strstr(said, ": 4 steps, 2 over the budget\n"));
    write_bytes(MAGIC "a 1 C\n", strlen(MAGIC "a 1 C\n"));
    expect(2, "--bytes 1", "no region in it, so no step: `ebb advise -o FILE` may put some in");
}

// The verdict is none that bad input would explain: there is memory for ebb, and none for a block.
static void what_cannot_be_known_is_told_from_bad_input(void **state)
{
    const char *text = MAGIC "B k 0 0\na 2000000000000 C\nE k 0\n";
    char arguments[2048];

    (void)state;
    write_bytes(text, strlen(text));
    expect(3, "--bytes 1", "no chunk of 2000");
    snprintf(arguments, sizeof arguments, "--bytes 1 /nowhere %s", scratch_path());
    assert_int_equal(run_program("EBB_BUDGET", arguments), 3);
}

static void arguments_that_make_no_sense_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",           "x",          "--bytes 1",     "--bytes 0 x", "--bytes -1 x", "--bytes 1k x",
        "--bytes '' x", "--unknown x", "--site train x", "--bytes 18446744073709551616 x"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(run_program("EBB_BUDGET", wrong[i]), 2);
    assert_int_equal(run_program("EBB_BUDGET", "--help"), 0);
    assert_non_null(strstr(said, "--promoted N"));
}

// Only one of them would be looked at.
static void what_is_said_twice_is_refused(void **state)
{
    static const char *const twice[] = {
        "--site train --site log --bytes 10", "--bytes 10 --bytes 600",
        "--bytes 600 --allocations 3 --allocations 3", "--promoted 9 --promoted 8",
        "--reserved 9 --bytes 1 --reserved 8"};

    (void)state;
    write_steps(6, -1);
    for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++)
        expect(2, twice[i], ": a second ");
}

// As a file may have any.
static void names_are_plain_on_the_terminal(void **state)
{
    char arguments[2048], odd[512];

    (void)state;
    write_steps(6, -1);
    snprintf(odd, sizeof odd, "%s\033[31m", scratch_path());
    assert_int_equal(link(scratch_path(), odd), 0);
    snprintf(arguments, sizeof arguments, "--bytes 599 '%s'", odd);
    program_says("EBB_BUDGET", arguments, 1, "?[31m: step 0 of 'train': ");
    assert_null(strchr(said, '\033'));
    unlink(odd);
    program_says("EBB_BUDGET", arguments, 2, "?[31m: ");
    assert_null(strchr(said, '\033'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_at_its_budget_passes_and_one_above_is_named_with_its_numbers),
        cmocka_unit_test(one_odd_step_is_found_among_many_that_are_learnt),
        cmocka_unit_test(all_bounds_that_a_step_passes_are_named),
        cmocka_unit_test(ten_steps_are_named_and_the_others_counted),
        cmocka_unit_test(a_budget_may_be_for_one_kind_alone),
        cmocka_unit_test(moved_and_resized_blocks_are_counted_where_they_are_born),
        cmocka_unit_test(a_block_that_grows_where_it_is_counts_as_one_that_moves),
        cmocka_unit_test(a_nested_step_counts_for_itself_alone),
        cmocka_unit_test(bad_input_is_refused_and_the_other_traces_are_still_checked),
        cmocka_unit_test(what_cannot_be_known_is_told_from_bad_input),
        cmocka_unit_test(arguments_that_make_no_sense_are_refused),
        cmocka_unit_test(what_is_said_twice_is_refused),
        cmocka_unit_test(names_are_plain_on_the_terminal),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
