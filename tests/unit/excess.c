// SPDX-License-Identifier: Apache-2.0
/*
 * excess.c - a cost is compared with a budget; what the record of it held before does not matter.
 *
 * Steps keep such a record on the stack, with whatever an earlier step left there.
 */
#include "kit/test.h"

#include "step/budget.h"

#include <stdio.h>

static void count(void *context, const struct ebb_churn_excess *excess) {
    assert_non_null(excess->site);
    ++*(unsigned *)context;
}

static bool find(struct excess *excess, unsigned *told, uint64_t bytes) {
    struct ebb_site_options options = {.name = "tight", .on_excess = count, .context = told,
                                       .budget = {.bytes = 1000}};
    return excess_find(excess, &options, 7, &(struct ebb_churn_budget){.bytes = bytes});
}

static void what_was_told_once_is_not_told_again(void **state) {
    struct excess excess;
    unsigned told = 0;
    assert_true(find(&excess, &told, 1001));
    excess_tell(&excess);
    assert_int_equal(told, 1);
    assert_false(find(&excess, &told, 1000));
    assert_null(excess.told.site);
    excess_tell(&excess);
    assert_int_equal(told, 1);
}

static void a_sentence_begins_anew(void **state) {
    struct excess excess;
    unsigned told = 0;
    memset(&excess, 'x', sizeof excess);
    for (uint64_t bytes = 1001; bytes < 1004; bytes++) {
        char expected[64];
        snprintf(expected, sizeof expected, "step 7 of 'tight': %u bytes over 1000",
                 (unsigned)bytes);
        assert_true(find(&excess, &told, bytes));
        assert_string_equal(excess.told.text, expected);
        assert_string_equal(excess.told.site, "tight");
    }
}

/* The program may print the sentence; what it looks the site up by stays as it was. */
static void a_sentence_has_the_name_as_a_line_can_show_it(void **state) {
    struct ebb_site_options options = {.name = "a\nroot: \x1b[2J", .budget = {.bytes = 10}};
    struct excess excess;
    assert_true(excess_find(&excess, &options, 7, &(struct ebb_churn_budget){.bytes = 11}));
    assert_string_equal(excess.told.text, "step 7 of 'a?root: ?[2J': 11 bytes over 10");
    assert_string_equal(excess.told.site, options.name);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_once_is_not_told_again),
        cmocka_unit_test(a_sentence_begins_anew),
        cmocka_unit_test(a_sentence_has_the_name_as_a_line_can_show_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
