// SPDX-License-Identifier: Apache-2.0
/* collate.c - samples become a batch: every kind of leaf, every way, and random trees. */
#include "kit/sight.h"
#include "kit/trees.h"

#define RULES(...) \
    (&(struct ebb_collate_options){ \
        .size = sizeof(struct ebb_collate_options), \
        .rules = (const struct ebb_collate_rule[]){__VA_ARGS__}, \
        .rule_count = sizeof((const struct ebb_collate_rule[]){__VA_ARGS__}) / \
                      sizeof(struct ebb_collate_rule)})

static const struct ebb_dtype f32 = {EBB_FLOAT, 32, 1}, i32 = {EBB_INT, 32, 1};

/* A tensor of these int32. */
static struct ebb_tensor *ints(ebb_region region, int ndim, const int64_t *shape,
                               const int32_t *values) {
    struct ebb_tensor *tensor = ebb_tensor_from(region, i32, ndim, shape, values);
    assert_non_null(tensor);
    return tensor;
}

static void *collate(ebb_region region, void *const *samples, size_t count,
                     const struct ebb_collate_options *options) {
    void *batch = ebb_batch_collate(region, samples, count, options, NULL);
    if (!batch)
        print_error("%s\n", ebb_last_error_text());
    assert_non_null(batch);
    return batch;
}

static void assert_ints(const struct ebb_tensor *tensor, const int32_t *wanted, size_t count) {
    assert_true(ebb_tensor_is_contiguous(tensor));
    assert_int_equal(ebb_tensor_count(tensor), count);
    assert_memory_equal(tensor->data, wanted, count * sizeof *wanted);
}

static void tensors_are_stacked(void **state) {
    struct stage *stage = *state;
    ebb_region batches = OPEN(.pool = stage->pool);
    struct ebb_tensor *wide = ints(stage->root, 2, (const int64_t[]){3, 2},
                                   (const int32_t[]){1, 4, 2, 5, 3, 6});
    void *samples[] = {
        ints(stage->root, 2, (const int64_t[]){2, 3}, (const int32_t[]){7, 8, 9, 10, 11, 12}),
        ebb_tensor_view(stage->root, wide, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2}, 0)};
    struct ebb_collated done = {.copied_bytes = 1};
    struct ebb_tensor *batch = ebb_batch_collate(batches, samples, 2, NULL, &done);
    assert_int_equal(batch->ndim, 3);
    assert_int_equal(batch->shape[0], 2);
    assert_ints(batch, (const int32_t[]){7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6}, 12);
    assert_int_equal(done.tensors, 2);
    assert_int_equal(done.copied_bytes, 49);
    assert_int_equal(done.padded_bytes, 0);
    assert_int_equal(stats_of(batches).blocks.current, 1);
    assert_int_equal(stats_of(batches).blocks.total, 1);
    assert_int_equal(ebb_region_close(batches), 0);
}

static void scalars_and_nothings_are_stacked(void **state) {
    struct stage *stage = *state;
    void *scalars[] = {ints(stage->root, 0, NULL, (const int32_t[]){5}),
                       ints(stage->root, 0, NULL, (const int32_t[]){6})};
    struct ebb_tensor *batch = collate(stage->root, scalars, 2, NULL);
    assert_int_equal(batch->ndim, 1);
    assert_ints(batch, (const int32_t[]){5, 6}, 2);
    void *nothings[] = {ints(stage->root, 2, (const int64_t[]){0, 3}, NULL),
                        ints(stage->root, 2, (const int64_t[]){0, 3}, NULL)};
    batch = collate(stage->root, nothings, 2, NULL);
    assert_int_equal(batch->ndim, 3);
    assert_int_equal(batch->shape[2], 3);
    assert_int_equal(ebb_tensor_count(batch), 0);
    batch = collate(stage->root, scalars, 1, NULL);
    assert_int_equal(batch->shape[0], 1);
}

