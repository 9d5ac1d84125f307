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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_that_go_past_the_recorder_are_told),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
