// SPDX-License-Identifier: Apache-2.0
//
// test_micro.c - ebb-micro on bad words, full disks, and in an environment that is set for others;
// and how long the inline functions are.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define ONE "--quick --rounds 1 --cases open_close --allocators obstack,pmr "

static void strange_words_are_refused(void **state)
{
    static const char *const words[] = {
        "--cases nosuch", "--cases open_close,nosuch", "--allocators 'ebb nosuch'", "--cases ''",
        "--rounds x", "--rounds 2x", "--rounds -1", "--rounds ''", "--rounds", "--rounds 0",
        "--rounds 101", "--rounds 99999999999999999999", "--round 1", "--allocators glibc",
        "--cases open_close,release,open_close", "--allocators 'ebb ebb'",
    };
    char arguments[256];

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        snprintf(arguments, sizeof arguments, ONE "%s", words[i]);
        assert_int_equal(run_program("EBB_MICRO", arguments), 2);
        assert_non_null(strstr(said, "usage: ebb-micro"));
        assert_memory_equal(said, "ebb-micro: ", strlen("ebb-micro: "));
    }
    run_program("EBB_MICRO", ONE "--rounds 0");
    assert_non_null(strstr(said, "--rounds: not a number from 1 to 100: 0\n"));
    run_program("EBB_MICRO", ONE "--cases release,open_close,release");
    assert_non_null(strstr(said, "named twice: release\n"));
    run_program("EBB_MICRO", ONE "--allocators glibc"); // no mallocs in that case
    assert_non_null(strstr(said, "none of the allocators takes part in the cases: glibc\n"));
    assert_int_equal(run_program("EBB_MICRO", ONE), 0);
}

static void rows_that_are_lost_are_a_failure(void **state)
{
    (void)state;
    assert_int_equal(run_program("EBB_MICRO", ONE "--tsv /dev/full"), 1);
    assert_non_null(strstr(said, "not all rows could be written"));
    assert_int_equal(run_program("EBB_MICRO", ONE "2>&1 >/dev/full #"), 1);
    assert_non_null(strstr(said, "not all rows could be written"));
}

// A script stands where ebb's process would be.
static void a_contestant_that_breaks_off_is_a_failure(void **state)
{
    char command[1024];

    (void)state;
    snprintf(command, sizeof command,
             "--rounds >/dev/null 2>&1; f=$(mktemp -d) && cp %s $f/m && "
             "printf '#!/bin/sh\necho ready libc.so.6; head -c 1 >/dev/null\n' >$f/m-ebb && "
             "chmod +x $f/m-ebb && $f/m --quick --rounds 1 --cases open_close "
             "--allocators ebb,obstack,pmr 2>&1; code=$?; rm -r $f; exit $code",
             getenv("EBB_MICRO"));
    assert_int_equal(run_program("EBB_MICRO", command), 1);
    assert_non_null(strstr(said, "LEFT OUT: open_close ebb: its process ended in turn 0"));
    assert_non_null(strstr(said, "obstack\tns_empty"));
    assert_non_null(strstr(said, "ebb-micro: failed: open_close ebb\n"));
}

// Runs with a script in the place of ebb's process.
static int run_beside(const char *script, const char *arguments)
{
    char command[1024];

    snprintf(command, sizeof command,
             "--rounds >/dev/null 2>&1; f=$(mktemp -d) && cp %s $f/m && "
             "printf '#!/bin/sh\n%s\n' >$f/m-ebb && chmod +x $f/m-ebb && "
             "$f/m --quick --rounds 1 %s 2>&1; code=$?; rm -r $f; exit $code",
             getenv("EBB_MICRO"), script, arguments);
    return run_program("EBB_MICRO", command);
}

// MALLOC_TOP_PAD_ and others would change what glibc does, unsaid. Whatever is installed, the
// script in the place of a contestant says what reaches it.
static void settings_of_the_user_are_not_the_contestants(void **state)
{
    static const char *const names[] = {"GLIBC_TUNABLES", "MALLOC_TOP_PAD_", "MALLOC_CONF",
                                        "MIMALLOC_SHOW_STATS", "TCMALLOC_RELEASE_RATE", "EBB_X"};

    (void)state;
    setenv("OTHER", "set-by-the-user", 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        setenv(names[i], "set-by-the-user", 1);
    assert_int_equal(run_beside("env | grep set-by-the-user >&2; echo absent",
                                "--cases open_close --allocators ebb,obstack"), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    unsetenv("OTHER");
    assert_non_null(strstr(said, "OTHER=set-by-the-user"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_null(strstr(said, names[i]));
}

// Only what is not installed may be left out and nothing said.
static void a_contestant_that_never_begins_is_a_failure(void **state)
{
    static const char *const scripts[] = {"kill -SEGV $$", "exit 0", "echo hello", "echo ready x"};

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        assert_int_equal(run_beside(scripts[i], "--cases open_close --allocators ebb,obstack"), 1);
        assert_non_null(strstr(said, "LEFT OUT: open_close ebb: "));
        assert_non_null(strstr(said, "ebb-micro: failed: open_close ebb\n"));
        assert_non_null(strstr(said, "obstack\tns_empty"));
    }
    assert_int_equal(run_beside("echo absent", "--cases open_close --allocators ebb,obstack"), 0);
    assert_non_null(strstr(said, "LEFT OUT: open_close ebb: not built in"));
}

// Whoever frees 100,000 blocks one by one takes more than 10 us, or has freed none.
static void ends_of_steps_free_the_blocks(void **state)
{
    static const char *const names[] = {"glibc", "talloc"};

    (void)state;
    assert_int_equal(run_program("EBB_MICRO", "--quick --rounds 1 --cases close_n "
                                              "--allocators glibc,talloc"), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char row[64];
        const char *found;

        snprintf(row, sizeof row, "close_n\t%s\tns_close.n100000\t", names[i]);
        found = strstr(said, row);
        if (found == NULL) { // only talloc may be absent
            assert_string_equal(names[i], "talloc");
            assert_non_null(strstr(said, "LEFT OUT: close_n talloc: not built in"));
        } else {
            assert_true(strtod(found + strlen(row), NULL) > 1e4);
        }
    }
}

// Of each compiler that is installed: what is due, and blocks that are bumped.
static void what_is_inline_is_few_instructions(void **state)
{
    unsigned rows = 0;

    (void)state;
    assert_int_equal(run_program("EBB_INSTRUCTIONS", ""), 0);
    for (const char *row = said; (row = strstr(row, "micro\tinstructions\t")) != NULL; rows++) {
        const char *end = strchr(row, '\n');

        assert_non_null(end);
        while (end[-1] != '\t')
            end--;
        if (strtol(end, NULL, 10) > 15)
            fail_msg("%s", said);
        row = end;
    }
    assert_true(rows == 4 || rows == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strange_words_are_refused),
        cmocka_unit_test(settings_of_the_user_are_not_the_contestants),
        cmocka_unit_test(rows_that_are_lost_are_a_failure),
        cmocka_unit_test(a_contestant_that_breaks_off_is_a_failure),
        cmocka_unit_test(a_contestant_that_never_begins_is_a_failure),
        cmocka_unit_test(ends_of_steps_free_the_blocks),
        cmocka_unit_test(what_is_inline_is_few_instructions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
