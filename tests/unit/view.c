// SPDX-License-Identifier: Apache-2.0
/*
 * view.c - views: each shows the elements it says, in memory that it shares; what cannot be seen
 * without a copy is refused; tensors without elements and scalars have views like all others.
 */
#include "kit/tensors.h"

static void a_slice_takes_every_step_th_index(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(3, 5));
    struct ebb_tensor *part = ebb_tensor_slice(
        stage->root, base, (struct ebb_slice){.dim = 1, .start = 1, .stop = 5, .step = 2});
    assert_shape(part, SHAPE(3, 2));
    ASSERT_ELEMENTS(part, 1, 3, 6, 8, 11, 13);
    struct ebb_tensor *rows = ebb_tensor_slice(
        stage->root, part, (struct ebb_slice){.start = 1, .stop = 3, .step = INT64_MAX});
    assert_shape(rows, SHAPE(1, 2));
    ASSERT_ELEMENTS(rows, 6, 8);
}

static void a_step_of_zero_is_one_and_counts_round_up(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(7));
    for (int64_t step = 0; step <= 8; step++)
        for (int64_t stop = 0; stop <= 7; stop++)
            for (int64_t start = 0; start <= stop; start++) {
                struct ebb_tensor *part = ebb_tensor_slice(
                    stage->root, base, (struct ebb_slice){0, start, stop, step});
                assert_non_null(part);
                int64_t count = 0;
                for (int64_t i = start; i < stop; i += step ? step : 1, count++)
                    assert_int_equal(element_at(part, count), i);
                assert_int_equal(part->shape[0], count);
                assert_int_equal(ebb_object_end(part), 0);
            }
}

static void an_empty_slice_at_the_end_stays_inside(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 5));
    struct ebb_tensor *last = ebb_tensor_select(stage->root, base, 0, 1);
    struct ebb_tensor *nothing =
        ebb_tensor_slice(stage->root, last, (struct ebb_slice){0, 5, 5, 3});
    assert_shape(nothing, SHAPE(0));
    assert_int_equal(ebb_tensor_count(nothing), 0);
    struct ebb_tensor *column = ebb_tensor_slice(stage->root, base,
                                                 (struct ebb_slice){1, 4, 5, 1});
    assert_shape(ebb_tensor_slice(stage->root, column, (struct ebb_slice){0, 2, 2, 1}),
                 SHAPE(0, 1));
}

static void selecting_removes_the_dimension(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 3, 2));
    struct ebb_tensor *row = ebb_tensor_select(stage->root, base, 1, 2);
    assert_shape(row, SHAPE(2, 2));
    ASSERT_ELEMENTS(row, 4, 5, 10, 11);
    struct ebb_tensor *one = ebb_tensor_select(
        stage->root, ebb_tensor_select(stage->root, row, 1, 1), 0, 0);
    assert_int_equal(one->ndim, 0);
    ASSERT_ELEMENTS(one, 5);
}

static void transposing_twice_gives_the_same_strides(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 3, 4));
    struct ebb_tensor *turned = ebb_tensor_transpose(stage->root, base, 0, 2);
    assert_shape(turned, SHAPE(4, 3, 2));
    assert_int_equal(element_at(turned, 1), 12);
    assert_false(ebb_tensor_is_contiguous(turned));
    struct ebb_tensor *again = ebb_tensor_transpose(stage->root, turned, 2, 0);
    assert_shape(again, SHAPE(2, 3, 4));
    assert_true(ebb_tensor_is_contiguous(again));
    assert_true(ebb_tensor_is_contiguous(ebb_tensor_transpose(stage->root, base, 1, 1)));
}

static void permuting_reorders_all_dimensions(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 3, 4));
    struct ebb_tensor *turned = ebb_tensor_permute(stage->root, base, (const int[]){2, 0, 1});
    assert_shape(turned, SHAPE(4, 2, 3));
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 2; b++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(element_at(turned, (a * 2 + b) * 3 + c), (b * 3 + c) * 4 + a);
}

static void reshaping_keeps_row_major_order(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 3, 4));
    struct ebb_tensor *flat = ebb_tensor_reshape(stage->root, base, SHAPE(24));
    struct ebb_tensor *other = ebb_tensor_reshape(stage->root, base, SHAPE(4, -1, 1, 2));
    assert_shape(flat, SHAPE(24));
    assert_shape(other, SHAPE(4, 3, 1, 2));
    for (int i = 0; i < 24; i++) {
        assert_int_equal(element_at(flat, i), i);
        assert_int_equal(element_at(other, i), i);
    }
    assert_true(ebb_tensor_is_contiguous(other));
}

