// SPDX-License-Identifier: Apache-2.0
/* object_report.c - an object in text and JSON, with everything it consists of. */
#include "kit/test.h"

struct pair {
    struct ebb_object object;
    struct ebb_object *left;
    struct ebb_object **rest;
    size_t rest_count;
    void *note;
    size_t note_bytes;
};

static const struct ebb_field pair_fields[] = {
    EBB_FIELD(struct pair, EBB_FIELD_OBJECT, left),
    EBB_FIELD_COUNTED(struct pair, EBB_FIELD_OBJECTS, rest, rest_count),
    EBB_FIELD_COUNTED(struct pair, EBB_FIELD_BYTES, note, note_bytes),
};
static struct ebb_type pair_type = {
    .name = "pair", .bytes = sizeof(struct pair), .fields = pair_fields, .field_count = 3};

/* Names that fill more than a line, equal for long, and one in two lines. */
#define LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\xc3\xa9"
#define LONG LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64

static const struct ebb_field wordy_fields[] = {
    {LONG "left", EBB_FIELD_OBJECT, offsetof(struct pair, left), 0},
    {LONG "rest", EBB_FIELD_OBJECTS, offsetof(struct pair, rest),
     offsetof(struct pair, rest_count)},
    {LONG "note", EBB_FIELD_BYTES, offsetof(struct pair, note), offsetof(struct pair, note_bytes)},
};
static struct ebb_type wordy_type = {
    .name = LONG "\n", .bytes = sizeof(struct pair), .fields = wordy_fields, .field_count = 3};

struct page {
    char text[16384];
    size_t length;
};

static int write_page(void *context, const char *text, size_t bytes) {
    struct page *page = context;
    assert_true(page->length + bytes < sizeof page->text);
    memcpy(page->text + page->length, text, bytes);
    page->length += bytes;
    page->text[page->length] = '\0';
    return 0;
}

static int stop(void *context, const char *text, size_t bytes) {
    return 77;
}

static struct pair *pair_in(ebb_region region) {
    int64_t shape[] = {2, 3}, strides[] = {1, 2};
    struct ebb_dtype dtype = {EBB_FLOAT, 32, 1}, vector = {EBB_INT, 8, 4};
    struct pair *pair = ebb_object_new(region, &pair_type, 0);
    struct ebb_tensor *left = ebb_tensor_new(region, dtype, 2, shape);
    pair->left = &left->object;
    pair->rest_count = 2;
    pair->rest = ebb_region_alloc_zeroed(region, 2 * sizeof *pair->rest, 16);
    pair->rest[0] = &ebb_tensor_view(region, left, 2, shape, strides, 0)->object;
    pair->rest[1] = &ebb_tensor_new(region, vector, 0, NULL)->object;
    pair->note = block_of(region, 12, 16);
    pair->note_bytes = 12;
    assert_int_equal(ebb_object_compose(pair), 0);
    return pair;
}

static void an_object_is_a_tree_of_lines(void **state) {
    struct stage *stage = *state;
    struct page page = {.length = 0};
    assert_int_equal(
        ebb_report_object(pair_in(stage->root), EBB_REPORT_TEXT, write_page, &page), 0);
    assert_string_equal(page.text,
                        "pair\n"
                        "  left: tensor float32 [2,3] strides [3,1], 24 bytes, storage seen by 2\n"
                        "  rest[0]: tensor float32 [2,3] strides [1,2], 24 bytes, storage "
                        "seen by 2\n"
                        "  rest[1]: tensor int8x4 [] strides [], 4 bytes, storage seen by 1\n"
                        "  note: 12 bytes\n");
}

static void an_object_is_one_in_json(void **state) {
    struct stage *stage = *state;
    struct page page = {.length = 0};
    assert_int_equal(
        ebb_report_object(pair_in(stage->root), EBB_REPORT_JSON, write_page, &page), 0);
    assert_string_equal(
        page.text,
        "{\"type\":\"pair\",\"fields\":{\"left\":{\"type\":\"tensor\",\"dtype\":\"float32\","
        "\"shape\":[2,3],\"strides\":[3,1],\"bytes\":24,\"seen_by\":2},"
        "\"rest\":[{\"type\":\"tensor\","
        "\"dtype\":\"float32\",\"shape\":[2,3],\"strides\":[1,2],\"bytes\":24,\"seen_by\":2},"
        "{\"type\":\"tensor\",\"dtype\":\"int8x4\",\"shape\":[],\"strides\":[],"
        "\"bytes\":4,\"seen_by\":1}],\"note\":12}}");
}

