// SPDX-License-Identifier: Apache-2.0
//
// test_advise.c - ebb advise finds the steps of programs in which much else is even; and no page is
// put where its recording is.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "trace_scratch.h"

// A start that repeats evenly, and leaves all of it. Then steps with one block from their begin to
// their end: of their 31 places all but the first have as much alive as any other time.
static void steps_begin_at_one_of_many_places(void **state)
{
    static const unsigned bytes[] = {50000, 65536, 70000, 99999, 100000, 123456};

    (void)state;
    for (size_t run = 0; run < sizeof bytes / sizeof *bytes; run++) {
        struct text *text = new_text();

        for (unsigned i = 0; i < 400; i++)
            add(text, "a 505 O\na %u O\n", 1000 + i);
        for (unsigned step = 0; step < 200; step++) {
            add(text, "a %u C\n", bytes[run]);
            for (unsigned i = 0; i < 30; i++)
                add(text, "a %u C\n", 10 + i);
            for (unsigned i = 1; i <= 31; i++)
                add(text, "f %u\n", i);
        }
        write_bytes(text->bytes, text->used);
        assert_int_equal(run_on_scratch("EBB_TOOL", "advise"), 0);
        assert_non_null(strstr(said, "every 62 events (+- 0 %), 200 times"));
        assert_non_null(strstr(said, "would end 100.0 % of the bytes"));
    }
}

// Other lines are none: of threads, regions and phases.
static void distances_are_counted_in_events(void **state)
{
    struct text *text = new_text();

    (void)state;
    for (unsigned step = 0; step < 200; step++)
        add(text, "a 4000 C\na 80 C\nP forward\nt 1\nB part %u 0\na 90 C\nf 1\nE part 0\nt 0\n"
            "f 2\nf 3\n", step);
    write_bytes(text->bytes, text->used);
    assert_int_equal(run_on_scratch("EBB_TOOL", "advise --search"), 0);
    assert_non_null(strstr(said, "every 6 events (+- 0 %), 200 times"));
}

// Of four steps a replay that leaves out three as warm-up would measure one.
static void few_steps_have_little_warm_up(void **state)
{
    struct text *text = new_text();
    char arguments[512], path[256];
    struct trace_error error;
    struct ebb_trace *trace;

    (void)state;
    for (unsigned step = 0; step < 5; step++)
        add(text, "a 4000 C\na 80 C\nf 1\nf 2\n");
    write_bytes(text->bytes, text->used);
    snprintf(path, sizeof path, "%s.few.trace.gz", scratch_path());
    snprintf(arguments, sizeof arguments, "advise -o %s", path);
    assert_int_equal(run_on_scratch("EBB_TOOL", arguments), 0);
    trace = trace_read(path, &error);
    assert_non_null(trace);
    assert_int_equal(trace->warmup, 1);
    trace_free(trace);
    unlink(path);
}

// What is written is not what is read, under whatever name: a recording is not to be had again.
static void a_page_does_not_take_the_place_of_its_recording(void **state)
{
    struct text *text = new_text();
    char command[1000];

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        add(text, "B step %u 0\na 100 C\nf 1\nE step 0\n", i);
    write_bytes(text->bytes, text->used);
    snprintf(command, sizeof command, "report --no-replay --html %s", scratch_path());
    assert_int_equal(run_on_scratch("EBB_TOOL", command), 2);
    assert_non_null(strstr(said, "is what is to be read"));
    snprintf(command, sizeof command, "ln -s %s %s.link", scratch_path(), scratch_path());
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "report --no-replay --html %s.link", scratch_path());
    assert_int_equal(run_on_scratch("EBB_TOOL", command), 2);
    snprintf(command, sizeof command, "rm %s.link", scratch_path());
    assert_int_equal(system(command), 0);
    assert_int_equal(run_on_scratch("EBB_TOOL", "report --no-replay"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_does_not_take_the_place_of_its_recording),
        cmocka_unit_test(steps_begin_at_one_of_many_places),
        cmocka_unit_test(distances_are_counted_in_events),
        cmocka_unit_test(few_steps_have_little_warm_up),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
