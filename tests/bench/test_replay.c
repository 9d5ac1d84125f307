// SPDX-License-Identifier: Apache-2.0
//
// test_replay.c - how much of a trace churn replays, what it finds out about a heap on the way, and
// what it says of both.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_scratch.h"

static void write_text(const char *steps)
{
    struct text *text = new_text();

    add(text, "%s", steps);
    write_bytes(text->bytes, text->used);
}

// Runs a script in a folder of its own, which goes afterwards. It begins with the scratch file as
// t.trace; $c is churn on that trace, and $rest its command line, for a copy.
static void passes(const char *script)
{
    char folder[] = "/tmp/ebb-replay-XXXXXX", command[4096];

    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command,
             "cd %s && cp %s t.trace && rest='--traces t.trace --no-spike --rounds 1' && "
             "c=\"$EBB_CHURN $rest\" && (%s); code=$?; rm -r %s; exit $code",
             folder, scratch_path(), script, folder);
    assert_int_equal(system(command), 0);
}

// The replay of the copy of churn has the heap that gives bytes twice, in place of glibc.
static void the_damage_is_found(const char *steps, unsigned bytes)
{
    char script[1024];

    write_text(steps);
    snprintf(script, sizeof script,
             "cp $EBB_CHURN churn && printf '#!/bin/sh\\n[ $GLIBC_TUNABLES ] || "
             "export LD_PRELOAD=%%s\\nexec %%s-replay \"$@\"\\n' $EBB_OVERLAPS $EBB_CHURN "
             ">churn-replay && chmod +x churn-replay && "
             "./churn $rest --quick --allocators glibc,glibc-tuned --json all >said 2>&1; "
             "[ $? = 1 ] && grep -q 't: glibc: a block of %u bytes at .* does not hold what' said "
             "&& grep -A1 '^\"failures\": ' all | grep -q '{\"case\": \"t\", \"allocator\": "
             "\"glibc\", \"text\": \"a block of %u bytes at .*\"}\\],$'", bytes, bytes);
    passes(script);
}

static void no_two_neighbours_have_one_block(void **state)
{
    (void)state;
    the_damage_is_found("B k 0 0\na 1000 O\na 1000 O\nf 2\nf 1\nE k 0\n", 1000);
    the_damage_is_found("B k 0 0\na 100 O\na 1000 O\na 1000 O\nf 2\nf 1\nf 3\nE k 0\n", 1000);
}

static void no_block_is_too_short(void **state)
{
    (void)state;
    the_damage_is_found("B k 0 0\na 60 O\na 60 O\nf 2\nf 1\nE k 0\n", 60);
}

static void the_json_has_what_failed(void **state)
{
    (void)state;
    write_text("B k 0 0\na 100 O\nf 1\nE k 0\n");
    passes("c=\"$EBB_CHURN --traces . --quick --rounds 1 --no-spike --allocators glibc --json all\""
           " && $c >said 2>&1 && grep -qx '\"failures\": \\[\\],' all && echo junk >u.trace && "
           "{ $c >said 2>&1; [ $? = 1 ]; } && grep -A1 '^\"failures\": ' all | grep -q "
           "'{\"case\": \"u\", \"allocator\": \"\", \"text\": \".*TRACE_ERROR_MAGIC.*\"}\\]'");
}

// Only a quick one stops early: what a long recording does last counts as well.
static void a_counting_run_takes_the_whole_trace(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (int step = 0; step < 1020; step++)
        add(text, "B k %d 0\na %d O\nf 1\nE k 0\n", step, step < 1010 ? 8 << 20 : 256 << 20);
    write_bytes(text->bytes, text->used);
    passes("$c --allocators ebb --tsv rows >said 2>&1; [ $? = 0 ] && "
           "[ $(grep 'ebb.peak_rss_bytes' rows | cut -f5) -gt 268435456 ] && "
           "[ $(grep 'ebb.footprint_steps	' rows | cut -f5) = 2040 ]");
}

static void the_steps_that_are_counted_are_of_the_kind_that_is_named(void **state)
{
    (void)state;
    write_text("B train 0 0\na 900 O\nf 1\nE train 0\nB log 0 0\na 9 O\nf 1\nE log 0\n"
               "B train 1 0\na 900 O\nf 1\nE train 0\n");
    passes("$c --quick --allocators glibc >said 2>&1 && "
           "grep -q '^t   2 of 3 steps `train`, ' said");
    write_text("B train 0 0\na 900 O\nf 1\nE train 0\n");
    passes("$c --quick --allocators glibc >said 2>&1 && grep -q '^t   1 steps `train`, ' said");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_neighbours_have_one_block),
        cmocka_unit_test(no_block_is_too_short),
        cmocka_unit_test(the_json_has_what_failed),
        cmocka_unit_test(a_counting_run_takes_the_whole_trace),
        cmocka_unit_test(the_steps_that_are_counted_are_of_the_kind_that_is_named),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
