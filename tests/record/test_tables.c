// SPDX-License-Identifier: Apache-2.0
//
// test_tables.c - the tables of ebb replay and report have all rows that there are, and no others.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "known.h"
#include "program.h"
#include "trace_scratch.h"

// There is no room for ebb's reservation. What the others need is told all the same.
static void a_failed_allocator_is_a_failure(void **state)
{
    static const char *const commands[] = {"replay", "report", "report --html=$p.html"};
    struct text *text = new_text();
    char command[1024];

    (void)state;
    for (unsigned i = 0; i < 200; i++)
        add(text, "B train %u 0\na 100 C\na 70000 C\nf 1\nf 2\nE train 0\n", i);
    write_bytes(text->bytes, text->used);
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "--help >/dev/null; p=%s; ulimit -v 1000000; "
                 "%s %s --quick --rounds 1 --allocators ebb,glibc $p 2>&1; code=$?; "
                 "[ ! -e $p.html ] || grep -o 'replayed with ebb, glibc' $p.html; rm -f $p.html; "
                 "exit $code", scratch_path(), getenv("EBB_TOOL"), commands[i]);
        assert_int_equal(run_program("EBB_TOOL", command), 1);
        assert_non_null(strstr(said, ": ebb: ebb_site_create failed: no address space: "));
        assert_non_null(strstr(said, i < 2 ? "  glibc" : "replayed with ebb, glibc"));
    }
}

// Here the one trace is no trace, and the other one not for ebb.
static void the_worst_of_several_traces_is_the_exit_code(void **state)
{
    static const char *const orders[] = {"/dev/null $p", "$p /dev/null"};
    char command[1024];

    (void)state;
    write_steps(20);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "--help >/dev/null; p=%s; ulimit -v 1000000; %s replay "
                 "--quick --rounds 1 --allocators ebb,glibc %s 2>&1 #", scratch_path(),
                 getenv("EBB_TOOL"), orders[i]);
        assert_int_equal(run_program("EBB_TOOL", command), 2);
        assert_said("ebb replay: /dev/null: ");
        assert_said(": ebb: ebb_site_create failed");
    }
}

// A row without a name would be none.
static void a_trace_whose_name_is_an_ending_has_rows(void **state)
{
    struct text *text = new_text();
    char command[1024];

    (void)state;
    for (unsigned i = 0; i < 200; i++)
        add(text, "B train %u 0\na 100 C\nf 1\nE train 0\n", i);
    write_bytes(text->bytes, text->used);
    snprintf(command, sizeof command, "--help >/dev/null; p=%s.d; mkdir $p; cp %s $p/.trace; %s "
             "replay --quick --rounds 1 --allocators glibc $p/.trace 2>&1; code=$?; rm -r $p; "
             "exit $code", scratch_path(), scratch_path(), getenv("EBB_TOOL"));
    assert_int_equal(run_program("EBB_TOOL", command), 0);
    assert_non_null(strstr(said, "  glibc"));
}

// Memory is not all that may be short.
static void what_is_short_has_its_own_name(void **state)
{
    static const char *const cases[][3] = {
        {"ulimit -f 4", "replay --quick --rounds 1 --allocators glibc", "bytes: File too large"},
        {"ulimit -n 5", "report --no-replay --html /dev/null",
         "no file for the figures: Too many open files"}};
    struct text *text = new_text();
    char command[1024];

    (void)state;
    for (unsigned i = 0; i < 2000; i++)
        add(text, "B train %u 0\na 100 C\nf 1\nE train 0\n", i);
    write_bytes(text->bytes, text->used);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "--help >/dev/null; exec 2>&1 3>&- 4>&-; %s; exec %s %s %s #",
                 cases[i][0], getenv("EBB_TOOL"), cases[i][1], scratch_path());
        assert_int_not_equal(run_program("EBB_TOOL", command), 0);
        assert_non_null(strstr(said, cases[i][2]));
    }
}

static void every_kind_of_step_has_a_row(void **state)
{
    struct text *text = new_text();
    char command[512];

    (void)state;
    for (unsigned kind = 0; kind < 256; kind++)
        add(text, "B k%u 0 0\na %u O\nf 1\nE k%u 0\n", kind, 100 + kind, kind);
    write_bytes(text->bytes, text->used);
    snprintf(command, sizeof command, "report --no-replay %s | grep -c '^  k[0-9]'",
             scratch_path());
    assert_int_equal(run_program("EBB_TOOL", command), 0);
    assert_string_equal(said, "256\n");
}

// As long as they may be, these names differ in the last of their bytes.
static void long_names_of_kinds_are_whole(void **state)
{
    struct text *text = new_text();
    char name[TRACE_WORD_MAX];

    (void)state;
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (char last = 'a'; last <= 'b'; last++)
        add(text, "B %s%c 0 0\na 100 O\nf 1\nE %s%c 0\n", name, last, name, last);
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay"), 0);
    for (char last = 'a'; last <= 'b'; last++) {
        char row[100];

        snprintf(row, sizeof row, "\n  %s%c ", name, last);
        assert_non_null(strstr(said, row));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocator_is_a_failure),
        cmocka_unit_test(the_worst_of_several_traces_is_the_exit_code),
        cmocka_unit_test(long_names_of_kinds_are_whole),
        cmocka_unit_test(every_kind_of_step_has_a_row),
        cmocka_unit_test(a_trace_whose_name_is_an_ending_has_rows),
        cmocka_unit_test(what_is_short_has_its_own_name),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