static void names_of_any_length_are_told_whole(void **state) {
    struct stage *stage = *state;
    struct pair *pair = ebb_object_new(stage->root, &wordy_type, 0);
    struct page page = {.length = 0};
    pair->rest = ebb_region_alloc_zeroed(stage->root, 2 * sizeof *pair->rest, 16);
    pair->note = block_of(stage->root, 12, 16);
    pair->rest_count = 2;
    pair->note_bytes = 12;
    struct ebb_dtype dtype = {EBB_INT, 8, 1};
    pair->rest[1] = &ebb_tensor_new(stage->root, dtype, 0, NULL)->object;
    assert_int_equal(ebb_object_compose(pair), 0);
    assert_int_equal(ebb_report_object(pair, EBB_REPORT_TEXT, write_page, &page), 0);
    assert_string_equal(page.text,
                        LONG "?\n"
                        "  " LONG "left: (nil)\n"
                        "  " LONG "rest[0]: (nil)\n"
                        "  " LONG "rest[1]: tensor int8 [] strides [], 1 bytes, storage seen by 1\n"
                        "  " LONG "note: 12 bytes\n");
    page.length = 0;
    assert_int_equal(ebb_report_object(pair, EBB_REPORT_JSON, write_page, &page), 0);
    assert_string_equal(page.text,
                        "{\"type\":\"" LONG "\\u000a\",\"fields\":{"
                        "\"" LONG "rest\":[null,{\"type\":\"tensor\",\"dtype\":\"int8\","
                        "\"shape\":[],\"strides\":[],\"bytes\":1,\"seen_by\":1}],"
                        "\"" LONG "note\":12}}");
}

/* Its left, and the first and last of the rest, are the same. */
static struct pair *pair_of(ebb_region region, void *member) {
    struct pair *pair = ebb_object_new(region, &pair_type, 0);
    assert_non_null(pair);
    pair->rest_count = 3;
    pair->rest = ebb_region_alloc_zeroed(region, 3 * sizeof *pair->rest, 16);
    pair->left = pair->rest[0] = pair->rest[2] = member;
    assert_int_equal(ebb_object_compose(pair), 0);
    return pair;
}

static void assert_reported(const void *object, bool tree, enum ebb_report_format format,
                            const char *expected) {
    struct page page = {.length = 0};
    int result = tree ? ebb_report_batch(object, format, write_page, &page)
                      : ebb_report_object(object, format, write_page, &page);
    assert_int_equal(result, 0);
    if (expected)
        assert_string_equal(page.text, expected);
}

static int write_until(void *context, const char *text, size_t bytes) {
    unsigned *left = context;
    return --*left ? 0 : 77;
}

/* Wherever it stops, what it has told so far is told again by the next. */
static void stop_reports(const void *object) {
    for (unsigned i = 0; i < 80; i++) {
        unsigned left = i / 4 + 1;
        enum ebb_report_format format = i % 2 ? EBB_REPORT_TEXT : EBB_REPORT_JSON;
        assert_int_equal(i / 2 % 2 ? ebb_report_batch(object, format, write_until, &left)
                                   : ebb_report_object(object, format, write_until, &left), 77);
    }
}

static void what_several_fields_refer_to_is_told_once(void **state) {
    struct stage *stage = *state;
    void *pair = pair_of(stage->root, ebb_node_new_integer(stage->root, 7));
    stop_reports(pair);
    assert_reported(pair, false, EBB_REPORT_TEXT,
                    "pair\n"
                    "  left: node\n"
                    "  rest[0]: (above)\n"
                    "  rest[1]: (nil)\n"
                    "  rest[2]: (above)\n"
                    "  note: 0 bytes\n");
    assert_reported(pair, false, EBB_REPORT_JSON,
                    "{\"type\":\"pair\",\"fields\":{\"left\":{\"type\":\"node\","
                    "\"fields\":{\"members\":[]}},"
                    "\"rest\":[{\"above\":true},null,{\"above\":true}],\"note\":0}}");
    assert_reported(pair, true, EBB_REPORT_TEXT,
                    "pair\n"
                    "  \"left\": 7\n"
                    "  \"rest\": (above)\n"
                    "  \"rest\": (ended)\n"
                    "  \"rest\": (above)\n"
                    "  \"note\": 0 bytes\n");
    assert_reported(pair, true, EBB_REPORT_JSON,
                    "{\"object\":\"pair\",\"fields\":{\"left\":7,\"rest\":[{\"above\":true},"
                    "{\"ended\":true},{\"above\":true}],\"note\":{\"bytes\":0}}}");
    assert_int_equal(ebb_check_pool(stage->pool), 0);
}

/* Its fields are called as what reports say of every object. */
static const struct ebb_field same_fields[] = {
    {"object", EBB_FIELD_OBJECT, offsetof(struct pair, left), 0},
    {"type", EBB_FIELD_OBJECTS, offsetof(struct pair, rest), offsetof(struct pair, rest_count)},
    {"fields", EBB_FIELD_BYTES, offsetof(struct pair, note), offsetof(struct pair, note_bytes)},
};
static struct ebb_type same_type = {
    .name = "same", .bytes = sizeof(struct pair), .fields = same_fields, .field_count = 3};

