// SPDX-License-Identifier: Apache-2.0
/*
 * d13_batches.c - cases 164 to 167 of part D13: what collate, promotion, pinning and sending keep.
 *
 * 168 and 170 to 172 are in tests/handoff and tests/python. A pin hook of a user's class (163) is
 * Python's, and torchvision's switch of return types (166) has no place in C: what a function
 * returns is what its name says.
 */
#include "conformance/law.h"

static const struct ebb_dtype f32 = {EBB_FLOAT, 32, 1}, i64 = {EBB_INT, 64, 1};

static struct ebb_tensor *zeros(ebb_region region, struct ebb_dtype dtype, int ndim,
                                const int64_t *shape) {
    struct ebb_tensor *tensor = ebb_tensor_new_zeroed(region, dtype, ndim, shape);
    assert_non_null(tensor);
    return tensor;
}

static void c164_texts_stay_what_they_are(void **state) {
    struct stage *stage = *state;
    void *samples[2];
    for (int i = 0; i < 2; i++) {
        void *pair[] = {ebb_node_new_string(stage->root, i ? "größe" : ""),
                        ebb_node_new_bytes(stage->root, "\0\1", 2)};
        samples[i] = ebb_node_new_tuple(stage->root, pair, 2);
    }
    void *batch = ebb_batch_collate(stage->root, samples, 2, NULL, NULL);
    size_t count = 0;
    assert_int_equal(ebb_node_kind(batch), EBB_NODE_TUPLE);
    assert_string_equal(ebb_node_string(ebb_node_get(batch, "0/0")), "");
    assert_string_equal(ebb_node_string(ebb_node_get(batch, "0/1")), "größe");
    assert_memory_equal(ebb_node_bytes(ebb_node_get(batch, "1/1"), &count), "\0\1", 2);
    assert_int_equal(count, 2);
}

struct unknown {
    struct ebb_object object;
    int value;
};

static void c164_an_unknown_leaf_is_an_error(void **state) {
    static struct ebb_type type = {.name = "unknown leaf", .bytes = sizeof(struct unknown)};
    struct stage *stage = *state;
    assert_int_equal(ebb_type_register(&type), 0);
    void *leaf = ebb_object_new(stage->root, &type, 0);
    void *samples[] = {ebb_node_new_list(stage->root, &leaf, 1)};
    assert_null(ebb_batch_collate(stage->root, samples, 1, NULL, NULL));
    assert_refused(ebb_last_error(), EBB_E_TYPE);
    assert_text_names("unknown leaf");
}

/* One sample of each kind; all of them in one tree, with a first dimension of `rows`. */
static void *one_of_each(ebb_region region, int64_t rows) {
    static const char *const keys[] = {"image", "video", "mask", "boxes", "points"};
    const struct ebb_sample_info infos[] = {
        {.kind = EBB_SAMPLE_IMAGE},
        {.kind = EBB_SAMPLE_VIDEO},
        {.kind = EBB_SAMPLE_MASK},
        {.kind = EBB_SAMPLE_BOXES,
         .format = EBB_BOX_CXCYWHR,
         .clamping = EBB_CLAMP_NONE,
         .canvas = {480, 640}},
        {.kind = EBB_SAMPLE_POINTS, .canvas = {30 + rows, 40}},
    };
    void *members[5];
    for (int i = 0; i < 5; i++) {
        const int64_t shape[] = {i < 3 ? 2 : rows, i < 3 ? 3 : i == 3 ? 5 : 2, 4, 5};
        members[i] = ebb_sample_new(region, zeros(region, f32, i < 3 ? 4 : 2, shape), &infos[i]);
        assert_non_null(members[i]);
    }
    void *tree = ebb_node_new_dict(region, keys, members, 5);
    assert_non_null(tree);
    return tree;
}

