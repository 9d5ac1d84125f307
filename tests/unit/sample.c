// SPDX-License-Identifier: Apache-2.0
/* sample.c - typed samples: kinds, metadata, wrapping without a copy. */
#include "kit/sight.h"

static const struct ebb_dtype f32 = {EBB_FLOAT, 32, 1}, i64 = {EBB_INT, 64, 1},
                              u8 = {EBB_UINT, 8, 1};

static struct ebb_tensor *tensor_2d(ebb_region region, struct ebb_dtype dtype, int64_t rows,
                                    int64_t columns) {
    struct ebb_tensor *tensor =
        ebb_tensor_new(region, dtype, 2, (const int64_t[]){rows, columns});
    assert_non_null(tensor);
    pattern_fill(tensor->data, ebb_tensor_bytes(tensor), (unsigned)rows);
    return tensor;
}

static struct ebb_sample_info boxes_info(int format) {
    return (struct ebb_sample_info){
        .kind = EBB_SAMPLE_BOXES, .format = format, .canvas = {480, 640}};
}

static struct ebb_sample *sample_of(ebb_region region, struct ebb_tensor *tensor,
                                    struct ebb_sample_info info) {
    struct ebb_sample *sample = ebb_sample_new(region, tensor, &info);
    if (!sample)
        print_error("%s\n", ebb_last_error_text());
    assert_non_null(sample);
    return sample;
}

static uint64_t live(ebb_region region, uint32_t kind) {
    struct ebb_object_counts counts;
    assert_int_equal(ebb_region_read_objects(region, kind, &counts), 0);
    return counts.live;
}

static void a_sample_takes_its_tensor_as_it_is(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = tensor_2d(stage->root, f32, 7, 4);
    void *data = tensor->data;
    size_t blocks = stats_of(stage->root).blocks.current;
    struct ebb_sample *sample = sample_of(stage->root, tensor, boxes_info(EBB_BOX_XYXY));
    assert_ptr_equal(sample->data, tensor);
    assert_ptr_equal(sample->data->data, data);
    assert_ptr_equal(tensor->object.whole, sample);
    assert_int_equal(stats_of(stage->root).blocks.current, blocks + 1);
    assert_int_equal(sample->clamping, EBB_CLAMP_SOFT);
    assert_refused(ebb_object_end(data), EBB_E_INTERIOR);
    assert_int_equal(ebb_object_end(sample), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, blocks - 1);
    assert_int_equal(live(stage->root, EBB_OBJECT_ALL), 0);
}

static void every_kind_says_its_name(void **state) {
    static const char *const names[] = {"image", "video", "mask", "boxes", "points"};
    for (int kind = EBB_SAMPLE_IMAGE; kind <= EBB_SAMPLE_POINTS; kind++)
        assert_string_equal(ebb_sample_kind_name(kind), names[kind - 1]);
    assert_string_equal(ebb_sample_kind_name(0), "unknown");
    assert_string_equal(ebb_sample_kind_name(-1), "unknown");
    assert_string_equal(ebb_sample_kind_name(6), "unknown");
    assert_string_equal(ebb_sample_kind_name(EBB_SAMPLE_KINDS_MAX), "unknown");
    assert_string_equal(ebb_box_format_name(EBB_BOX_XYXYXYXY), "XYXYXYXY");
    assert_string_equal(ebb_box_format_name(0), "none");
    assert_string_equal(ebb_box_format_name(7), "unknown");
    assert_string_equal(ebb_box_format_name(-1), "unknown");
    assert_string_equal(ebb_clamping_name(EBB_CLAMP_HARD), "hard");
    assert_string_equal(ebb_clamping_name(4), "unknown");
}