static void tensors_are_padded_to_the_largest_in_every_dimension(void **state) {
    struct stage *stage = *state;
    void *samples[] = {
        ints(stage->root, 2, (const int64_t[]){1, 3}, (const int32_t[]){1, 2, 3}),
        ints(stage->root, 2, (const int64_t[]){2, 1}, (const int32_t[]){4, 5}),
        ints(stage->root, 2, (const int64_t[]){0, 2}, NULL)};
    const struct ebb_value nine = {.kind = EBB_VALUE_INT, {9}};
    struct ebb_collated done = {0};
    struct ebb_tensor *right = ebb_batch_collate(
        stage->root, samples, 3, RULES({.path = "", .how = EBB_COLLATE_PAD, .value = nine}), &done);
    assert_ints(right, (const int32_t[]){1, 2, 3, 9, 9, 9, 4, 9, 9, 5, 9, 9, 9, 9, 9, 9, 9, 9}, 18);
    assert_int_equal(done.copied_bytes, 20);
    assert_int_equal(done.padded_bytes, 13 * 4);
    struct ebb_tensor *left = collate(
        stage->root, samples, 3,
        RULES({.path = "", .how = EBB_COLLATE_PAD, .left = true, .value = nine}));
    assert_ints(left, (const int32_t[]){9, 9, 9, 1, 2, 3, 9, 9, 4, 9, 9, 5, 9, 9, 9, 9, 9, 9}, 18);
}