/* Every pair of shapes of 24 elements, over views of every kind: right, or refused. */
static void a_reshape_is_right_or_refused(void **state) {
    static const int64_t shapes[][4] = {{24, 1, 1, 1}, {1, 2, 12, 1}, {2, 3, 4, 1}, {4, 3, 2, 1},
                                        {2, 2, 3, 2},  {3, 8, 1, 1},  {6, 4, 1, 1}, {8, 1, 3, 1},
                                        {12, 2, 1, 1}, {1, 1, 1, 24}, {2, 1, 2, 6}};
    static const int orders[][4] = {{0, 1, 2, 3}, {1, 0, 2, 3}, {0, 2, 1, 3}, {3, 2, 1, 0},
                                    {2, 3, 0, 1}};
    enum { COUNT = sizeof shapes / sizeof *shapes };
    struct stage *stage = *state;
    int refused = 0, made = 0;
    for (int a = 0; a < COUNT; a++)
        for (int order = 0; order < 5; order++)
            for (int b = 0; b < COUNT; b++) {
                ebb_region step = OPEN(.parent = stage->root);
                struct ebb_tensor *base = counting(step, 4, shapes[a]);
                struct ebb_tensor *seen = ebb_tensor_permute(step, base, orders[order]);
                struct ebb_tensor *shaped = ebb_tensor_reshape(step, seen, 4, shapes[b]);
                for (int i = 0; shaped && i < 24; i++)
                    assert_int_equal(element_at(shaped, i), element_at(seen, i));
                if (!shaped)
                    assert_no_block(shaped, EBB_E_VIEW);
                if (order == 0)
                    assert_non_null(shaped);
                made += shaped != NULL;
                refused += shaped == NULL;
                assert_int_equal(ebb_region_close(step), 0);
            }
    assert_true(made > COUNT * COUNT && refused > COUNT);
}

static void a_gap_in_memory_splits_only_what_spans_it(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(4, 6));
    struct ebb_tensor *cut = ebb_tensor_slice(stage->root, base, (struct ebb_slice){1, 0, 4, 1});
    assert_no_block(ebb_tensor_reshape(stage->root, cut, SHAPE(16)), EBB_E_VIEW);
    assert_text_names("16 elements in 2 pieces");
    struct ebb_tensor *split = ebb_tensor_reshape(stage->root, cut, SHAPE(2, 2, 2, 2));
    assert_non_null(split);
    for (int i = 0; i < 16; i++)
        assert_int_equal(element_at(split, i), i / 4 * 6 + i % 4);
}

static void expanding_repeats_without_memory(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(3, 1));
    struct ebb_tensor *wide = ebb_tensor_expand(stage->root, base, SHAPE(2, 3, 4));
    assert_shape(wide, SHAPE(2, 3, 4));
    for (int i = 0; i < 24; i++)
        assert_int_equal(element_at(wide, i), i / 4 % 3);
    assert_ptr_equal(wide->storage, base->storage);
    assert_shape(ebb_tensor_expand(stage->root, base, SHAPE(3, 0)), SHAPE(3, 0));
    struct ebb_tensor *flat = ebb_tensor_reshape(
        stage->root, ebb_tensor_expand(stage->root, base, SHAPE(5, 2, 3, 1)), SHAPE(10, 3));
    assert_non_null(flat);
    assert_int_equal(element_at(flat, 29), 2);
}

static void squeezing_undoes_unsqueezing(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 3));
    for (int dim = 0; dim <= 2; dim++) {
        struct ebb_tensor *more = ebb_tensor_unsqueeze(stage->root, base, dim);
        assert_non_null(more);
        assert_int_equal(more->ndim, 3);
        assert_int_equal(more->shape[dim], 1);
        assert_true(ebb_tensor_is_contiguous(more));
        struct ebb_tensor *less = ebb_tensor_squeeze(stage->root, more, dim);
        assert_shape(less, SHAPE(2, 3));
        ASSERT_ELEMENTS(less, 0, 1, 2, 3, 4, 5);
    }
}

static void scalars_have_views(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *scalar = counting(stage->root, 0, NULL);
    assert_int_equal(ebb_tensor_permute(stage->root, scalar, NULL)->ndim, 0);
    assert_shape(ebb_tensor_reshape(stage->root, scalar, SHAPE(1, -1, 1)), SHAPE(1, 1, 1));
    assert_shape(ebb_tensor_unsqueeze(stage->root, scalar, 0), SHAPE(1));
    struct ebb_tensor *wide = ebb_tensor_expand(stage->root, scalar, SHAPE(2, 2));
    ASSERT_ELEMENTS(wide, 0, 0, 0, 0);
    struct ebb_tensor *one = counting(stage->root, SHAPE(1, 1));
    assert_int_equal(ebb_tensor_reshape(stage->root, one, 0, NULL)->ndim, 0);
}

