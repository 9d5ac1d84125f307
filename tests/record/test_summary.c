// SPDX-License-Identifier: Apache-2.0
//
// test_summary.c - what ebb record says at the end, on the terminal.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

// A library that looks malloc() up in the C library itself, and takes and gives blocks of others.
static void frees_that_go_past_the_recorder_are_told(void **state)
{
    char command[2048];

    (void)state;
    snprintf(command, sizeof command,
             "record -o %s -- /usr/bin/python3 -c 'import ctypes\n"
             "seen, unseen = ctypes.CDLL(None), ctypes.CDLL(\"libc.so.6\")\n"
             "for of in seen, unseen: of.malloc.restype = ctypes.c_void_p\n"
             "for i in range(9000): unseen.free(ctypes.c_void_p(seen.malloc(600)))\n"
             "for i in range(9000): seen.free(ctypes.c_void_p(unseen.malloc(600)))'", path);
    assert_int_equal(ebb(command), 0);
    assert_said(" frees of blocks that were never seen, and ");
    assert_non_null(header_line("#lost-frees"));
    assert_non_null(header_line("#unknown-frees"));
    snprintf(command, sizeof command, "record -o %s -- /usr/bin/python3 -c 'import json'", path);
    assert_int_equal(ebb(command), 0);
    assert_null(strstr(said(), "never seen"));
}

// Folders, files and functions may have any name.
static void names_are_plain_on_the_terminal(void **state)
{
    char command[1024];

    (void)state;
    snprintf(command, sizeof command,
             "record --keep --sites --function '\033[31mcalled' -o '%s/a\033[31m.trace.gz' -- true",
             folder);
    assert_int_equal(ebb(command), 0);
    assert_null(strchr(said(), '\033'));
    assert_said("/a?[31m.trace.gz: ");
    assert_said("/a?[31m.sites.gz: the places");
    assert_said("no call of ?[31mcalled was seen");
    assert_said("the spool is kept: ");
    snprintf(command, sizeof command, "rm -r %s/a*", folder);
    assert_int_equal(system(command), 0);
}

// Nobody is advised to ask for what was asked for.
static void a_period_that_ends_in_no_program_is_told(void **state)
{
    char command[1024];

    (void)state;
    snprintf(command, sizeof command, "record --every 3600000 -o %s -- true", path);
    assert_int_equal(ebb(command), 0);
    assert_said("no period of 3600000 ms ended in it");
    assert_null(strstr(said(), "--every"));
    snprintf(command, sizeof command, "record -o %s -- true", path);
    assert_int_equal(ebb(command), 0);
    assert_said("no steps in it: --every or --function");
}

// It makes no region, and keeps ticks from making any.
static void a_single_call_is_told(void **state)
{
    static const char *const options[] = {"", "--every 3600000"};

    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char command[1024];

        snprintf(command, sizeof command, "record %s -o %s -- /usr/bin/python3 -c 'import ctypes\n"
                 "ctypes.CDLL(None).ebb_record_call(b\"lonely\")'", options[i], path);
        assert_int_equal(ebb(command), 0);
        assert_said("no thread called ebb_record_call() twice with one name");
        assert_null(strstr(said(), "--every"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_that_go_past_the_recorder_are_told),
        cmocka_unit_test(names_are_plain_on_the_terminal),
        cmocka_unit_test(a_period_that_ends_in_no_program_is_told),
        cmocka_unit_test(a_single_call_is_told),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
