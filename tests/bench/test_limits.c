// SPDX-License-Identifier: Apache-2.0
//
// test_limits.c - churn and ebb budget where a process has few files, small ones, or no child: what
// can be measured is, the rest is named, and the files of a run before outlive a run of nothing.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_scratch.h"

// Runs a script in a folder of its own, which goes afterwards; in it $c is churn, short, $trace a
// trace of three steps.
static void passes(const char *script)
{
    static const char steps[] = "#ebb-trace 1\nB k 0 0\na 10000 O\nf 1\nE k 0\n"
                                "B k 1 0\na 10000 O\nf 1\nE k 0\nB k 2 0\na 10000 O\nf 1\nE k 0\n";
    char folder[] = "/tmp/ebb-limits-XXXXXX", command[2048];

    write_bytes(steps, sizeof steps - 1);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("trace", scratch_path(), 1), 0);
    snprintf(command, sizeof command,
             "cd %s && c=\"$EBB_CHURN --no-spike --quick --rounds 1\" && (%s); code=$?; "
             "rm -r %s; exit $code", folder, script, folder);
    assert_int_equal(system(command), 0);
}

static void who_cannot_be_started_has_no_figures_and_the_others_have(void **state)
{
    (void)state;
    passes("FORK_FAILS=2 LD_PRELOAD=$EBB_FORK_FAILS $c --no-touch --allocators glibc,glibc-tuned "
           "--traces $trace --tsv rows >said 2>&1; [ $? = 1 ] && "
           "[ $(grep -c 'glibc-tuned: cannot start a process: Resource temp' said) = 2 ] && "
           "cut -f3,4 rows | grep -q '^glibc.event_ns' && ! grep -q glibc-tuned rows");
}

// Here no process has a pipe.
static void a_run_that_measured_nothing_leaves_the_files_of_the_one_before(void **state)
{
    (void)state;
    passes("echo old >a && echo old >b && cp $trace t.trace && (ulimit -n 5 && exec $c --traces "
           "t.trace --allocators glibc --tsv a --json b) >said 2>&1; [ $? = 2 ] && "
           "grep -q 'cannot start a process: Too many open files' said && "
           "grep -qx 'churn: nothing could be measured' said && [ \"$(cat a b | uniq)\" = old ]");
}

// Two processes count at once where there is room for two pipes.
static void one_after_the_other_is_started_where_two_are_too_many(void **state)
{
    (void)state;
    passes("cp $trace t.trace && (ulimit -n 6 && exec $c --traces t.trace --allocators "
           "glibc,glibc-tuned --tsv rows) >said 2>&1 && "
           "[ $(cut -f4 rows | grep -cx step_us) = 2 ]");
}

static void a_folder_may_hold_more_traces_than_files_are_open_usually(void **state)
{
    (void)state;
    passes("for i in $(seq 40); do cp $trace $i.trace; done; ulimit -S -n 24 && "
           "$c --no-touch --traces . --allocators glibc --tsv rows >said 2>&1 && "
           "[ $(cut -f4 rows | grep -cx event_ns) = 40 ]");
}

// A script is a file, too, if only in memory; so may be the standard output.
static void a_limit_of_the_size_of_files_ends_no_program_by_a_signal(void **state)
{
    (void)state;
    passes("head -c 512 /dev/zero >out && ulimit -f 1; "
           "$c --traces $trace --allocators glibc 2>&1 >/dev/null | "
           "grep -q 'a script of [0-9]* bytes: File too large' && "
           "{ $c --traces $trace --allocators glibc >/dev/null 2>&1; [ $? = 2 ]; } && "
           "{ $EBB_BUDGET --bytes 1 $trace >/dev/null 2>&1; [ $? = 3 ]; } && "
           "$EBB_BUDGET --bytes 1 $trace 2>&1 | grep -q 'bytes: File too large' && "
           "{ $EBB_BUDGET --help >>out 2>/dev/null; [ $? = 3 ]; }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_cannot_be_started_has_no_figures_and_the_others_have),
        cmocka_unit_test(a_run_that_measured_nothing_leaves_the_files_of_the_one_before),
        cmocka_unit_test(one_after_the_other_is_started_where_two_are_too_many),
        cmocka_unit_test(a_folder_may_hold_more_traces_than_files_are_open_usually),
        cmocka_unit_test(a_limit_of_the_size_of_files_ends_no_program_by_a_signal),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
