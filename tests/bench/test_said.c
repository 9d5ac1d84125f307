// SPDX-License-Identifier: Apache-2.0
//
// test_said.c - nobody may take what a program of the benchmarks printed for whole that is not, or
// for something else than it is.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "trace_scratch.h"

static void what_cannot_be_said_is_a_failure(void **state)
{
    static const struct {
        const char *variable, *options, *message;
        int code; // where all arrives it is 0
    } runs[] = {
        {"EBB_PLAN", "", "ebb-plan: not all", 2},
        {"EBB_PLAN", "--help", "ebb-plan: not all", 2},
        {"EBB_BUDGET", "--bytes 3000", "ebb budget: not all", 3},
        {"EBB_LANES", "", "lanes: not all", 1},
        {"EBB_CHURN", "--help --traces", "churn: not all", 1},
    };
    const char *text = "#ebb-trace 1\n#warmup 1\nB k 0 0\na 2000 T\nE k 0\n"
                       "B k 1 0\na 900 T\nE k 0\n";
    char options[256];

    (void)state;
    write_bytes(text, strlen(text));
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        snprintf(options, sizeof options, "%s %s", runs[i].options, scratch_path());
        assert_int_equal(run_program(runs[i].variable, options), 0);
        snprintf(options, sizeof options, "%s %s 2>&1 >/dev/full #", runs[i].options,
                 scratch_path());
        assert_int_equal(run_program(runs[i].variable, options), runs[i].code);
        assert_non_null(strstr(said, runs[i].message));
        snprintf(options, sizeof options, "%s %s 2>&1 >&- #", runs[i].options, scratch_path());
        assert_int_equal(run_program(runs[i].variable, options), runs[i].code);
        assert_non_null(strstr(said, runs[i].message));
    }
}

static void rows_of_sequences_and_keys_that_are_lost_are_a_failure(void **state)
{
    (void)state;
    program_says("EBB_SEQUENCE", "int64 0 3 5 1 2>&1 >/dev/full #", 1, "ebb-sequence: not all");
    program_says("EBB_SEQUENCE", "int64 0 3 5 1 2>&1 >&- #", 1, "ebb-sequence: not all");
    program_says("EBB_KEYS", "1 4 loop 2>&1 >/dev/full #", 2, "ebb-keys: not all");
}

static void whoever_asks_is_helped_and_whoever_errs_is_told(void **state)
{
    (void)state;
    program_says("EBB_LANES", "-h", 0, "usage: lanes [--all] TRACE...\n");
    program_says("EBB_LANES", "--help", 0, "usage: lanes [--all] TRACE...\n");
    program_says("EBB_LANES", "--nosuch", 2, "usage: lanes [--all] TRACE...\n");
    program_says("EBB_LANES", "--all --nosuch", 2, "usage: lanes [--all] TRACE...\n");
    program_says("EBB_PLAN", "-h", 0, "-h, --help");
    program_says("EBB_PLAN", "-x", 2, "ebb-plan: no option '-x' (--help tells more)\n");
    program_says("EBB_CHURN", "-h", 0, "-h, --help");
    program_says("EBB_CHURN", "--no", 2,
                 "churn: option '--no' may be one of 4 (--help tells more)\n");
    program_says("EBB_CHURN", "--as somebody --rounds 0", 2, "somebody: --rounds: not a number");
}

// A trace that does not say what it is has the name of its file.
static void simulated_traces_have_names(void **state)
{
    const char *steps = "B k 0 0\na 2000 T\nE k 0\n";
    char text[256];

    (void)state;
    assert_int_equal(setenv("EBB_SCRATCH", scratch_path(), 1), 0);
    snprintf(text, sizeof text, "#ebb-trace 1\n%s", steps);
    write_bytes(text, strlen(text));
    program_says("EBB_LANES", "2>&1; f=$(mktemp -d) && cp $EBB_SCRATCH $f/one.full.trace && "
                 "gzip <$EBB_SCRATCH >\"$f/a b.trace.gz\" && "
                 "$EBB_LANES --all $f/* | cut -f1 | uniq; rm -r $f", 0,
                 "trace\na_b\none.full\n");
    snprintf(text, sizeof text, "#ebb-trace 1\n#name mine\n%s", steps);
    write_bytes(text, strlen(text));
    program_says("EBB_LANES", "2>&1; $EBB_LANES --all $EBB_SCRATCH | cut -f1 | uniq", 0,
                 "trace\nmine\n");
    snprintf(text, sizeof text, "#ebb-trace 1\n#name mine\n#view tensor\n%s", steps);
    write_bytes(text, strlen(text));
    program_says("EBB_LANES", "2>&1; $EBB_LANES --all $EBB_SCRATCH | cut -f1 | uniq", 0,
                 "trace\nmine.tensor\n");
}

// A plan that is too high stays one.
static void another_failure_keeps_its_code(void **state)
{
    const char *list = "0,0,2,100\n";
    char options[256];

    (void)state;
    write_bytes(list, strlen(list));
    snprintf(options, sizeof options, "--capacity 99 %s 2>&1 >/dev/full #", scratch_path());
    assert_int_equal(run_program("EBB_PLAN", options), 1);
    assert_non_null(strstr(said, "1 above the capacity of 99\n"));
    assert_non_null(strstr(said, "standard output: No space left on device\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_said_is_a_failure),
        cmocka_unit_test(rows_of_sequences_and_keys_that_are_lost_are_a_failure),
        cmocka_unit_test(whoever_asks_is_helped_and_whoever_errs_is_told),
        cmocka_unit_test(simulated_traces_have_names),
        cmocka_unit_test(another_failure_keeps_its_code),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