static void elements_that_are_no_numbers_are_padded_with_zero_bytes(void **state) {
    struct stage *stage = *state;
    static const struct ebb_dtype large = {.code = EBB_OPAQUE, .bits = 64, .lanes = 80};
    void *samples[2];
    for (int64_t i = 0; i < 2; i++) {
        struct ebb_tensor *one = ebb_tensor_new(stage->root, large, 1, (const int64_t[]){i + 1});
        memset(one->data, 7, ebb_tensor_bytes(one));
        samples[i] = one;
    }
    struct ebb_tensor *batch =
        collate(stage->root, samples, 2, RULES({.path = "", .how = EBB_COLLATE_PAD}));
    assert_non_null(batch);
    assert_int_equal(ebb_tensor_bytes(batch), 4 * 640);
    const unsigned char *bytes = batch->data;
    for (size_t i = 0; i < 4 * 640; i++)
        assert_int_equal(bytes[i], i / 640 == 1 ? 0 : 7);
    const struct ebb_value others[] = {ebb_value_int(1), ebb_value_bool(true),
                                       ebb_value_float(-0.0), ebb_value_complex(0, -0.0)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_no_block(ebb_batch_collate(stage->root, samples, 2,
                                          RULES({.path = "", .how = EBB_COLLATE_PAD,
                                                 .value = others[i]}), NULL), EBB_E_DTYPE);
}

static void zeros_of_all_kinds_are_zero_bytes(void **state) {
    struct stage *stage = *state;
    static const struct ebb_dtype dtypes[] = {{EBB_OPAQUE, 8, 1}, {EBB_FLOAT, 32, 100}};
    const struct ebb_value zeros[] = {ebb_value_int(0), ebb_value_uint(0), ebb_value_float(0),
                                      ebb_value_complex(0, 0), ebb_value_bool(false)};
    for (size_t i = 0; i < 2 * sizeof zeros / sizeof *zeros; i++) {
        struct ebb_tensor *samples[2];
        for (int64_t at = 0; at < 2; at++) {
            samples[at] = ebb_tensor_new(stage->root, dtypes[i % 2], 1, (int64_t[]){at + 1});
            memset(samples[at]->data, 7, ebb_tensor_bytes(samples[at]));
        }
        struct ebb_tensor *batch = collate(
            stage->root, (void *const *)samples, 2,
            RULES({.path = "", .how = EBB_COLLATE_PAD, .value = zeros[i / 2]}));
        const unsigned char *bytes = batch->data;
        size_t element = ebb_dtype_bytes(dtypes[i % 2]);
        for (size_t at = 0; at < 4 * element; at++)
            assert_int_equal(bytes[at], at / element == 1 ? 0 : 7);
        assert_int_equal(ebb_object_end(batch), 0);
    }
}

static void values_become_tensors_and_lists(void **state) {
    struct stage *stage = *state;
    static const char *const keys[] = {"truth", "number", "real", "text", "bytes", "none"};
    void *samples[3], *members[6];
    for (int i = 0; i < 3; i++) {
        char text[] = {'x', (char)('0' + i), '\0'};
        members[0] = ebb_node_new_bool(stage->root, i == 1);
        members[1] = ebb_node_new_integer(stage->root, INT64_MAX - i);
        members[2] = ebb_node_new_real(stage->root, i / 4.0);
        members[3] = ebb_node_new_string(stage->root, text);
        members[4] = ebb_node_new_bytes(stage->root, text, (size_t)i);
        members[5] = ebb_node_new_none(stage->root);
        samples[i] = ebb_node_new_dict(stage->root, keys, members, 6);
    }
    void *batch = collate(stage->root, samples, 3, NULL);
    const struct ebb_tensor *truth = ebb_node_find(batch, "truth");
    assert_int_equal(truth->dtype.code, EBB_BOOL);
    assert_memory_equal(truth->data, "\0\1\0", 3);
    const int64_t *number = ((struct ebb_tensor *)ebb_node_find(batch, "number"))->data;
    assert_true(number[0] == INT64_MAX && number[2] == INT64_MAX - 2);
    const double *real = ((struct ebb_tensor *)ebb_node_find(batch, "real"))->data;
    assert_true(real[1] > 0.24 && real[1] < 0.26);
    assert_string_equal(ebb_node_string(ebb_node_get(batch, "text/2")), "x2");
    size_t count = 9;
    assert_memory_equal(ebb_node_bytes(ebb_node_get(batch, "bytes/2"), &count), "x2", 2);
    assert_int_equal(count, 2);
    assert_int_equal(ebb_node_kind(ebb_node_find(batch, "none")), EBB_NODE_NONE);
}

static void keys_may_come_in_another_order(void **state) {
    struct stage *stage = *state;
    void *samples[2];
    for (int i = 0; i < 2; i++) {
        const char *const keys[] = {i ? "b" : "a", i ? "c" : "b", i ? "a" : "c"};
        void *members[3];
        for (int k = 0; k < 3; k++)
            members[k] = ebb_node_new_integer(stage->root, 10 * i + keys[k][0]);
        samples[i] = ebb_node_new_dict(stage->root, keys, members, 3);
    }
    void *batch = collate(stage->root, samples, 2, NULL);
    for (int k = 0; k < 3; k++) {
        const int64_t *pair = ((struct ebb_tensor *)ebb_node_at(batch, (size_t)k))->data;
        assert_int_equal(pair[0], 'a' + k);
        assert_int_equal(pair[1], 'a' + k + 10);
        assert_int_equal(ebb_node_key(batch, (size_t)k)[0], 'a' + k);
    }
}

static struct ebb_sample *boxes_of(ebb_region region, int64_t rows, int64_t height) {
    struct ebb_tensor *tensor = ebb_tensor_new(region, f32, 2, (const int64_t[]){rows, 4});
    pattern_fill(tensor->data, ebb_tensor_bytes(tensor), (unsigned)height);
    struct ebb_sample *sample =
        ebb_sample_new(region, tensor,
                       &(struct ebb_sample_info){.kind = EBB_SAMPLE_BOXES,
                                                 .format = EBB_BOX_XYWH,
                                                 .clamping = EBB_CLAMP_HARD,
                                                 .canvas = {height, 2 * height}});
    assert_non_null(sample);
    return sample;
}

static void boxes_become_ragged_and_come_back_as_they_were(void **state) {
    struct stage *stage = *state;
    static const int64_t rows[] = {3, 0, 1, 7};
    void *samples[4];
    for (int i = 0; i < 4; i++)
        samples[i] = boxes_of(stage->root, rows[i], 100 + i);
    struct ebb_sample *batch = collate(stage->root, samples, 4, NULL);
    assert_int_equal(batch->kind, EBB_SAMPLE_BOXES);
    assert_int_equal(batch->format, EBB_BOX_XYWH);
    assert_int_equal(batch->clamping, EBB_CLAMP_HARD);
    assert_int_equal(batch->data->shape[0], 11);
    assert_memory_equal(batch->offsets->data, ((const int64_t[]){0, 3, 3, 4, 11}), 40);
    for (size_t i = 0; i < 4; i++) {
        struct ebb_sample *row = ebb_sample_row(stage->root, batch, i);
        assert_true(ebb_batch_equal(row, samples[i]));
    }
}

static void images_stay_images_and_users_kinds_theirs(void **state) {
    struct stage *stage = *state;
    struct ebb_sample_info infos[] = {
        {.kind = EBB_SAMPLE_IMAGE},
        {.kind = EBB_SAMPLE_VIDEO},
        {.kind = EBB_SAMPLE_MASK},
        {.kind = ebb_sample_register("spectrum"), .bytes = "16 kHz", .byte_count = 7}};
    for (int k = 0; k < 4; k++) {
        void *samples[3];
        for (int i = 0; i < 3; i++) {
            struct ebb_tensor *tensor =
                ebb_tensor_new_zeroed(stage->root, f32, 4, (const int64_t[]){2, 3, 4, 5});
            *(float *)tensor->data = (float)i;
            samples[i] = ebb_sample_new(stage->root, tensor, &infos[k]);
        }
        struct ebb_sample *batch = collate(stage->root, samples, 3, NULL), *row;
        struct ebb_sample_info info;
        assert_int_equal(ebb_sample_read(batch, &info), 0);
        assert_int_equal(info.kind, infos[k].kind);
        assert_int_equal(info.byte_count, infos[k].byte_count);
        if (info.byte_count)
            assert_memory_equal(info.bytes, infos[k].bytes, info.byte_count);
        assert_int_equal(batch->data->ndim, 5);
        assert_int_equal((int)((float *)batch->data->data)[240], 2);
        assert_null(row = ebb_sample_row(stage->root, batch, 0));
    }
}

static void rules_cover_a_leaf_or_all_below(void **state) {
    struct stage *stage = *state;
    static const char *const keys[] = {"tokens", "deep"};
    static const int32_t values[] = {1, 2, 3, 4, 5};
    void *samples[2];
    for (int i = 0; i < 2; i++) {
        int64_t shape[] = {2 + 3 * i};
        void *pair[] = {ints(stage->root, 1, shape, values), ints(stage->root, 1, shape, values)};
        void *members[] = {ints(stage->root, 1, shape, values),
                           ebb_node_new_tuple(stage->root, pair, 2)};
        samples[i] = ebb_node_new_dict(stage->root, keys, members, 2);
    }
    void *batch = collate(
        stage->root, samples, 2,
        RULES({.path = "", .how = EBB_COLLATE_PAD},
              {.path = "deep", .how = EBB_COLLATE_PAD, .value = {.kind = EBB_VALUE_INT, {7}}},
              {.path = "deep/1", .how = EBB_COLLATE_PAD, .left = true}));
    static const int32_t right[] = {1, 2, 0, 0, 0, 1, 2, 3, 4, 5};
    static const int32_t seven[] = {1, 2, 7, 7, 7, 1, 2, 3, 4, 5};
    static const int32_t left[] = {0, 0, 0, 1, 2, 1, 2, 3, 4, 5};
    assert_ints(ebb_node_find(batch, "tokens"), right, 10);
    assert_ints(ebb_node_get(batch, "deep/0"), seven, 10);
    assert_ints(ebb_node_get(batch, "deep/1"), left, 10);
    void *all = collate(stage->root, samples, 2,
                        RULES({.path = "deep/1", .how = EBB_COLLATE_STACK},
                              {.path = "", .how = EBB_COLLATE_PAD}));
    assert_int_equal(((struct ebb_tensor *)ebb_node_get(all, "deep/1"))->shape[1], 5);
}

static void tensors_of_any_length_are_packed_or_joined(void **state) {
    struct stage *stage = *state;
    static const int32_t values[] = {1, 2, 3, 4, 5};
    void *samples[] = {ints(stage->root, 1, (const int64_t[]){2}, values),
                       ints(stage->root, 1, (const int64_t[]){5}, values)};
    struct ebb_ragged *ragged = ebb_object_as(
        collate(stage->root, samples, 2, RULES({.path = "", .how = EBB_COLLATE_RAGGED})),
        &ebb_type_ragged);
    assert_ints(ragged->data, (const int32_t[]){1, 2, 1, 2, 3, 4, 5}, 7);
    assert_memory_equal(ragged->offsets->data, ((const int64_t[]){0, 2, 7}), 24);
    struct ebb_packed *packed = ebb_object_as(
        collate(stage->root, samples, 2, RULES({.path = "", .how = EBB_COLLATE_PACK})),
        &ebb_type_packed);
    assert_ints(packed->data, (const int32_t[]){1, 1, 2, 2, 3, 4, 5}, 7);
}

static void points_are_ragged_or_stacked(void **state) {
    struct stage *stage = *state;
    void *samples[2];
    for (int i = 0; i < 2; i++) {
        struct ebb_tensor *tensor =
            ebb_tensor_new_zeroed(stage->root, i32, 3, (const int64_t[]){3, 5, 2});
        samples[i] = ebb_sample_new(
            stage->root, tensor,
            &(struct ebb_sample_info){.kind = EBB_SAMPLE_POINTS, .canvas = {7, 8}});
    }
    struct ebb_sample *ragged = collate(stage->root, samples, 2, NULL);
    assert_int_equal(ragged->data->shape[0], 6);
    assert_non_null(ragged->canvases);
    struct ebb_sample *stacked =
        collate(stage->root, samples, 2, RULES({.path = "", .how = EBB_COLLATE_STACK}));
    assert_int_equal(stacked->data->ndim, 4);
    assert_int_equal(stacked->canvas[1], 8);
    assert_null(stacked->canvases);
}

static void a_string_is_copied_to_its_end(void **state) {
    const struct stage *stage = *state;
    struct ebb_node *string = ebb_object_new(stage->root, &ebb_type_node, 4);
    assert_non_null(string);
    memcpy(string + 1, "a\0b", 4);
    string->kind = EBB_NODE_STRING;
    string->byte_count = 3;
    assert_int_equal(ebb_object_compose(string), 0);
    struct ebb_node *batch = ebb_batch_collate(stage->root, (void *[]){string}, 1, NULL, NULL);
    assert_non_null(batch);
    assert_true(ebb_batch_equal(ebb_node_at(batch, 0), string));
}

static void strings_may_be_as_deep_as_a_list_can_be(void **state) {
    struct stage *stage = *state;
    for (int strings = 0; strings < 2; strings++) {
        int depth = EBB_DEPTH_MAX - strings;
        void *samples[2];
        for (int i = 0; i < 2; i++) {
            samples[i] = strings ? ebb_node_new_string(stage->root, "x")
                                 : ebb_node_new_integer(stage->root, 1);
            for (int k = 0; k < depth; k++)
                samples[i] = ebb_node_new_tuple(stage->root, &samples[i], 1);
        }
        void *batch = collate(stage->root, samples, 2, NULL), *at = batch;
        for (int k = 0; k < depth; k++)
            at = ebb_node_at(at, 0);
        assert_int_equal(ebb_node_kind(at), strings ? EBB_NODE_LIST : 0);
        assert_int_equal(ebb_object_end(batch), 0);
    }
}

/* ---- random trees, against the plainest model ---- */

/* Element number `at` of a tensor in row-major order. */
static const char *element(const struct ebb_tensor *tensor, int64_t at) {
    int64_t offset = 0;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        offset += at % tensor->shape[i] * tensor->strides[i];
        at /= tensor->shape[i];
    }
    return (const char *)tensor->data + offset * (int64_t)ebb_dtype_bytes(tensor->dtype);
}