static void tensors_without_elements_have_views(void **state) {
    struct stage *stage = *state;
    int64_t huge = (int64_t)1 << 40;
    struct ebb_tensor *none = counting(stage->root, SHAPE(0, huge, huge, huge));
    assert_int_equal(ebb_tensor_count(none), 0);
    assert_shape(ebb_tensor_select(stage->root, none, 1, huge - 1), SHAPE(0, huge, huge));
    assert_shape(ebb_tensor_slice(stage->root, none, (struct ebb_slice){2, 5, huge, 3}),
                 SHAPE(0, huge, (huge - 3) / 3, huge));
    assert_shape(ebb_tensor_transpose(stage->root, none, 0, 3), SHAPE(huge, huge, huge, 0));
    assert_shape(ebb_tensor_reshape(stage->root, none, SHAPE(huge, huge, huge, 0, 2)),
                 SHAPE(huge, huge, huge, 0, 2));
    assert_shape(ebb_tensor_reshape(stage->root, none, SHAPE(-1, 3)), SHAPE(0, 3));
    assert_shape(ebb_tensor_expand(stage->root, none, SHAPE(7, 0, huge, huge, huge)),
                 SHAPE(7, 0, huge, huge, huge));
}

static void sizes_beside_a_zero_may_be_anything(void **state) {
    struct stage *stage = *state;
    for (int zero = 0; zero < 4; zero++) {
        int64_t shape[] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
        shape[zero] = 0;
        struct ebb_tensor *none = ebb_tensor_new(stage->root, FLOAT64, 4, shape);
        assert_shape(none, 4, shape);
        assert_int_equal(ebb_tensor_count(none), 0);
        assert_int_equal(ebb_tensor_bytes(none), 0);
        assert_true(ebb_tensor_is_contiguous(none));
    }
}

static void views_share_the_storage_and_outlive_their_base(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(4, 4));
    struct ebb_tensor *turned = ebb_tensor_transpose(stage->root, base, 0, 1);
    struct ebb_tensor *row = ebb_tensor_select(stage->root, turned, 0, 3);
    *(int32_t *)place_of(base, 7) = 70;
    assert_int_equal(element_at(row, 1), 70);
    assert_int_equal(row->storage->tensors, 3);
    assert_int_equal(ebb_object_end(base), 0);
    assert_int_equal(ebb_object_end(turned), 0);
    ASSERT_ELEMENTS(row, 3, 70, 11, 15);
    assert_int_equal(ebb_object_end(row), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

static void views_may_be_made_below_and_leave_with_their_region(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(4, 4));
    ebb_region step = OPEN(.parent = stage->root);
    struct ebb_tensor *row = ebb_tensor_select(step, base, 0, 1);
    assert_non_null(row);
    assert_true(ebb_region_owns(step, row));
    assert_int_equal(base->storage->tensors, 2);
    assert_int_equal(ebb_region_close(step), 0);
    assert_int_equal(base->storage->tensors, 1);
}

static void views_have_up_to_32_dimensions(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 3));
    while (base->ndim < EBB_DIMENSIONS_MAX) {
        base = ebb_tensor_unsqueeze(stage->root, base, base->ndim / 2);
        assert_non_null(base);
    }
    assert_no_block(ebb_tensor_unsqueeze(stage->root, base, 0), EBB_E_SHAPE);
    assert_text_names("32");
    int dims[EBB_DIMENSIONS_MAX];
    for (int i = 0; i < EBB_DIMENSIONS_MAX; i++)
        dims[i] = EBB_DIMENSIONS_MAX - 1 - i;
    struct ebb_tensor *turned = ebb_tensor_permute(stage->root, base, dims);
    ASSERT_ELEMENTS(turned, 0, 3, 1, 4, 2, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_slice_takes_every_step_th_index),
        STAGED(a_step_of_zero_is_one_and_counts_round_up),
        STAGED(an_empty_slice_at_the_end_stays_inside),
        STAGED(selecting_removes_the_dimension),
        STAGED(transposing_twice_gives_the_same_strides),
        STAGED(permuting_reorders_all_dimensions),
        STAGED(reshaping_keeps_row_major_order),
        STAGED(a_reshape_is_right_or_refused),
        STAGED(a_gap_in_memory_splits_only_what_spans_it),
        STAGED(expanding_repeats_without_memory),
        STAGED(squeezing_undoes_unsqueezing),
        STAGED(scalars_have_views),
        STAGED(tensors_without_elements_have_views),
        STAGED(sizes_beside_a_zero_may_be_anything),
        STAGED(views_share_the_storage_and_outlive_their_base),
        STAGED(views_may_be_made_below_and_leave_with_their_region),
        STAGED(views_have_up_to_32_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
