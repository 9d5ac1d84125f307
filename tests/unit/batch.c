// SPDX-License-Identifier: Apache-2.0
/* batch.c - trees: structure, values, paths, comparison, reports; random ones of all kinds. */
#include "kit/boxes.h"
#include "kit/sight.h"
#include "kit/text.h"
#include "kit/trees.h"

#include <math.h>

static const struct ebb_dtype f32 = {EBB_FLOAT, 32, 1};

static void *integer(ebb_region region, int64_t value) {
    void *node = ebb_node_new_integer(region, value);
    assert_non_null(node);
    return node;
}

static struct ebb_tensor *tensor_of(ebb_region region, int ndim, const int64_t *shape) {
    struct ebb_tensor *tensor = ebb_tensor_new(region, f32, ndim, shape);
    assert_non_null(tensor);
    pattern_fill(tensor->data, ebb_tensor_bytes(tensor), 3);
    return tensor;
}

/* {"image": image, "target": Target(boxes, id), "tags": ["x", none], "pair": (true, 1.5)} */
static void *example_of(ebb_region region) {
    struct ebb_sample *image = ebb_sample_new(
        region, tensor_of(region, 3, (const int64_t[]){3, 4, 5}),
        &(struct ebb_sample_info){.kind = EBB_SAMPLE_IMAGE});
    struct ebb_sample *boxes = ebb_sample_new(
        region, tensor_of(region, 2, (const int64_t[]){2, 4}),
        &(struct ebb_sample_info){
            .kind = EBB_SAMPLE_BOXES, .format = EBB_BOX_XYXY, .canvas = {4, 5}});
    void *target = ebb_node_new_named_tuple(region, "Target", (const char *[]){"boxes", "id"},
                                            (void *[]){boxes, integer(region, 17)}, 2);
    void *tags = ebb_node_new_list(
        region, (void *[]){ebb_node_new_string(region, "x\n\"y\""), ebb_node_new_none(region)}, 2);
    void *pair = ebb_node_new_tuple(
        region, (void *[]){ebb_node_new_bool(region, true), ebb_node_new_real(region, 1.5)}, 2);
    void *dict = ebb_node_new_dict(region, (const char *[]){"image", "target", "tags", "pair"},
                                   (void *[]){image, target, tags, pair}, 4);
    assert_non_null(dict);
    return dict;
}

static void a_tree_is_one_object(void **state) {
    struct stage *stage = *state;
    void *tree = example_of(stage->root), *listed[4];
    assert_int_equal(ebb_region_list_objects(stage->root, listed, 4), 1);
    assert_ptr_equal(listed[0], tree);
    assert_int_equal(ebb_region_list_objects(stage->root, NULL, 4), 0);
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
    assert_int_equal(ebb_object_end(tree), 0);
    struct sight after = sight_of(stage->root);
    assert_int_equal(after.all.live, 0);
    assert_int_equal(after.all.created_outside, after.all.ended_outside);
    assert_int_equal(after.stats.blocks.current, 0);
}

static void members_are_found_by_place_key_and_path(void **state) {
    struct stage *stage = *state;
    void *tree = example_of(stage->root);
    int64_t id = 0;
    assert_int_equal(ebb_node_count(tree), 4);
    assert_ptr_equal(ebb_node_get(tree, ""), tree);
    assert_ptr_equal(ebb_node_get(tree, "image"), ebb_node_at(tree, 0));
    assert_ptr_equal(ebb_node_find(tree, "target"), ebb_node_at(tree, 1));
    assert_int_equal(ebb_node_read_integer(ebb_node_get(tree, "target/id"), &id), 0);
    assert_int_equal(id, 17);
    assert_ptr_equal(ebb_node_get(tree, "target/1"), ebb_node_get(tree, "target/id"));
    assert_string_equal(ebb_node_string(ebb_node_get(tree, "tags/0")), "x\n\"y\"");
    assert_string_equal(ebb_node_key(tree, 3), "pair");
    assert_string_equal(ebb_node_name(ebb_node_at(tree, 1)), "Target");
    assert_non_null(ebb_object_as(ebb_node_get(tree, "target/boxes"), &ebb_type_sample));
    assert_int_equal(ebb_node_kind(ebb_node_get(tree, "pair")), EBB_NODE_TUPLE);
    assert_int_equal(ebb_node_kind(ebb_node_get(tree, "image")), 0);
}