static void no_object_has_a_key_twice(void **state) {
    struct stage *stage = *state;
    assert_int_equal(ebb_type_register(&same_type), 0);
    struct pair *inner = ebb_object_new(stage->root, &same_type, 0);
    struct pair *outer = ebb_object_new(stage->root, &same_type, 0);
    outer->left = &inner->object;
    assert_int_equal(ebb_object_compose(outer), 0);
    assert_reported(outer, false, EBB_REPORT_JSON,
                    "{\"type\":\"same\",\"fields\":{\"object\":{\"type\":\"same\","
                    "\"fields\":{\"type\":[],\"fields\":0}},\"type\":[],\"fields\":0}}");
    assert_reported(outer, true, EBB_REPORT_JSON,
                    "{\"object\":\"same\",\"fields\":{\"object\":{\"object\":\"same\","
                    "\"fields\":{\"object\":{\"ended\":true},\"type\":[],"
                    "\"fields\":{\"bytes\":0}}},\"type\":[],\"fields\":{\"bytes\":0}}}");
}

/* One is called as an element of the other might be. */
static const struct ebb_field indexed_fields[] = {
    {"rest[0]", EBB_FIELD_OBJECT, offsetof(struct pair, left), 0},
    {"rest", EBB_FIELD_OBJECTS, offsetof(struct pair, rest), offsetof(struct pair, rest_count)},
};
static struct ebb_type indexed_type = {
    .name = "indexed", .bytes = sizeof(struct pair), .fields = indexed_fields, .field_count = 2};
static struct ebb_type bare_type = {.name = "bare", .bytes = sizeof(struct ebb_object)};

static void elements_have_no_keys_that_a_field_might_have(void **state) {
    struct stage *stage = *state;
    assert_int_equal(ebb_type_register(&indexed_type), 0);
    struct pair *pair = ebb_object_new(stage->root, &indexed_type, 0);
    pair->rest_count = 1;
    pair->rest = ebb_region_alloc_zeroed(stage->root, sizeof *pair->rest, 16);
    pair->left = (void *)ebb_node_new_integer(stage->root, 1);
    pair->rest[0] = (void *)ebb_node_new_integer(stage->root, 2);
    assert_int_equal(ebb_object_compose(pair), 0);
    assert_reported(pair, false, EBB_REPORT_JSON,
                    "{\"type\":\"indexed\",\"fields\":{"
                    "\"rest[0]\":{\"type\":\"node\",\"fields\":{\"members\":[]}},"
                    "\"rest\":[{\"type\":\"node\",\"fields\":{\"members\":[]}}]}}");
}

static void a_type_without_fields_has_none_in_json(void **state) {
    struct stage *stage = *state;
    assert_int_equal(ebb_type_register(&bare_type), 0);
    void *bare = ebb_object_new(stage->root, &bare_type, 0);
    assert_reported(bare, false, EBB_REPORT_TEXT, "bare\n");
    assert_reported(bare, false, EBB_REPORT_JSON, "{\"type\":\"bare\",\"fields\":{}}");
    assert_reported(bare, true, EBB_REPORT_JSON, "{\"object\":\"bare\",\"fields\":{}}");
}

/* There are 3 to the 30th ways to the innermost one. */
static void reports_are_no_longer_than_there_are_objects(void **state) {
    struct stage *stage = *state;
    void *pair = ebb_node_new_integer(stage->root, 7);
    for (int i = 0; i < 30; i++)
        pair = pair_of(stage->root, pair);
    for (int format = EBB_REPORT_TEXT; format <= EBB_REPORT_JSON; format++) {
        assert_reported(pair, false, (enum ebb_report_format)format, NULL);
        assert_reported(pair, true, (enum ebb_report_format)format, NULL);
    }
}

static void what_cannot_be_reported_is_refused(void **state) {
    struct stage *stage = *state;
    struct page page = {.length = 0};
    struct pair *pair = pair_in(stage->root);
    assert_refused(ebb_report_object(pair, (enum ebb_report_format)7, write_page, &page),
                   EBB_E_ARGUMENT);
    assert_refused(ebb_report_object(pair, EBB_REPORT_TEXT, NULL, NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_report_object(pair->note, EBB_REPORT_TEXT, write_page, &page), EBB_E_TYPE);
    assert_int_equal(ebb_report_object(pair, EBB_REPORT_TEXT, stop, NULL), 77);
    assert_int_equal(page.length, 0);
}

static int register_types(void **state) {
    return ebb_type_register(&pair_type) || ebb_type_register(&wordy_type);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(an_object_is_a_tree_of_lines),
        STAGED(an_object_is_one_in_json),
        STAGED(names_of_any_length_are_told_whole),
        STAGED(what_several_fields_refer_to_is_told_once),
        STAGED(no_object_has_a_key_twice),
        STAGED(elements_have_no_keys_that_a_field_might_have),
        STAGED(a_type_without_fields_has_none_in_json),
        STAGED(reports_are_no_longer_than_there_are_objects),
        STAGED(what_cannot_be_reported_is_refused),
    };
    return cmocka_run_group_tests(tests, register_types, NULL);
}