static void one_box_becomes_a_row_of_boxes(void **state) {
    static const int numbers[] = {0, 4, 4, 4, 5, 5, 8};
    struct stage *stage = *state;
    for (int format = EBB_BOX_XYXY; format <= EBB_BOX_XYXYXYXY; format++) {
        int64_t shape[] = {numbers[format]};
        struct ebb_tensor *tensor = ebb_tensor_new(stage->root, f32, 1, shape);
        void *data = tensor->data;
        pattern_fill(data, ebb_tensor_bytes(tensor), 5);
        struct ebb_sample *sample = sample_of(stage->root, tensor, boxes_info(format));
        assert_ptr_equal(sample->data->data, data);
        assert_int_equal(sample->data->ndim, 2);
        assert_int_equal(sample->data->shape[0], 1);
        assert_int_equal(sample->data->shape[1], numbers[format]);
        assert_true(pattern_holds(sample->data->data, ebb_tensor_bytes(sample->data), 5));
        assert_refused(ebb_object_end(tensor), EBB_E_RELEASED);
        assert_int_equal(live(stage->root, EBB_OBJECT_TENSOR), 1);
        assert_int_equal(ebb_object_end(sample), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

static void a_flat_image_gets_a_channel_and_a_point_a_row(void **state) {
    struct stage *stage = *state;
    struct ebb_sample *image = sample_of(stage->root, tensor_2d(stage->root, u8, 30, 40),
                                         (struct ebb_sample_info){.kind = EBB_SAMPLE_IMAGE});
    assert_int_equal(image->data->ndim, 3);
    assert_int_equal(image->data->shape[0], 1);
    assert_int_equal(image->data->shape[2], 40);
    assert_true(ebb_tensor_is_contiguous(image->data));
    assert_true(pattern_holds(image->data->data, 1200, 30));
    struct ebb_tensor *point = ebb_tensor_new(stage->root, i64, 1, (const int64_t[]){2});
    struct ebb_sample *points = sample_of(
        stage->root, point, (struct ebb_sample_info){.kind = EBB_SAMPLE_POINTS, .canvas = {9, 8}});
    assert_int_equal(points->data->ndim, 2);
    assert_int_equal(points->data->shape[0], 1);
    struct ebb_sample *mask = sample_of(stage->root, tensor_2d(stage->root, u8, 3, 4),
                                        (struct ebb_sample_info){.kind = EBB_SAMPLE_MASK});
    assert_int_equal(mask->data->ndim, 2);
}

static void samples_without_elements_are_samples(void **state) {
    struct stage *stage = *state;
    struct ebb_sample *none =
        sample_of(stage->root, tensor_2d(stage->root, f32, 0, 5), boxes_info(EBB_BOX_XYWHR));
    assert_int_equal(none->data->shape[0], 0);
    struct ebb_sample *flat = sample_of(stage->root, tensor_2d(stage->root, u8, 0, 4),
                                        (struct ebb_sample_info){.kind = EBB_SAMPLE_IMAGE});
    assert_int_equal(flat->data->ndim, 3);
    assert_int_equal(flat->data->shape[1], 0);
}

static void wrapping_like_another_keeps_what_is_not_changed(void **state) {
    struct stage *stage = *state;
    struct ebb_sample_info info = boxes_info(EBB_BOX_CXCYWH), seen;
    info.clamping = EBB_CLAMP_HARD;
    ebb_region elsewhere = OPEN(.pool = stage->pool);
    struct ebb_sample *like = sample_of(elsewhere, tensor_2d(elsewhere, f32, 3, 4), info);
    struct ebb_tensor *tensor = tensor_2d(stage->root, i64, 2, 4);
    void *data = tensor->data;
    struct ebb_sample *same = ebb_sample_wrap(stage->root, tensor, like, NULL);
    assert_ptr_equal(same->data->data, data);
    assert_int_equal(same->format, EBB_BOX_CXCYWH);
    assert_int_equal(same->clamping, EBB_CLAMP_HARD);
    struct ebb_sample *other = ebb_sample_wrap(
        stage->root, tensor_2d(stage->root, i64, 2, 4), like,
        &(struct ebb_sample_info){.canvas = {50, 60}, .kind = EBB_SAMPLE_BOXES});
    assert_int_equal(ebb_sample_read(other, &seen), 0);
    assert_int_equal(seen.canvas[0], 50);
    assert_int_equal(seen.canvas[1], 60);
    assert_int_equal(seen.format, EBB_BOX_CXCYWH);
    struct ebb_sample *third =
        ebb_sample_wrap(stage->root, tensor_2d(stage->root, f32, 2, 8), other,
                        &(struct ebb_sample_info){.format = EBB_BOX_XYXYXYXY,
                                                  .clamping = EBB_CLAMP_NONE});
    assert_int_equal(third->format, EBB_BOX_XYXYXYXY);
    assert_int_equal(third->clamping, EBB_CLAMP_NONE);
    assert_int_equal(third->canvas[0], 50);
    struct ebb_sample *fourth =
        ebb_sample_wrap(stage->root, tensor_2d(stage->root, f32, 2, 4), other,
                        &(struct ebb_sample_info){.canvas = {0, 70}});
    assert_non_null(fourth);
    assert_int_equal(fourth->canvas[0], 50);
    assert_int_equal(fourth->canvas[1], 70);
    assert_int_equal(ebb_region_close(elsewhere), 0);
    assert_int_equal(same->format, EBB_BOX_CXCYWH); /* nothing refers to what it was like */
}

static void users_kinds_carry_their_bytes(void **state) {
    struct stage *stage = *state;
    int depth = ebb_sample_register("depth map"), flow = ebb_sample_register("flow");
    assert_true(depth >= EBB_SAMPLE_USER && flow > depth);
    assert_int_equal(ebb_sample_register("depth map"), depth);
    assert_string_equal(ebb_sample_kind_name(depth), "depth map");
    char bytes[3000];
    pattern_fill(bytes, sizeof bytes, 9);
    struct ebb_sample *sample = sample_of(
        stage->root, tensor_2d(stage->root, f32, 3, 3),
        (struct ebb_sample_info){.kind = depth, .bytes = bytes, .byte_count = sizeof bytes});
    memset(bytes, 0, sizeof bytes);
    struct ebb_sample *like =
        ebb_sample_wrap(stage->root, tensor_2d(stage->root, u8, 1, 1), sample, NULL);
    struct ebb_sample_info info;
    assert_int_equal(ebb_sample_read(like, &info), 0);
    assert_int_equal(info.byte_count, 3000);
    assert_true(pattern_holds(info.bytes, 3000, 9));
    struct ebb_sample *plain = sample_of(stage->root, tensor_2d(stage->root, f32, 3, 3),
                                         (struct ebb_sample_info){.kind = flow});
    assert_int_equal(ebb_sample_read(plain, &info), 0);
    assert_null(info.bytes);
    assert_int_equal(ebb_object_end(sample), 0);
    assert_true(pattern_holds((const char *)(like + 1), 3000, 9));
}

static void a_sample_can_be_of_a_view_of_a_storage_further_up(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *all = tensor_2d(stage->root, f32, 100, 4);
    ebb_region step = OPEN(.parent = stage->root);
    struct ebb_tensor *view = ebb_tensor_view(step, all, 2, (const int64_t[]){10, 4},
                                              (const int64_t[]){4, 1}, 80);
    struct ebb_sample *sample = sample_of(step, view, boxes_info(EBB_BOX_XYWH));
    assert_ptr_equal(sample->data->data, (float *)all->data + 80);
    assert_int_equal(all->storage->tensors, 2);
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(all->storage->tensors, 1);
}

/* A ragged sample made by hand: rows 0-2, none, 2-5. */
static struct ebb_sample *ragged_of(ebb_region region) {
    struct ebb_sample *sample = ebb_object_new(region, &ebb_type_sample, 0);
    sample->kind = EBB_SAMPLE_BOXES;
    sample->format = EBB_BOX_XYXY;
    sample->clamping = EBB_CLAMP_HARD;
    sample->data = tensor_2d(region, f32, 5, 4);
    sample->offsets =
        ebb_tensor_from(region, i64, 1, (const int64_t[]){4}, (const int64_t[]){0, 2, 2, 5});
    sample->canvases = ebb_tensor_from(region, i64, 2, (const int64_t[]){3, 2},
                                       (const int64_t[]){10, 20, 30, 40, 50, 60});
    return sample;
}

static void rows_of_a_ragged_sample_are_samples_of_each_image(void **state) {
    struct stage *stage = *state;
    static const int64_t rows[] = {2, 0, 3}, first[] = {0, 2, 2};
    struct ebb_sample *ragged = ragged_of(stage->root);
    assert_int_equal(ebb_object_compose(ragged), 0);
    ebb_region step = OPEN(.parent = stage->root);
    for (size_t i = 0; i < 3; i++) {
        struct ebb_sample *row = ebb_sample_row(step, ragged, i);
        assert_non_null(row);
        assert_int_equal(row->data->shape[0], rows[i]);
        assert_int_equal(row->canvas[0], 10 + 20 * (int64_t)i);
        assert_int_equal(row->canvas[1], 20 + 20 * (int64_t)i);
        assert_int_equal(row->clamping, EBB_CLAMP_HARD);
        if (rows[i])
            assert_ptr_equal(row->data->data, (float *)ragged->data->data + 4 * first[i]);
    }
    struct sight before = sight_of(step);
    assert_null(ebb_sample_row(step, ragged, 3));
    assert_sight_refused(step, &before, ebb_last_error(), EBB_E_ARGUMENT, "image 3", "has 3", NULL);
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(ragged->data->storage->tensors, 1);
}

static void wrapping_like_a_ragged_sample_is_ragged(void **state) {
    struct stage *stage = *state;
    struct ebb_sample *ragged = ragged_of(stage->root);
    assert_int_equal(ebb_object_compose(ragged), 0);
    struct ebb_sample *wrapped = ebb_sample_wrap(
        stage->root, tensor_2d(stage->root, f32, 5, 5), ragged,
        &(struct ebb_sample_info){.format = EBB_BOX_XYWHR});
    assert_non_null(wrapped);
    assert_ptr_equal(wrapped->offsets->data, ragged->offsets->data);
    assert_ptr_equal(wrapped->canvases->data, ragged->canvases->data);
    assert_int_equal(ebb_object_end(ragged), 0);
    assert_int_equal(((int64_t *)wrapped->offsets->data)[3], 5);
    struct ebb_tensor *short_one = tensor_2d(stage->root, f32, 4, 5);
    struct sight before = sight_of(stage->root);
    assert_null(ebb_sample_wrap(stage->root, short_one, wrapped, NULL));
    assert_sight_refused(stage->root, &before, ebb_last_error(), EBB_E_METADATA, "4 rows", "has 5",
                         NULL);
}

/* What says where others are may be written since it was looked at. */
static void rows_that_are_not_there_are_refused(void **state) {
    struct stage *stage = *state;
    static const int64_t wrong[][2] = {{-1, 2}, {2, 1}, {0, 6}, {6, 6}, {INT64_MIN, INT64_MAX}};
    struct ebb_sample *ragged = ragged_of(stage->root);
    assert_int_equal(ebb_object_compose(ragged), 0);
    struct ebb_tensor *base = tensor_2d(stage->root, f32, 9, 5); /* more rows than are seen */
    struct ebb_sample *part = ebb_sample_wrap(
        stage->root, ebb_tensor_slice(stage->root, base, (struct ebb_slice){0, 0, 5, 1}), ragged,
        &(struct ebb_sample_info){.format = EBB_BOX_XYWHR});
    assert_non_null(part);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(part->offsets->data, wrong[i], sizeof wrong[i]);
        struct sight before = sight_of(stage->root);
        assert_null(ebb_sample_row(stage->root, part, 0));
        assert_sight_refused(stage->root, &before, ebb_last_error(), EBB_E_SHAPE, NULL);
    }
}

static void samples_made_by_hand_are_not_believed(void **state) {
    struct stage *stage = *state;
    struct ebb_sample *sample = ragged_of(stage->root);
    struct ebb_tensor *tensor = tensor_2d(stage->root, f32, 5, 4);
    sample->offsets = (struct ebb_tensor *)(void *)&stage;
    struct sight before = sight_of(stage->root);
    assert_null(ebb_sample_row(stage->root, sample, 0));
    assert_sight_refused(stage->root, &before, ebb_last_error(), EBB_E_ARGUMENT, "has 0", NULL);
    assert_null(ebb_sample_wrap(stage->root, tensor, sample, NULL));
    assert_sight_refused(stage->root, &before, ebb_last_error(), EBB_E_METADATA, NULL);
    struct ebb_sample *liar = ebb_object_new(stage->root, &ebb_type_sample, 8);
    struct ebb_sample_info info = {0};
    liar->kind = ebb_sample_register("liar");
    liar->byte_count = MIB;
    before = sight_of(stage->root);
    assert_null(ebb_sample_wrap(stage->root, tensor, liar, NULL));
    assert_sight_refused(stage->root, &before, ebb_last_error(), EBB_E_METADATA, "room for 8",
                         NULL);
    assert_refused(ebb_sample_read(liar, &info), EBB_E_METADATA);
    assert_null(info.bytes);
}

static void one_box_is_a_row_of_a_ragged_sample_of_one(void **state) {
    struct stage *stage = *state;
    void *one = ebb_sample_new(stage->root, tensor_2d(stage->root, f32, 1, 4),
                               &(struct ebb_sample_info){.kind = EBB_SAMPLE_BOXES,
                                                         .format = EBB_BOX_XYXY,
                                                         .canvas = {10, 20}});
    struct ebb_sample *ragged = ebb_batch_collate(stage->root, &one, 1, NULL, NULL);
    struct ebb_tensor *box = ebb_tensor_new(stage->root, f32, 1, (const int64_t[]){4});
    assert_non_null(ragged);
    struct ebb_sample *wrapped = ebb_sample_wrap(stage->root, box, ragged, NULL);
    assert_non_null(wrapped);
    assert_int_equal(wrapped->data->shape[0], 1);
    assert_int_equal(wrapped->data->shape[1], 4);
    assert_int_equal(((int64_t *)wrapped->offsets->data)[1], 1);
}

/* As many numbers as there are to be rows. */
static void flatten(struct ebb_sample *ragged) {
    ragged->data = ebb_tensor_new(ebb_region_of(ragged), f32, 1, (const int64_t[]){4});
    ((int64_t *)ragged->offsets->data)[3] = 4;
}

static void ragged_samples_that_do_not_fit_are_not_composed(void **state) {
    struct stage *stage = *state;
    for (int what = 0; what < 7; what++) {
        struct ebb_sample *ragged = ragged_of(stage->root);
        int64_t *offsets = ragged->offsets->data;
        if (what == 0)
            offsets[0] = 1;
        else if (what == 1)
            offsets[3] = 4;
        else if (what == 2)
            offsets[1] = 3;
        else if (what == 3)
            ragged->canvases = NULL;
        else if (what == 4)
            ragged->canvas[0] = 5;
        else if (what == 5)
            ragged->kind = EBB_SAMPLE_MASK;
        else
            flatten(ragged);
        assert_refused(ebb_object_compose(ragged), EBB_E_METADATA);
    }
    struct ebb_sample *liar = ebb_object_new(stage->root, &ebb_type_sample, 8);
    liar->kind = ebb_sample_register("liar");
    liar->data = tensor_2d(stage->root, f32, 1, 1);
    liar->byte_count = 9;
    assert_refused(ebb_object_compose(liar), EBB_E_METADATA);
    assert_text_names("room for 8");
    liar->byte_count = 8;
    assert_int_equal(ebb_object_compose(liar), 0);
    struct ebb_sample *empty = ebb_object_new(stage->root, &ebb_type_sample, 0);
    empty->kind = EBB_SAMPLE_MASK;
    assert_refused(ebb_object_compose(empty), EBB_E_TYPE);
}

static void assert_batch_of_one(struct ebb_sample *sample) {
    struct ebb_sample *batch =
        ebb_batch_collate(ebb_region_of(sample), (void *[]){sample}, 1, NULL, NULL);
    assert_non_null(batch);
    assert_int_equal(batch->data->shape[0], 1);
    assert_int_equal(batch->data->ndim, sample->data->ndim + !batch->offsets);
    if (batch->offsets)
        assert_int_equal(((int64_t *)batch->offsets->data)[1], 1);
}

/* Else the batch of such samples has rows of another shape, or numbers that are taken for rows. */
static void data_without_its_first_dimension_is_refused(void **state) {
    static const struct {
        struct ebb_sample_info info;
        int ndim;
        int64_t shape[3];
        const char *refused, *longer; /* what is said of it, and of one number more than its last */
    } cases[] = {
        {{.kind = EBB_SAMPLE_IMAGE}, 3, {1, 3, 4}, "image of shape [3, 4], [..., C, H, W] is",
         "image of shape [5], [..., C, H, W] is"},
        {{.kind = EBB_SAMPLE_BOXES, .format = EBB_BOX_XYXY, .canvas = {9, 8}}, 2, {1, 4},
         "boxes XYXY of shape [4], [N, 4] is", "boxes XYXY of shape [5], [N, 4] is"},
        {{.kind = EBB_SAMPLE_POINTS, .canvas = {9, 8}}, 2, {1, 2},
         "points of shape [2], [..., N, 2] is", "points of shape [3], [..., N, 2] is"},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ndim = cases[i].ndim;
        struct ebb_tensor *whole = ebb_tensor_new(stage->root, f32, ndim, cases[i].shape);
        struct ebb_tensor *flat = ebb_tensor_new(stage->root, f32, ndim - 1, cases[i].shape + 1);
        struct ebb_tensor *longer =
            ebb_tensor_new(stage->root, f32, 1, &(int64_t){cases[i].shape[ndim - 1] + 1});
        struct ebb_sample *sample = sample_of(stage->root, whole, cases[i].info);
        struct ebb_sample *by_hand = ebb_object_new(stage->root, &ebb_type_sample, 0);
        by_hand->kind = sample->kind;
        by_hand->format = sample->format;
        by_hand->clamping = sample->clamping;
        memcpy(by_hand->canvas, sample->canvas, sizeof sample->canvas);
        by_hand->data = flat;
        struct sight before = sight_of(stage->root);
        assert_sight_refused(stage->root, &before, ebb_object_replace(sample, 0, flat),
                             EBB_E_METADATA, cases[i].refused, NULL);
        assert_sight_refused(stage->root, &before, ebb_object_replace(sample, 0, longer),
                             EBB_E_METADATA, cases[i].longer, NULL);
        assert_sight_refused(stage->root, &before, ebb_object_compose(by_hand), EBB_E_METADATA,
                             cases[i].refused, NULL);
        assert_ptr_equal(sample->data, whole);
        assert_batch_of_one(sample);
        by_hand->data = ebb_tensor_new(stage->root, f32, ndim, cases[i].shape);
        assert_int_equal(ebb_object_compose(by_hand), 0);
        assert_batch_of_one(by_hand);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_sample_takes_its_tensor_as_it_is),
        STAGED(every_kind_says_its_name),
        STAGED(one_box_becomes_a_row_of_boxes),
        STAGED(a_flat_image_gets_a_channel_and_a_point_a_row),
        STAGED(samples_without_elements_are_samples),
        STAGED(wrapping_like_another_keeps_what_is_not_changed),
        STAGED(users_kinds_carry_their_bytes),
        STAGED(a_sample_can_be_of_a_view_of_a_storage_further_up),
        STAGED(rows_of_a_ragged_sample_are_samples_of_each_image),
        STAGED(wrapping_like_a_ragged_sample_is_ragged),
        STAGED(rows_that_are_not_there_are_refused),
        STAGED(samples_made_by_hand_are_not_believed),
        STAGED(one_box_is_a_row_of_a_ragged_sample_of_one),
        STAGED(ragged_samples_that_do_not_fit_are_not_composed),
        STAGED(data_without_its_first_dimension_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
