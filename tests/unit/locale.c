// SPDX-License-Identifier: Apache-2.0
/* locale.c - reports are the same where the program has numbers written with a comma. */
#include "kit/text.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static struct page page;

/* A locale that has nothing but the comma, made in a folder of its own. */
static int begin(void **state) {
    static const char make[] =
        "printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \"\"\\ngrouping -1\\n"
        "END LC_NUMERIC\\n' >$LOCPATH/of; localedef -c -i $LOCPATH/of $LOCPATH/comma 2>/dev/null";
    char folder[] = "/tmp/ebb-locale-XXXXXX";
    if (mkdtemp(folder) && setenv("LOCPATH", folder, 1) == 0) {
        (void)!system(make); /* 1: it warns of what is missing */
        (void)!setlocale(LC_NUMERIC, "comma");
        (void)!system("rm -r $LOCPATH");
    }
    return 0;
}

static bool has_comma(void) {
    char text[8];
    snprintf(text, sizeof text, "%.1f", 0.5);
    return strcmp(text, "0,5") == 0;
}

static void reals_are_numbers_of_json(void **state) {
    struct stage *stage = *state;
    if (!has_comma())
        skip();
    void *members[] = {ebb_node_new_real(stage->root, 0.5), ebb_node_new_real(stage->root, 2)};
    void *list = ebb_node_new_list(stage->root, members, 2);
    page = (struct page){.length = 0};
    assert_int_equal(ebb_report_batch(list, EBB_REPORT_JSON, page_write, &page), 0);
    assert_string_equal(page.text, "{\"list\":[0.5,2.0]}");
    assert_true(has_comma());
}

static void shares_have_a_point(void **state) {
    struct stage *stage = *state;
    if (!has_comma())
        skip();
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    page = (struct page){.length = 0};
    assert_int_equal(ebb_report_site(site, EBB_REPORT_TEXT, page_write, &page), 0);
    assert_non_null(strstr(page.text, "(0.0 % of bytes served)"));
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(reals_are_numbers_of_json),
        STAGED(shares_have_a_point),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
