// SPDX-License-Identifier: Apache-2.0
//
// test_help.c - what ebb's commands say of themselves, to readers and to shells.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static void help_is_there(void **state)
{
    (void)state;
    assert_int_equal(run_program("EBB_TOOL", "--help"), 0);
    assert_int_equal(run_program("EBB_TOOL", "replay --help"), 0);
    assert_int_equal(run_program("EBB_TOOL", "report --help"), 0);
    assert_int_equal(run_program("EBB_TOOL", "advise --help"), 0);
    program_says("EBB_TOOL", "budget --help", 0, "usage: ebb budget [OPTION...] TRACE...\n");
    assert_int_equal(run_program("EBB_TOOL", ""), 2);
}

static void help_with_a_command_is_that_commands(void **state)
{
    (void)state;
    program_says("EBB_TOOL", "help", 0, "usage: ebb COMMAND");
    program_says("EBB_TOOL", "help record", 0, "usage: ebb record [OPTION...]");
    program_says("EBB_TOOL", "help budget", 0, "usage: ebb budget [OPTION...] TRACE...\n");
    program_says("EBB_TOOL", "help report more", 0, "usage: ebb report [OPTION...] TRACE\n");
    program_says("EBB_TOOL", "help nosuch", 2, "no command 'nosuch'");
    program_says("EBB_TOOL", "help help", 2, "no command 'help'");
}

static void help_tells_what_numbers_and_codes_there_are(void **state)
{
    (void)state;
    program_says("EBB_TOOL", "record --every 0 -- true", 2, "from 1 to 3600000");
    program_says("EBB_TOOL", "record --help", 0, "1 to 3600000");
    program_says("EBB_TOOL", "record --help", 0, "126 or 127 if it cannot be run");
    program_says("EBB_TOOL", "record --help", 0, "125 if it ended with");
    program_says("EBB_TOOL", "replay --rounds 0 x", 2, "from 1 to 1000");
    program_says("EBB_TOOL", "replay --help", 0, "1 to 1000");
    program_says("EBB_TOOL", "report --help", 0, "1 to 1000");
}

static void a_letter_asks_for_help_as_well(void **state)
{
    static const char *const commands[] = {"", "record", "replay", "report", "advise", "budget"};
    char arguments[64];

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        snprintf(arguments, sizeof arguments, "%s -h", commands[i]);
        program_says("EBB_TOOL", arguments, 0, "usage: ebb ");
        assert_non_null(strstr(said, commands[i]));
    }
}

static void an_option_that_is_wrong_leads_to_the_help(void **state)
{
    static const char *const lines[][2] = {
        {"record --nosuch", "ebb record: no option '--nosuch'"},
        {"record -qx true", "ebb record: no option '-x'"},
        {"record -o", "ebb record: option '-o' wants a value"},
        {"record --sites=3 true", "ebb record: option '--sites' takes no value"},
        {"replay --quick -xy", "ebb replay: no option '-x'"},
        {"replay --rounds=3 -ry", "ebb replay: no option '-r'"},
        {"report --rounds", "ebb report: option '--rounds' wants a value"},
        {"advise --nosuch=3 x", "ebb advise: no option '--nosuch=3'"},
        {"budget --nosuch x", "ebb budget: no option '--nosuch'"},
        {"budget --bytes", "ebb budget: option '--bytes' wants a value"},
        {"replay", "ebb replay: no trace"},
    };
    char expected[128];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(run_program("EBB_TOOL", lines[i][0]), 2);
        snprintf(expected, sizeof expected, "%s (--help tells more)\n", lines[i][1]);
        assert_string_equal(said, expected);
    }
}

static void words_are_completed(void **state)
{
    static const char *const lines[][2] = {
        {"ebb rep", "replay report"},
        {"ebb report --al", "--allocators"},
        {"ebb report --allocators jem", "jemalloc jemalloc-tuned"},
        {"ebb report --allocators ebb,jem", "ebb,jemalloc ebb,jemalloc-tuned"},
        {"ebb report --allocators = jem", "jemalloc jemalloc-tuned"}, // as bash divides it
        {"ebb report --allocators =", "ebb ebb-unplanned glibc glibc-tuned jemalloc "
                                      "jemalloc-tuned mimalloc tcmalloc"},
        {"ebb record --output = x --lim", "--limit"},
        {"ebb record --lim", "--limit"},
        {"ebb budget --bytes", "--bytes"},
        {"ebb budget --", "--bytes --allocations --promoted --reserved --site --help"},
        {"ebb help re", "record replay report"},
        {"ebb help report re", ""}};
    char command[1024];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(command, sizeof command,
                 "bash -c '. %s; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ebb; "
                 "[ \"${COMPREPLY[*]}\" = \"%s\" ]'",
                 getenv("EBB_COMPLETION"), lines[i][0], lines[i][1]);
        assert_int_equal(system(command), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_there),
        cmocka_unit_test(help_with_a_command_is_that_commands),
        cmocka_unit_test(help_tells_what_numbers_and_codes_there_are),
        cmocka_unit_test(a_letter_asks_for_help_as_well),
        cmocka_unit_test(an_option_that_is_wrong_leads_to_the_help),
        cmocka_unit_test(words_are_completed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