static void c165_kinds_and_metadata_are_the_same_after_collate(void **state) {
    struct stage *stage = *state;
    void *samples[] = {one_of_each(stage->root, 3), one_of_each(stage->root, 7)};
    ebb_region step = OPEN(.parent = stage->root);
    void *batch = ebb_batch_collate(step, samples, 2, NULL, NULL);
    for (size_t i = 0; i < 5; i++) {
        struct ebb_sample_info before, after;
        struct ebb_sample *whole = ebb_node_at(batch, i);
        assert_int_equal(ebb_sample_read(ebb_node_at(samples[0], i), &before), 0);
        assert_int_equal(ebb_sample_read(whole, &after), 0);
        assert_int_equal(after.kind, before.kind);
        assert_int_equal(after.format, before.format);
        assert_int_equal(after.clamping, before.clamping);
        for (size_t image = 0; whole->offsets && image < 2; image++)
            assert_true(ebb_batch_equal(ebb_sample_row(step, whole, image),
                                        ebb_node_at(samples[image], i)));
    }
    const int64_t *canvas = ((struct ebb_sample *)ebb_node_find(batch, "points"))->canvases->data;
    assert_int_equal(canvas[0], 33);
    assert_int_equal(canvas[2], 37);
}

static void c165_kinds_and_metadata_are_the_same_after_promotion(void **state) {
    struct stage *stage = *state;
    for (int mode = EBB_PROMOTE_AUTO; mode <= EBB_PROMOTE_RELINK; mode++) {
        ebb_region step = OPEN(.parent = stage->root);
        void *twin = one_of_each(stage->root, 500), *list[] = {one_of_each(step, 500)};
        struct ebb_own_options options = {.size = sizeof options, .mode = mode};
        assert_int_equal(
            ebb_objects_close_keeping(step, stage->root, list, 1, &options, NULL, NULL), 0);
        assert_true(ebb_batch_equal(list[0], twin));
    }
}

/* To pin a batch is to move it to a region of pinned memory: all of it, in one call. */
static void c165_kinds_and_metadata_are_the_same_after_pinning(void **state) {
    struct stage *stage = *state;
    ebb_pool *pool = POOL(.kind = EBB_KIND_PINNED);
    assert_non_null(pool);
    ebb_region step = OPEN(.parent = stage->root), pinned = OPEN(.pool = pool);
    void *twin = one_of_each(stage->root, 50), *batch = one_of_each(step, 50);
    struct ebb_node *moved = ebb_object_move(batch, pinned);
    if (!moved && ebb_last_error() == EBB_E_MEMORY)
        skip(); /* RLIMIT_MEMLOCK */
    assert_non_null(moved);
    assert_int_equal(ebb_region_close(step), 0);
    assert_true(ebb_batch_equal(moved, twin));
    assert_true(ebb_region_of(((struct ebb_sample *)ebb_node_at(moved, 3))->data->data).lane ==
                pinned.lane);
    assert_int_equal(ebb_region_close(pinned), 0);
    assert_int_equal(ebb_pool_destroy(pool), 0);
}

static void c165_kinds_and_metadata_are_the_same_after_crossing(void **state) {
    struct stage *stage = *state;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1);
    assert_non_null(pool);
    ebb_region worker = OPEN(.pool = pool), step = OPEN(.parent = stage->root);
    struct ebb_parcel parcel;
    assert_int_equal(ebb_region_send_object(worker, one_of_each(worker, 50), &parcel), 0);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    void *batch = ebb_lease_object(lease, step);
    ebb_lease_drop(lease);
    assert_non_null(batch);
    assert_true(ebb_batch_equal(batch, one_of_each(stage->root, 50)));
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(ebb_pool_destroy(pool), 0);
}

static void c165_shapes_follow_from_kind_and_format(void **state) {
    struct stage *stage = *state;
    struct ebb_sample_info boxes = {
        .kind = EBB_SAMPLE_BOXES, .format = EBB_BOX_XYXY, .canvas = {8, 9}};
    struct ebb_sample_info points = {.kind = EBB_SAMPLE_POINTS, .canvas = {8, 9}};
    struct ebb_sample *one = ebb_sample_new(
        stage->root, zeros(stage->root, i64, 1, (const int64_t[]){4}), &boxes);
    assert_int_equal(one->data->ndim, 2);
    assert_int_equal(one->data->shape[0], 1);
    assert_null(ebb_sample_new(stage->root,
                               zeros(stage->root, f32, 3, (const int64_t[]){2, 2, 4}), &boxes));
    assert_refused(ebb_last_error(), EBB_E_METADATA);
    assert_text_names("[2, 2, 4]");
    for (int format = EBB_BOX_XYWHR; format <= EBB_BOX_XYXYXYXY; format++) {
        const int64_t shape[] = {2, format == EBB_BOX_XYXYXYXY ? 8 : 5};
        boxes.format = format;
        assert_null(ebb_sample_new(stage->root, zeros(stage->root, i64, 2, shape), &boxes));
        assert_refused(ebb_last_error(), EBB_E_METADATA);
        assert_text_names("int64");
        assert_non_null(ebb_sample_new(stage->root, zeros(stage->root, f32, 2, shape), &boxes));
    }
    assert_null(ebb_sample_new(stage->root,
                               zeros(stage->root, f32, 2, (const int64_t[]){2, 3}), &points));
    assert_refused(ebb_last_error(), EBB_E_METADATA);
    assert_text_names("[2, 3]");
    boxes.format = EBB_BOX_XYXY;
    boxes.clamping = 9;
    assert_null(ebb_sample_new(stage->root,
                               zeros(stage->root, f32, 2, (const int64_t[]){2, 4}), &boxes));
    assert_refused(ebb_last_error(), EBB_E_METADATA);
    assert_text_names("clamping mode 9");
}