/* The elements of `tensor` lie in `batch` from element `from` on. */
static void assert_elements(const struct ebb_tensor *batch, int64_t from,
                            const struct ebb_tensor *tensor) {
    size_t bytes = ebb_dtype_bytes(tensor->dtype);
    assert_true(ebb_dtype_equal(batch->dtype, tensor->dtype));
    for (int64_t i = 0; i < ebb_tensor_count(tensor); i++)
        assert_memory_equal(element(batch, from + i), element(tensor, i), bytes);
}

static void assert_stacked(const struct ebb_tensor *batch, size_t at, size_t count,
                           const struct ebb_tensor *tensor) {
    assert_int_equal(batch->ndim, tensor->ndim + 1);
    assert_int_equal(batch->shape[0], count);
    for (int i = 0; i < tensor->ndim; i++)
        assert_int_equal(batch->shape[i + 1], tensor->shape[i]);
    assert_elements(batch, (int64_t)at * ebb_tensor_count(tensor), tensor);
}

static void assert_sample(const struct ebb_sample *batch, size_t at, size_t count,
                          const struct ebb_sample *sample) {
    assert_int_equal(batch->kind, sample->kind);
    assert_int_equal(batch->format, sample->format);
    if (!batch->offsets) {
        assert_stacked(batch->data, at, count, sample->data);
        return;
    }
    const int64_t *row = (const int64_t *)batch->offsets->data + at;
    const int64_t *canvas = (const int64_t *)batch->canvases->data + 2 * at;
    assert_int_equal(batch->offsets->shape[0], count + 1);
    assert_int_equal(row[1] - row[0], sample->data->shape[0]);
    assert_memory_equal(canvas, sample->canvas, sizeof sample->canvas);
    assert_elements(batch->data, row[0] * sample->data->shape[1], sample->data);
}