static void values_are_read_as_what_they_are(void **state) {
    struct stage *stage = *state;
    bool truth = false;
    double real = 0;
    int64_t number = 0;
    size_t count = 0;
    assert_int_equal(ebb_node_read_bool(ebb_node_new_bool(stage->root, true), &truth), 0);
    assert_true(truth);
    assert_int_equal(ebb_node_read_real(ebb_node_new_real(stage->root, -0.25), &real), 0);
    assert_true(real > -0.26 && real < -0.24);
    assert_int_equal(ebb_node_read_integer(integer(stage->root, INT64_MIN), &number), 0);
    assert_true(number == INT64_MIN);
    char bytes[2000];
    pattern_fill(bytes, sizeof bytes, 4);
    const void *held = ebb_node_bytes(ebb_node_new_bytes(stage->root, bytes, 2000), &count);
    assert_int_equal(count, 2000);
    assert_true(pattern_holds(held, 2000, 4));
    assert_non_null(ebb_node_bytes(ebb_node_new_bytes(stage->root, NULL, 0), &count));
    assert_int_equal(count, 0);
    assert_string_equal(ebb_node_string(ebb_node_new_string(stage->root, "")), "");
}

static void empty_nodes_and_odd_names_are_kept(void **state) {
    struct stage *stage = *state;
    void *list = ebb_node_new_list(stage->root, NULL, 0);
    void *dict = ebb_node_new_dict(stage->root, (const char *[]){"", "a/b", "7"},
                                   (void *[]){list, ebb_node_new_dict(stage->root, NULL, NULL, 0),
                                              integer(stage->root, 1)}, 3);
    assert_non_null(dict);
    assert_ptr_equal(ebb_node_find(dict, ""), list);
    assert_ptr_equal(ebb_node_find(dict, "a/b"), ebb_node_at(dict, 1));
    assert_ptr_equal(ebb_node_get(dict, "7"), ebb_node_at(dict, 2));
    assert_int_equal(ebb_node_count(list), 0);
    assert_int_equal(ebb_node_kind(ebb_node_at(dict, 1)), EBB_NODE_DICT);
    assert_string_equal(ebb_node_kind_name(EBB_NODE_DICT), "dict");
    void *outer = ebb_node_new_dict(stage->root, (const char *[]){"in"}, &dict, 1);
    assert_ptr_equal(ebb_node_get(outer, "in/"), list);
}