static void c166_wrapping_like_another_copies_nothing(void **state) {
    struct stage *stage = *state;
    struct ebb_sample *like = ebb_sample_new(
        stage->root, zeros(stage->root, f32, 2, (const int64_t[]){3, 4}),
        &(struct ebb_sample_info){.kind = EBB_SAMPLE_BOXES,
                                  .format = EBB_BOX_XYWH,
                                  .clamping = EBB_CLAMP_HARD,
                                  .canvas = {10, 20}});
    struct ebb_tensor *tensor = zeros(stage->root, f32, 2, (const int64_t[]){1, 4});
    const void *data = tensor->data;
    struct ebb_sample *wrapped = ebb_sample_wrap(
        stage->root, tensor, like, &(struct ebb_sample_info){.format = EBB_BOX_CXCYWH});
    assert_ptr_equal(wrapped->data, tensor);
    assert_ptr_equal(wrapped->data->data, data);
    assert_int_equal(wrapped->format, EBB_BOX_CXCYWH);
    assert_int_equal(wrapped->clamping, EBB_CLAMP_HARD);
    assert_memory_equal(wrapped->canvas, like->canvas, sizeof like->canvas);
    struct ebb_tensor *plain = zeros(stage->root, f32, 2, (const int64_t[]){1, 4});
    assert_null(ebb_sample_wrap(stage->root, plain, (struct ebb_sample *)plain, NULL));
    assert_refused(ebb_last_error(), EBB_E_TYPE);
}

static void c167_unequal_shapes_are_named_with_the_sample(void **state) {
    struct stage *stage = *state;
    void *samples[5];
    for (int i = 0; i < 5; i++)
        samples[i] = zeros(stage->root, f32, 3, (const int64_t[]){3, i == 3 ? 31 : 32, 32});
    assert_null(ebb_batch_collate(stage->root, samples, 5, NULL, NULL));
    assert_refused(ebb_last_error(), EBB_E_SHAPE);
    assert_text_names("sample 3 of 5");
    assert_text_names("[3, 31, 32]");
    assert_text_names("[3, 32, 32]");
}

/* Row 76 of the features: at most one copy of each sample, and it is reported. */
static void c162_each_byte_of_the_samples_is_copied_once(void **state) {
    struct stage *stage = *state;
    void *samples[] = {one_of_each(stage->root, 3), one_of_each(stage->root, 7)};
    struct ebb_collated done = {0};
    size_t bytes = 0;
    for (size_t i = 0; i < 10; i++) {
        const struct ebb_sample *sample = ebb_node_at(samples[i / 5], i % 5);
        bytes += ebb_tensor_bytes(sample->data);
    }
    assert_non_null(ebb_batch_collate(stage->root, samples, 2, NULL, &done));
    assert_int_equal(done.copied_bytes, bytes);
    assert_int_equal(done.padded_bytes, 0);
    assert_int_equal(done.tensors, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(c162_each_byte_of_the_samples_is_copied_once),
        CASE(c164_texts_stay_what_they_are),
        CASE(c164_an_unknown_leaf_is_an_error),
        CASE(c165_kinds_and_metadata_are_the_same_after_collate),
        CASE(c165_kinds_and_metadata_are_the_same_after_promotion),
        CASE(c165_kinds_and_metadata_are_the_same_after_pinning),
        CASE(c165_kinds_and_metadata_are_the_same_after_crossing),
        CASE(c165_shapes_follow_from_kind_and_format),
        CASE(c166_wrapping_like_another_copies_nothing),
        CASE(c167_unequal_shapes_are_named_with_the_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
