// SPDX-License-Identifier: Apache-2.0
/* check.c - a broken invariant ends the process, and says which and where. */
#include "kit/ends.h"

#include "base/check.h"

static void claim(void *holds) {
    CHECK_ALWAYS(*(bool *)holds);
}

static void a_broken_invariant_ends_the_process(void **state) {
    char said[300];
    assert_int_equal(signal_of(claim, &(bool){true}, said, sizeof said), 0);
    assert_string_equal(said, "");
    assert_int_equal(signal_of(claim, &(bool){false}, said, sizeof said), SIGABRT);
    assert_non_null(strstr(said, "ebb: broken invariant: *(bool *)holds ("));
    assert_non_null(strstr(said, "check.c:"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_invariant_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