static void assert_value(const void *batch, size_t at, const struct ebb_node *node) {
    const struct ebb_tensor *tensor = batch;
    if (node->kind == EBB_NODE_INTEGER)
        assert_true(((const int64_t *)tensor->data)[at] == node->integer);
    else if (node->kind == EBB_NODE_REAL)
        assert_memory_equal((const double *)tensor->data + at, &node->real, sizeof(double));
    else if (node->kind == EBB_NODE_BOOL)
        assert_int_equal(((const unsigned char *)tensor->data)[at], node->truth);
    else if (node->kind == EBB_NODE_NONE)
        assert_int_equal(ebb_node_kind(batch), EBB_NODE_NONE);
    else
        assert_true(ebb_batch_equal(ebb_node_at(batch, at), node));
}

static void assert_holds(const void *batch, size_t at, size_t count, const void *sample) {
    int kind = ebb_node_kind(sample);
    if (ebb_object_as((void *)sample, &ebb_type_tensor)) {
        assert_stacked(batch, at, count, sample);
    } else if (ebb_object_as((void *)sample, &ebb_type_sample)) {
        assert_sample(ebb_object_as((void *)batch, &ebb_type_sample), at, count, sample);
    } else if (kind < EBB_NODE_LIST) {
        assert_value(batch, at, sample);
    } else {
        assert_int_equal(ebb_node_kind(batch), kind);
        assert_int_equal(ebb_node_count(batch), ebb_node_count(sample));
        for (size_t i = 0; i < ebb_node_count(sample); i++) {
            if (kind == EBB_NODE_DICT || kind == EBB_NODE_NAMED_TUPLE)
                assert_string_equal(ebb_node_key(batch, i), ebb_node_key(sample, i));
            assert_holds(ebb_node_at(batch, i), at, count, ebb_node_at(sample, i));
        }
    }
}

