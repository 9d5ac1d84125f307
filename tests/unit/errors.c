// SPDX-License-Identifier: Apache-2.0
/*
 * errors.c - the error protocol itself: codes have names, every thread has its own last error,
 * success leaves it alone, and the library says which version it is.
 */
#include "kit/test.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>

static void every_code_has_a_name_of_its_own(void **state) {
    assert_string_equal(ebb_error_name(EBB_OK), "EBB_OK");
    assert_string_equal(ebb_error_name(EBB_E_ARGUMENT), "EBB_E_ARGUMENT");
    assert_string_equal(ebb_error_name(EBB_E_STALE), "EBB_E_STALE");
    assert_string_equal(ebb_error_name(EBB_E_NOT_ANCESTOR), "EBB_E_NOT_ANCESTOR");
    assert_string_equal(ebb_error_name(EBB_E_DUPLICATE), "EBB_E_DUPLICATE");
    assert_string_equal(ebb_error_name(EBB_E_EXCHANGE), "EBB_E_EXCHANGE");
    assert_string_equal(ebb_error_name(EBB_E_THREAD), "EBB_E_THREAD");
    for (int a = 0; a >= EBB_E_THREAD; a--)
        for (int b = 0; b > a; b--)
            assert_string_not_equal(ebb_error_name(a), ebb_error_name(b));
}

static void numbers_that_are_no_code_are_unknown(void **state) {
    static const int numbers[] = {1, 2, 100, EBB_E_THREAD - 1, -1000, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_string_equal(ebb_error_name(numbers[i]), "EBB_E_UNKNOWN");
}

static void *look_and_fail(void *context) {
    int *codes = context;
    codes[0] = ebb_last_error();
    codes[1] = ebb_last_error_text()[0];
    codes[2] = ebb_pool_destroy(NULL);
    codes[3] = ebb_last_error();
    return NULL;
}

static void every_thread_has_an_error_of_its_own(void **state) {
    struct stage *stage = *state;
    int codes[4];
    pthread_t thread;
    assert_no_block(ebb_region_alloc(stage->root, 1, 3), EBB_E_ALIGNMENT);
    assert_int_equal(pthread_create(&thread, NULL, look_and_fail, codes), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(codes[0], EBB_OK);
    assert_int_equal(codes[1], '\0');
    assert_int_equal(codes[2], EBB_E_ARGUMENT);
    assert_int_equal(codes[3], EBB_E_ARGUMENT);
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
    assert_text_names("3");
}

static void success_leaves_the_last_error_alone(void **state) {
    struct stage *stage = *state;
    char text[400];
    assert_no_block(ebb_region_alloc(stage->root, 1, 3), EBB_E_ALIGNMENT);
    snprintf(text, sizeof text, "%s", ebb_last_error_text());
    ebb_region child = OPEN(.parent = stage->root);
    for (size_t bytes = 0; bytes < 100000; bytes = bytes * 2 + 1)
        block_of(child, bytes, 16);
    ebb_mark mark = ebb_region_mark(child);
    assert_int_equal(ebb_region_rewind(child, mark), 0);
    void *block = block_of(child, 9000, 4096);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, NULL, NULL), 0);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    ebb_pool_trim(stage->pool, 0);
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
    assert_string_equal(ebb_last_error_text(), text);
}

static void promoting_what_is_there_already_leaves_the_last_error_alone(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    void *own = block_of(stage->root, 100, 16), *made = block_of(child, 100, 16);
    struct ebb_survivor list[2] = {survivor_of(own, EBB_PROMOTE_AUTO),
                                   survivor_of(made, EBB_PROMOTE_AUTO)};
    assert_no_block(ebb_region_alloc(stage->root, 1, 3), EBB_E_ALIGNMENT);
    assert_int_equal(ebb_promote(child, stage->root, list, 2, NULL), 0);
    assert_int_equal(ebb_last_error(), EBB_E_ALIGNMENT);
}

static void a_text_without_room_says_that_it_is_cut(void **state) {
    char name[800] = "";
    for (size_t before = 0; before < 8; before++) {
        memset(name, 'x', before);
        for (size_t i = before; i + 3 < sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 4);
        struct ebb_type type = {.name = name, .bytes = 1};
        assert_int_equal(ebb_type_register(&type), EBB_E_TYPE);
        const char *text = ebb_last_error_text();
        size_t length = strlen(text);
        assert_in_range(length, 300, 400);
        assert_string_equal(text + length - 3, "...");
        assert_memory_equal(text + length - 6, "\xe2\x82\xac", 3);
    }
    struct ebb_type type = {.name = "short", .bytes = 1};
    assert_int_equal(ebb_type_register(&type), EBB_E_TYPE);
    assert_string_equal(ebb_last_error_text(), "type 'short': 1 bytes, 0 fields");
}

static void a_text_is_one_line_whatever_the_names_are(void **state) {
    struct ebb_type type = {.name = "a\nb\x1b[31m\xc2\x9b\xe2\x80\xae\xff\xc3\xbc", .bytes = 1};
    assert_int_equal(ebb_type_register(&type), EBB_E_TYPE);
    assert_string_equal(ebb_last_error_text(), "type 'a?b?[31m???\xc3\xbc': 1 bytes, 0 fields");
}

static void the_version_is_that_of_the_headers(void **state) {
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", EBB_VERSION_MAJOR, EBB_VERSION_MINOR,
             EBB_VERSION_PATCH);
    assert_string_equal(ebb_version(), expected);
}

/* Makes a mistake and notes what is said about it. */
static int make_mistake(void *context) {
    int *said = context;
    *said = ebb_region_alloc_zeroed((ebb_region){NULL, 0}, 16, 16) ? 0 : ebb_last_error();
    return 0;
}

static void a_cleanup_hears_of_its_errors_whoever_runs_it(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = 1));
    int said = 0;
    struct ebb_cleanup node = {.run = make_mistake, .data = &said};
    assert_refused(ebb_region_resize(stage->root, NULL, 1), EBB_E_FOREIGN);
    for (int i = 0; i < 3; i++) {
        ebb_step step = ebb_step_begin(site, 1); /* closes the one before the last */
        assert_int_equal(said, i < 2 ? 0 : EBB_E_STALE);
        assert_int_equal(i ? 0 : ebb_cleanup_add(step.region, &node), 0);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_of_its_own),
        cmocka_unit_test(numbers_that_are_no_code_are_unknown),
        STAGED(every_thread_has_an_error_of_its_own),
        STAGED(success_leaves_the_last_error_alone),
        STAGED(promoting_what_is_there_already_leaves_the_last_error_alone),
        STAGED(a_cleanup_hears_of_its_errors_whoever_runs_it),
        cmocka_unit_test(a_text_without_room_says_that_it_is_cut),
        cmocka_unit_test(a_text_is_one_line_whatever_the_names_are),
        cmocka_unit_test(the_version_is_that_of_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