static void trees_go_as_deep_as_the_bound_and_no_deeper(void **state) {
    struct stage *stage = *state;
    void *tree = integer(stage->root, 1);
    for (int depth = 0; depth < EBB_DEPTH_MAX; depth++)
        assert_non_null(tree = ebb_node_new_list(stage->root, &tree, 1));
    void *same = integer(stage->root, 1);
    for (int depth = 0; depth < EBB_DEPTH_MAX; depth++)
        same = ebb_node_new_list(stage->root, &same, 1);
    assert_true(ebb_batch_equal(tree, same));
    struct sight before = sight_of(stage->root);
    assert_null(ebb_node_new_list(stage->root, &tree, 1));
    assert_sight_refused(stage->root, &before, ebb_last_error(), EBB_E_DEPTH, "64", NULL);
    static struct page page;
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_batch(tree, EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_int_equal(page_count(&page, "list"), EBB_DEPTH_MAX);
    assert_int_equal(ebb_object_end(tree), 0);
    assert_int_equal(ebb_object_end(same), 0);
}

static void differences_are_seen(void **state) {
    struct stage *stage = *state;
    void *tree = example_of(stage->root), *same = example_of(stage->root);
    assert_true(ebb_batch_equal(tree, tree));
    assert_true(ebb_batch_equal(tree, same));
    struct ebb_sample *boxes = ebb_node_get(same, "target/boxes");
    struct ebb_sample *image = ebb_node_get(same, "image");
    int64_t *numbers[] = {&((struct ebb_node *)ebb_node_get(same, "target/id"))->integer,
                          &boxes->canvas[1], &image->data->shape[1]};
    int32_t *words[] = {&boxes->format, &boxes->clamping, (int32_t *)image->data->data + 59};
    for (int i = 0; i < 3; i++) {
        *numbers[i] ^= 1;
        assert_false(ebb_batch_equal(tree, same));
        *numbers[i] ^= 1;
        *words[i] ^= 1;
        assert_false(ebb_batch_equal(tree, same));
        *words[i] ^= 1;
        assert_true(ebb_batch_equal(tree, same));
    }
    image->data->dtype.code = EBB_INT;
    assert_false(ebb_batch_equal(tree, same));
    image->data->dtype.code = EBB_FLOAT;
    assert_int_equal(ebb_object_end(ebb_node_get(same, "tags/1")), 0);
    assert_false(ebb_batch_equal(tree, same));
    assert_false(ebb_batch_equal(tree, boxes));
    assert_false(ebb_batch_equal(ebb_node_get(tree, "pair"), ebb_node_get(tree, "tags")));
}

static void order_and_names_are_part_of_a_tree(void **state) {
    struct stage *stage = *state;
    void *trees[6];
    for (int i = 0; i < 6; i++) {
        void *pair[] = {integer(stage->root, 1), integer(stage->root, 1)};
        const char *const keys[] = {i == 1 ? "b" : "a", i == 1 ? "a" : "b"};
        trees[i] = i < 2   ? ebb_node_new_dict(stage->root, keys, pair, 2)
                   : i == 2 ? ebb_node_new_list(stage->root, pair, 2)
                   : i == 3 ? ebb_node_new_tuple(stage->root, pair, 2)
                            : ebb_node_new_named_tuple(stage->root, i == 4 ? "P" : "Q", keys, pair,
                                                       2);
    }
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            assert_int_equal(ebb_batch_equal(trees[i], trees[k]), i == k);
}

static void elements_are_compared_whatever_their_strides(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *rows = tensor_of(stage->root, 2, (const int64_t[]){3, 4});
    struct ebb_tensor *columns = ebb_tensor_new(stage->root, f32, 2, (const int64_t[]){4, 3});
    float *from = rows->data, *to = columns->data;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            to[k * 3 + i] = from[i * 4 + k];
    struct ebb_tensor *turned = ebb_tensor_view(stage->root, columns, 2, (const int64_t[]){3, 4},
                                                (const int64_t[]){1, 3}, 0);
    assert_true(ebb_batch_equal(rows, turned));
    assert_true(ebb_batch_equal(turned, rows));
    ((uint32_t *)columns->data)[11] ^= 1;
    assert_false(ebb_batch_equal(rows, turned));
    struct ebb_tensor *scalar = tensor_of(stage->root, 0, NULL);
    struct ebb_tensor *other = tensor_of(stage->root, 0, NULL);
    assert_true(ebb_batch_equal(scalar, other));
    *(float *)other->data = 12;
    assert_false(ebb_batch_equal(scalar, other));
    assert_true(ebb_batch_equal(tensor_of(stage->root, 2, (const int64_t[]){0, 4}),
                                tensor_of(stage->root, 2, (const int64_t[]){0, 4})));
}

/* One element, as often as nobody could look at it. */
static struct ebb_tensor *repeated(ebb_region region, float number) {
    struct ebb_tensor *base = ebb_tensor_new_zeroed(region, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 1,
                                                    (int64_t[]){2});
    float *numbers = base->data;
    numbers[0] = numbers[1] = number;
    struct ebb_tensor *tensor =
        ebb_tensor_view(region, base, 4, (int64_t[]){1 << 18, 1 << 18, 2, 1 << 18},
                        (int64_t[]){0, 0, 1, 0}, 0);
    assert_non_null(tensor);
    return tensor;
}

static void elements_that_lie_on_each_other_are_compared_once(void **state) {
    struct stage *stage = *state;
    const float numbers[] = {1, 2, NAN};
    for (size_t i = 0; i < 3; i++) {
        struct ebb_tensor *left = repeated(stage->root, numbers[i]);
        assert_true(ebb_batch_equal(left, repeated(stage->root, numbers[i])));
        assert_false(ebb_batch_equal(left, repeated(stage->root, numbers[(i + 1) % 3])));
        struct ebb_tensor *differs = repeated(stage->root, numbers[i]);
        ((float *)differs->data)[1] = 7;
        assert_false(ebb_batch_equal(left, differs));
    }
}

static void reals_are_compared_byte_by_byte(void **state) {
    struct stage *stage = *state;
    assert_true(ebb_batch_equal(ebb_node_new_real(stage->root, (double)NAN),
                                ebb_node_new_real(stage->root, (double)NAN)));
    assert_false(ebb_batch_equal(ebb_node_new_real(stage->root, 0.0),
                                 ebb_node_new_real(stage->root, -0.0)));
}

/* Nothing of an empty sequence at the end is in the members of a packed one. */
static void sequences_are_as_many_and_padded_as_long(void **state) {
    struct stage *stage = *state;
    static const int64_t lengths[] = {2, 1, 0};
    struct ebb_pack_options options = {.size = sizeof options, .enforce_sorted = true};
    struct ebb_packed *packed[3];
    struct ebb_ragged *ragged[3];
    for (int i = 0; i < 3; i++) { /* of 2, 3 and 3 sequences, padded to 2, 2 and 4 steps */
        struct ebb_tensor *padded =
            tensor_of(stage->root, 2, (const int64_t[]){i < 2 ? 2 : 4, 3});
        size_t count = i ? 3 : 2;
        if (!i)
            padded = ebb_tensor_view(stage->root, padded, 2, (const int64_t[]){2, 2},
                                     (const int64_t[]){3, 1}, 0);
        packed[i] = ebb_padded_pack(stage->root, padded, lengths, count, &options);
        ragged[i] = ebb_padded_join(stage->root, padded, lengths, count, NULL);
        struct ebb_packed *twin =
            ebb_padded_pack(stage->root, padded, lengths, count, &options);
        assert_true(packed[i] && ragged[i] && twin && ebb_batch_equal(packed[i], twin));
        assert_true(ebb_batch_equal(packed[i]->data, packed[0]->data));
        assert_true(ebb_batch_equal(packed[i]->batch_sizes, packed[0]->batch_sizes));
        assert_true(ebb_batch_equal(ragged[i]->data, ragged[0]->data));
        for (int k = 0; k < i; k++) {
            assert_false(ebb_batch_equal(packed[i], packed[k]));
            assert_false(ebb_batch_equal(ragged[i], ragged[k]));
        }
    }
}

/* Each of 60 boxes has the next one twice: as many ways lead to the last as there are numbers. */
static struct box *shared_boxes(ebb_region region, float value) {
    struct ebb_tensor *last = ebb_tensor_from(region, f32, 1, (const int64_t[]){1}, &value);
    struct ebb_object *below = &last->object;
    struct box *box = NULL;
    for (int depth = 0; depth < 60; depth++) {
        box = box_in(region);
        box->left = box->right = below;
        assert_int_equal(ebb_object_compose(box), 0);
        below = &box->object;
    }
    return box;
}

static void members_that_are_shared_are_compared_once(void **state) {
    struct stage *stage = *state;
    struct box *boxes[] = {shared_boxes(stage->root, 1), shared_boxes(stage->root, 1),
                           shared_boxes(stage->root, 2)};
    assert_true(ebb_batch_equal(boxes[0], boxes[1]));
    assert_false(ebb_batch_equal(boxes[0], boxes[2]));
    assert_false(ebb_batch_equal(boxes[2], boxes[1]));
    assert_false(ebb_batch_equal(boxes[1], boxes[0]->left));
    assert_true(ebb_batch_equal(boxes[2], boxes[2]));
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    ebb_region child = OPEN(.parent = stage->root);
    struct box *pair = box_in(child);
    struct ebb_tensor *floats[] = {floats_in(child, 3), floats_in(child, 3)};
    struct box *other = box_in(child);
    struct ebb_tensor *one = floats_in(child, 3);
    pair->left = &floats[0]->object, pair->right = &floats[1]->object;
    other->left = other->right = &one->object;
    assert_int_equal(ebb_object_compose(pair) | ebb_object_compose(other), 0);
    assert_true(ebb_batch_equal(pair, other)); /* who shares what is not looked at */
    ((char *)floats[1]->data)[11] ^= 1;
    assert_false(ebb_batch_equal(pair, other));
    assert_false(ebb_batch_equal(other, pair));
    assert_int_equal(ebb_region_close(child), 0);
}

static void a_tree_is_printed_line_by_line(void **state) {
    static struct page page;
    struct stage *stage = *state;
    memset(&page, 0, sizeof page);
    assert_int_equal(
        ebb_report_batch(example_of(stage->root), EBB_REPORT_TEXT, page_write, &page), 0);
    assert_string_equal(page.text, "dict\n"
                                   "  \"image\": image\n"
                                   "    \"data\": float32 [3, 4, 5]\n"
                                   "  \"target\": named tuple \"Target\"\n"
                                   "    \"boxes\": boxes XYXY, soft clamping, canvas 4 x 5\n"
                                   "      \"data\": float32 [2, 4]\n"
                                   "    \"id\": 17\n"
                                   "  \"tags\": list\n"
                                   "    \"x\\u000a\\\"y\\\"\"\n"
                                   "    none\n"
                                   "  \"pair\": tuple\n"
                                   "    true\n"
                                   "    1.5\n");
}

static void a_tree_is_printed_as_json(void **state) {
    static struct page page;
    struct stage *stage = *state;
    memset(&page, 0, sizeof page);
    assert_int_equal(
        ebb_report_batch(example_of(stage->root), EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_string_equal(
        page.text,
        "{\"dict\":{\"image\":{\"sample\":\"image\",\"data\":{\"tensor\":\"float32\","
        "\"shape\":[3,4,5]}},\"target\":{\"named tuple\":\"Target\",\"fields\":{\"boxes\":"
        "{\"sample\":\"boxes\",\"format\":\"XYXY\",\"clamping\":\"soft\",\"canvas\":[4,5],"
        "\"data\":{\"tensor\":\"float32\",\"shape\":[2,4]}},\"id\":17}},"
        "\"tags\":{\"list\":[\"x\\u000a\\\"y\\\"\",null]},\"pair\":{\"tuple\":[true,1.5]}}}");
}

/* Bytes of no UTF-8 beside the characters that have their numbers. */
static void keys_that_differ_are_printed_so(void **state) {
    static struct page page;
    struct stage *stage = *state;
    void *members[4];
    for (int i = 0; i < 4; i++)
        members[i] = integer(stage->root, i);
    static const char *const keys[] = {"\xe9", "\xc3\xa9", "\x80", "\xc2\x80"};
    void *dict = ebb_node_new_dict(stage->root, keys, members, 4);
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_batch(dict, EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_string_equal(page.text, "{\"dict\":{\"\\udce9\":0,\"\xc3\xa9\":1,"
                                   "\"\\udc80\":2,\"\\u0080\":3}}");
}

static void odd_values_are_printed_as_json(void **state) {
    static struct page page;
    struct stage *stage = *state;
    const double reals[] = {3, -0.0, 1e300, (double)NAN, (double)INFINITY, -(double)INFINITY};
    void *members[8];
    for (int i = 0; i < 6; i++)
        members[i] = ebb_node_new_real(stage->root, reals[i]);
    members[6] = ebb_node_new_bytes(stage->root, "abc", 3);
    members[7] = integer(stage->root, 5);
    void *list = ebb_node_new_list(stage->root, members, 8);
    assert_int_equal(ebb_object_end(members[7]), 0);
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_batch(list, EBB_REPORT_JSON, page_write, &page), 0);
    assert_true(page_is_json(&page));
    assert_string_equal(page.text, "{\"list\":[3.0,-0.0,1.0000000000000001e+300,"
                                   "{\"real\":\"nan\"},{\"real\":\"inf\"},{\"real\":\"-inf\"},"
                                   "{\"bytes\":3},{\"ended\":true}]}");
    assert_int_equal(ebb_node_count(list), 8);
    assert_null(ebb_node_at(list, 7));
    assert_int_equal(ebb_last_error(), EBB_E_RELEASED);
}

static void assert_printed(const void *object, enum ebb_report_format format, const char *text) {
    static struct page page;
    memset(&page, 0, sizeof page);
    assert_int_equal(ebb_report_batch(object, format, page_write, &page), 0);
    assert_true(format == EBB_REPORT_TEXT || page_is_json(&page));
    assert_string_equal(page.text, text);
}

static void a_kind_of_ones_own_stays_in_its_line(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *data = tensor_of(stage->root, 1, (const int64_t[]){3});
    struct ebb_sample_info info = {.kind = ebb_sample_register("of two\nlines")};
    struct ebb_sample *sample = ebb_sample_new(stage->root, data, &info);
    assert_non_null(sample);
    assert_printed(sample, EBB_REPORT_TEXT, "of two?lines\n  \"data\": float32 [3]\n");
    assert_printed(sample, EBB_REPORT_JSON,
                   "{\"sample\":\"of two\\u000alines\",\"data\":{\"tensor\":\"float32\","
                   "\"shape\":[3]}}");
}

static void types_of_ones_own_are_printed_by_their_fields(void **state) {
    struct stage *stage = *state;
    struct box *box = box_in(stage->root);
    struct ebb_sample_info info = {
        .kind = ebb_sample_register("sound"), .bytes = "44.1", .byte_count = 4};
    struct ebb_tensor *sound = tensor_of(stage->root, 2, (const int64_t[]){2, 9});
    box->left = &floats_in(stage->root, 3)->object;
    box->bytes = block_of(stage->root, 9, 8);
    box->byte_count = 9;
    box->parts = ebb_region_alloc_zeroed(stage->root, 3 * sizeof *box->parts, 8);
    box->part_count = 3;
    box->parts[0] = &box_in(stage->root)->object;
    box->parts[2] = &ebb_sample_new(stage->root, sound, &info)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_printed(box, EBB_REPORT_TEXT, "box\n"
                                         "  \"left\": float32 [3]\n"
                                         "  \"right\": (ended)\n"
                                         "  \"parts\": box\n"
                                         "    \"left\": (ended)\n"
                                         "    \"right\": (ended)\n"
                                         "    \"bytes\": 0 bytes\n"
                                         "  \"parts\": (ended)\n"
                                         "  \"parts\": sound, 4 bytes of metadata\n"
                                         "    \"data\": float32 [2, 9]\n"
                                         "  \"bytes\": 9 bytes\n");
    assert_printed(box, EBB_REPORT_JSON,
                   "{\"object\":\"box\",\"fields\":{"
                   "\"left\":{\"tensor\":\"float32\",\"shape\":[3]},"
                   "\"right\":{\"ended\":true},\"parts\":[{\"object\":\"box\",\"fields\":{"
                   "\"left\":{\"ended\":true},\"right\":{\"ended\":true},\"parts\":[],"
                   "\"bytes\":{\"bytes\":0}}},{\"ended\":true},{\"sample\":\"sound\","
                   "\"metadata\":4,\"data\":{\"tensor\":\"float32\",\"shape\":[2,9]}}],"
                   "\"bytes\":{\"bytes\":9}}}");
}

/* It may be anything: an address of nothing, or what leads back, twice at each step. */
static void a_report_does_not_follow_what_is_no_member(void **state) {
    struct stage *stage = *state;
    struct box *box = box_in(stage->root);
    box->left = box->right = &box->object;
    assert_printed(box, EBB_REPORT_TEXT, "box\n"
                                         "  \"left\": (no member)\n"
                                         "  \"right\": (no member)\n"
                                         "  \"bytes\": 0 bytes\n");
    box->left = (void *)(uintptr_t)8;
    box->parts = (void *)(uintptr_t)16;
    box->part_count = 1000;
    assert_printed(box, EBB_REPORT_JSON,
                   "{\"object\":\"box\",\"fields\":{\"left\":{\"no member\":true},"
                   "\"right\":{\"no member\":true},\"parts\":[],\"bytes\":{\"bytes\":0}}}");
    box->parts = NULL;
    assert_printed(box, EBB_REPORT_TEXT, "box\n"
                                         "  \"left\": (no member)\n"
                                         "  \"right\": (no member)\n"
                                         "  \"bytes\": 0 bytes\n");
    assert_int_equal(ebb_object_end(box), 0);
}

static void a_report_stops_when_it_is_told_to(void **state) {
    static struct page page;
    struct stage *stage = *state;
    void *tree = example_of(stage->root);
    for (unsigned at = 1; at < 40; at++) {
        memset(&page, 0, sizeof page);
        page.stop_at = at;
        assert_int_equal(ebb_report_batch(tree, EBB_REPORT_JSON, page_write, &page), 77);
        assert_int_equal(page.calls, at);
    }
}

/* Built twice alike, once with other values; printed, compared, ended: nothing is left. */
static void random_trees_are_built_compared_printed_and_ended(void **state) {
    static struct page text, json;
    struct stage *stage = *state;
    unsigned differ = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        ebb_region step = OPEN(.parent = stage->root);
        void *tree = tree_make(step, seed, seed, TREE_ANY);
        void *same = tree_make(step, seed, seed, TREE_ANY);
        void *other = tree_make(stage->root, seed, seed + 1000, TREE_ANY);
        assert_true(tree && same && other);
        assert_true(ebb_batch_equal(tree, same));
        differ += !ebb_batch_equal(tree, other);
        assert_true(ebb_batch_equal(other, tree) == ebb_batch_equal(tree, other));
        memset(&text, 0, sizeof text);
        memset(&json, 0, sizeof json);
        int result = ebb_report_batch(tree, EBB_REPORT_JSON, page_write, &json);
        assert_true(result == 0 || json.length > sizeof json.text - 600);
        assert_true(result != 0 || page_is_json(&json));
        result = ebb_report_batch(other, EBB_REPORT_TEXT, page_write, &text);
        assert_true(result == 0 || text.length > sizeof text.text - 600);
        assert_int_equal(ebb_object_end(tree), 0);
        assert_int_equal(ebb_object_end(same), 0);
        assert_int_equal(ebb_object_end(other), 0);
        for (int i = 0; i < 2; i++) {
            struct sight left = sight_of(i ? stage->root : step);
            assert_int_equal(left.all.live, 0);
            assert_int_equal(left.listed, 0);
            assert_int_equal(left.stats.blocks.current, 0);
        }
        assert_int_equal(ebb_region_close(step), 0);
    }
    assert_true(differ > 200);
}

/* By copy, by relinking, up, down and to another tree: what arrives is what went. */
static void random_trees_go_to_other_regions_as_they_are(void **state) {
    struct stage *stage = *state;
    ebb_region elsewhere = OPEN(.pool = stage->pool);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        ebb_region middle = OPEN(.parent = stage->root), step = OPEN(.parent = middle);
        void *twin = tree_make(elsewhere, seed, seed, TREE_ANY);
        void *tree = tree_make(step, seed, seed, TREE_ANY), *list[] = {tree};
        struct ebb_own_options options = {.size = sizeof options, .mode = (int)(seed % 3)};
        struct ebb_promoted cost = {0};
        assert_int_equal(
            ebb_objects_close_keeping(step, middle, list, 1, &options, &cost, NULL), 0);
        assert_true(ebb_batch_equal(list[0], twin));
        tree = ebb_object_move(list[0], elsewhere);
        assert_true(ebb_batch_equal(tree, twin));
        tree = ebb_object_move(tree, stage->root);
        assert_int_equal(ebb_object_attach(tree, middle), 0);
        assert_true(ebb_batch_equal(tree, twin));
        tree = ebb_object_detach(tree);
        assert_int_equal(ebb_region_close(middle), 0);
        assert_true(ebb_batch_equal(tree, twin));
        assert_int_equal(ebb_object_end(tree), 0);
        assert_int_equal(ebb_object_end(twin), 0);
        assert_int_equal(sight_of(stage->root).all.live + sight_of(elsewhere).all.live, 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
    assert_int_equal(ebb_region_close(elsewhere), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_tree_is_one_object),
        STAGED(members_are_found_by_place_key_and_path),
        STAGED(values_are_read_as_what_they_are),
        STAGED(empty_nodes_and_odd_names_are_kept),
        STAGED(trees_go_as_deep_as_the_bound_and_no_deeper),
        STAGED(differences_are_seen),
        STAGED(order_and_names_are_part_of_a_tree),
        STAGED(elements_are_compared_whatever_their_strides),
        STAGED(elements_that_lie_on_each_other_are_compared_once),
        STAGED(reals_are_compared_byte_by_byte),
        STAGED(sequences_are_as_many_and_padded_as_long),
        STAGED(members_that_are_shared_are_compared_once),
        STAGED(a_tree_is_printed_line_by_line),
        STAGED(a_tree_is_printed_as_json),
        STAGED(keys_that_differ_are_printed_so),
        STAGED(odd_values_are_printed_as_json),
        STAGED(a_kind_of_ones_own_stays_in_its_line),
        STAGED(types_of_ones_own_are_printed_by_their_fields),
        STAGED(a_report_does_not_follow_what_is_no_member),
        STAGED(a_report_stops_when_it_is_told_to),
        STAGED(random_trees_are_built_compared_printed_and_ended),
        STAGED(random_trees_go_to_other_regions_as_they_are),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