static void random_trees_are_collated_as_the_plainest_model_would(void **state) {
    struct stage *stage = *state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        ebb_region loader = OPEN(.parent = stage->root), step = OPEN(.parent = stage->root);
        size_t count = 1 + seed % 5;
        void *samples[5];
        for (size_t i = 0; i < count; i++)
            assert_non_null(samples[i] = tree_make(loader, seed, 7 * seed + i, TREE_COLLATABLE));
        struct sight before = sight_of(loader);
        void *batch = collate(step, samples, count, NULL);
        assert_sight_same(loader, &before);
        for (size_t i = 0; i < count; i++)
            assert_holds(batch, i, count, samples[i]);
        assert_int_equal(sight_of(step).listed, 1);
        assert_int_equal(ebb_object_end(batch), 0);
        assert_int_equal(sight_of(step).all.live, 0);
        assert_int_equal(stats_of(step).blocks.current, 0);
        assert_int_equal(ebb_region_close(step), 0);
        assert_int_equal(ebb_region_close(loader), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(tensors_are_stacked),
        STAGED(scalars_and_nothings_are_stacked),
        STAGED(tensors_are_padded_to_the_largest_in_every_dimension),
        STAGED(elements_that_are_no_numbers_are_padded_with_zero_bytes),
        STAGED(zeros_of_all_kinds_are_zero_bytes),
        STAGED(values_become_tensors_and_lists),
        STAGED(keys_may_come_in_another_order),
        STAGED(boxes_become_ragged_and_come_back_as_they_were),
        STAGED(images_stay_images_and_users_kinds_theirs),
        STAGED(rules_cover_a_leaf_or_all_below),
        STAGED(tensors_of_any_length_are_packed_or_joined),
        STAGED(points_are_ragged_or_stacked),
        STAGED(a_string_is_copied_to_its_end),
        STAGED(strings_may_be_as_deep_as_a_list_can_be),
        STAGED(random_trees_are_collated_as_the_plainest_model_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
