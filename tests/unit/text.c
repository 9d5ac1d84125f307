// SPDX-License-Identifier: Apache-2.0
/* text.c - what is printed in one call is cut at 511 bytes, and the callback gets no byte more. */
#include "kit/text.h"

#include "report/text.h"

static struct page page;

static void what_is_too_long_for_a_call_is_cut(void **state) {
    static char name[600];
    for (size_t length = 509; length < sizeof name - 1; length++) {
        struct text text = {page_write, &page, 0};
        page = (struct page){.length = 0};
        memset(name, 'n', length);
        text_print(&text, "%s", name);
        assert_int_equal(text.result, 0);
        assert_int_equal(page.calls, 1);
        assert_int_equal(page.length, length < 511 ? length : 511);
        assert_memory_equal(page.text, name, page.length);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_too_long_for_a_call_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
