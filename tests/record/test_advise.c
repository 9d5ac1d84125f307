// SPDX-License-Identifier: Apache-2.0
//
// test_advise.c - ebb advise finds the steps of programs in which much else is even.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_begin_at_one_of_many_places),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
