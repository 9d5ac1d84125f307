// SPDX-License-Identifier: Apache-2.0
/*
 * copy.c - copies between tensors of any strides, copies that are contiguous, and fills: right for
 * every dtype's bytes, the same where nothing needs to be done, refused where memory is shared.
 */
#include "kit/tensors.h"

#include <math.h>
#include <stdlib.h>

static void a_copy_follows_the_strides_of_both(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *source = counting(stage->root, SHAPE(3, 4));
    struct ebb_tensor *target = ebb_tensor_new_zeroed(stage->root, INT32, SHAPE(4, 3));
    struct ebb_tensor *turned = ebb_tensor_transpose(stage->root, target, 0, 1);
    assert_int_equal(ebb_tensor_copy(turned, source), 0);
    ASSERT_ELEMENTS(target, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    ASSERT_ELEMENTS(turned, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
}

static void a_copy_into_a_part_leaves_the_rest(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *source = counting(stage->root, SHAPE(2, 1));
    struct ebb_tensor *target = counting(stage->root, SHAPE(4, 3));
    struct ebb_slice odd = {.dim = 0, .start = 1, .stop = 4, .step = 2};
    struct ebb_slice middle = {.dim = 1, .start = 1, .stop = 2};
    struct ebb_tensor *part = ebb_tensor_slice(
        stage->root, ebb_tensor_slice(stage->root, target, odd), middle);
    assert_int_equal(ebb_tensor_copy(part, source), 0);
    ASSERT_ELEMENTS(target, 0, 1, 2, 3, 0, 5, 6, 7, 8, 9, 1, 11);
}

static void an_expanded_source_is_written_out(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *source = counting(stage->root, SHAPE(3, 1));
    struct ebb_tensor *wide = ebb_tensor_expand(stage->root, source, SHAPE(2, 3, 3));
    struct ebb_tensor *dense = ebb_tensor_contiguous(stage->root, wide);
    ASSERT_ELEMENTS(dense, 0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0, 1, 1, 1, 2, 2, 2);
    assert_true(ebb_tensor_is_contiguous(dense));
    assert_int_equal(dense->storage->bytes, 72);
}

static void a_contiguous_copy_is_always_a_copy(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.parent = stage->root);
    struct ebb_tensor *source = counting(step, SHAPE(5, 2));
    struct ebb_tensor *dense = ebb_tensor_contiguous(stage->root, source);
    assert_int_equal(ebb_region_close(step), 0);
    ASSERT_ELEMENTS(dense, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    assert_true(ebb_region_owns(stage->root, dense));
}

static void a_tensor_like_another_has_its_shape_and_dtype_only(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = ebb_tensor_new(stage->root, COMPLEX64, SHAPE(3, 0, 4));
    struct ebb_tensor *like = ebb_tensor_like(
        stage->root, ebb_tensor_transpose(stage->root, base, 0, 2));
    assert_shape(like, SHAPE(4, 0, 3));
    assert_true(ebb_dtype_equal(like->dtype, COMPLEX64));
    assert_ptr_not_equal(like->storage, base->storage);
}

static void dtypes_that_are_no_numbers_are_copied_too(void **state) {
    static const struct ebb_dtype odd[] = {{EBB_INT, 4, 1}, {EBB_FLOAT, 32, 4}, {EBB_OPAQUE, 24, 1},
                                           {EBB_COMPLEX, 128, 3}};
    struct stage *stage = *state;
    for (size_t i = 0; i < 4; i++) {
        struct ebb_tensor *source = ebb_tensor_new(stage->root, odd[i], SHAPE(5, 7));
        size_t bytes = ebb_dtype_bytes(odd[i]);
        pattern_fill(source->data, 35 * bytes, 3);
        struct ebb_tensor *turned = ebb_tensor_transpose(stage->root, source, 0, 1);
        struct ebb_tensor *dense = ebb_tensor_contiguous(stage->root, turned);
        for (int64_t at = 0; at < 35; at++)
            assert_memory_equal(place_of(dense, at), place_of(turned, at), bytes);
        assert_int_equal(ebb_tensor_copy(source, ebb_tensor_transpose(stage->root, dense, 0, 1)),
                         0);
        assert_true(pattern_holds(source->data, 35 * bytes, 3));
    }
}

static void scalars_and_tensors_without_elements_are_copied(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *scalar = counting(stage->root, 0, NULL);
    struct ebb_tensor *other = ebb_tensor_contiguous(stage->root, scalar);
    *(int32_t *)scalar->data = 17;
    assert_int_equal(ebb_tensor_copy(other, scalar), 0);
    ASSERT_ELEMENTS(other, 17);
    struct ebb_tensor *none = counting(stage->root, SHAPE(3, 0));
    assert_int_equal(ebb_tensor_copy(ebb_tensor_contiguous(stage->root, none), none), 0);
    assert_int_equal(ebb_tensor_copy(none, none), 0);
    assert_int_equal(ebb_tensor_fill(none, ebb_value_int(1)), 0);
}

/* ---- shared memory ---- */

static void a_copy_to_the_same_elements_does_nothing(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(2, 3));
    struct ebb_tensor *same = ebb_tensor_reshape(stage->root, base, SHAPE(2, 3));
    assert_int_equal(ebb_tensor_copy(same, base), 0);
    assert_int_equal(ebb_tensor_copy(base, base), 0);
    ASSERT_ELEMENTS(base, 0, 1, 2, 3, 4, 5);
}

static void interleaved_elements_are_apart(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(3, 4));
    struct ebb_slice even = {.dim = 1, .start = 0, .stop = 4, .step = 2}, odd = even;
    odd.start = 1;
    assert_int_equal(ebb_tensor_copy(ebb_tensor_slice(stage->root, base, even),
                                     ebb_tensor_slice(stage->root, base, odd)), 0);
    ASSERT_ELEMENTS(base, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11);
    struct ebb_slice left = {.dim = 1, .start = 0, .stop = 2}, right = {1, 2, 4, 1};
    assert_int_equal(ebb_tensor_copy(ebb_tensor_slice(stage->root, base, left),
                                     ebb_tensor_slice(stage->root, base, right)), 0);
    ASSERT_ELEMENTS(base, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11);
}

/* However many there are: both go through memory with the same strides. */
static void large_views_of_one_tensor_are_copied_between_each_other(void **state) {
    static const struct {
        int ndim;
        int64_t shape[3];
        struct ebb_slice from, to;
    } cases[] = {
        {3, {64, 64, 2}, {2, 0, 1, 1}, {2, 1, 2, 1}},
        {2, {10000, 2}, {1, 1, 2, 1}, {1, 0, 1, 1}},
        {1, {20000}, {0, 0, 20000, 2}, {0, 1, 20000, 2}},
        {2, {200, 64}, {0, 0, 200, 2}, {0, 1, 200, 2}},
        {3, {100, 60, 4}, {2, 0, 2, 1}, {2, 2, 4, 1}},
        {1, {60000}, {0, 0, 60000, 6}, {0, 1, 40000, 4}},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ebb_tensor *base = counting(stage->root, cases[i].ndim, cases[i].shape);
        struct ebb_tensor *from = ebb_tensor_slice(stage->root, base, cases[i].from);
        struct ebb_tensor *to = ebb_tensor_slice(stage->root, base, cases[i].to);
        assert_true(ebb_tensor_count(from) >= 4096);
        assert_int_equal(ebb_tensor_copy(to, from), 0);
        for (int64_t at = 0; at < ebb_tensor_count(from); at++)
            assert_int_equal(element_at(to, at), element_at(from, at));
        assert_int_equal(ebb_object_end(base), 0);
    }
}

static void elements_that_share_memory_are_refused(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(4, 4));
    struct ebb_slice first = {.stop = 3}, second = {.start = 1, .stop = 4};
    struct ebb_tensor *upper = ebb_tensor_slice(stage->root, base, first);
    struct ebb_tensor *lower = ebb_tensor_slice(stage->root, base, second);
    struct ebb_tensor *turned = ebb_tensor_transpose(stage->root, base, 0, 1);
    struct counted before = counted_of(stage->root);
    assert_refused(ebb_tensor_copy(upper, lower), EBB_E_OVERLAP);
    assert_text_names("12 elements");
    assert_refused(ebb_tensor_copy(lower, upper), EBB_E_OVERLAP);
    assert_refused(ebb_tensor_copy(turned, base), EBB_E_OVERLAP);
    for (int i = 0; i < 16; i++)
        assert_int_equal(element_at(base, i), i);
    assert_nothing_changed(stage->root, &before);
}

static void a_destination_whose_elements_share_memory_is_refused(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(12));
    struct ebb_tensor *source = counting(stage->root, SHAPE(2, 6));
    struct ebb_tensor *wide = ebb_tensor_expand(stage->root, base, SHAPE(2, 12));
    struct ebb_tensor *sliding = ebb_tensor_view(stage->root, base, 2, SIZES(2, 6), SIZES(5, 1), 0);
    struct ebb_tensor *nested = ebb_tensor_view(stage->root, base, 2, SIZES(2, 6), SIZES(6, 1), 0);
    struct ebb_tensor *woven = ebb_tensor_view(stage->root, base, 2, SIZES(3, 2), SIZES(2, 3), 0);
    assert_refused(ebb_tensor_fill(wide, ebb_value_int(1)), EBB_E_OVERLAP);
    assert_text_names("24 elements");
    assert_refused(ebb_tensor_copy(sliding, source), EBB_E_OVERLAP);
    for (int i = 0; i < 12; i++)
        assert_int_equal(element_at(base, i), i);
    assert_int_equal(ebb_tensor_copy(nested, source), 0);
    assert_int_equal(ebb_tensor_fill(woven, ebb_value_int(-1)), 0); /* 0 2 3 4 5 7 */
    ASSERT_ELEMENTS(base, -1, 1, -1, -1, -1, -1, 6, -1, 8, 9, 10, 11);
}

/* ---- fills ---- */

static void filling_sets_every_element_of_a_view(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(3, 3));
    struct ebb_tensor *column = ebb_tensor_select(stage->root, base, 1, 1);
    assert_int_equal(ebb_tensor_fill(column, ebb_value_int(-7)), 0);
    ASSERT_ELEMENTS(base, 0, -7, 2, 3, -7, 5, 6, -7, 8);
    assert_int_equal(ebb_tensor_fill(base, (struct ebb_value){0}), 0);
    ASSERT_ELEMENTS(base, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static void every_dtype_is_filled_with_its_bytes(void **state) {
    static const uint16_t half = 0xC000, brain = 0xC000;
    static const float single = -2, singles[] = {-2, 0};
    static const double wide = -2, wides[] = {-2, 0};
    static const int8_t i8 = -2;
    static const int16_t i16 = -2;
    static const int32_t i32 = -2;
    static const int64_t i64 = -2;
    const struct {
        struct ebb_dtype dtype;
        const void *element;
    } expected[] = {{INT8, &i8},         {INT16, &i16},      {INT32, &i32},     {INT64, &i64},
                    {FLOAT16, &half},    {BFLOAT16, &brain}, {FLOAT32, &single},
                    {FLOAT64, &wide},    {COMPLEX64, singles}, {COMPLEX128, wides}};
    const struct ebb_value values[] = {ebb_value_int(-2), ebb_value_float(-2),
                                       ebb_value_complex(-2, 0)};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        for (size_t v = 0; v < 3; v++) {
            struct ebb_tensor *tensor =
                ebb_tensor_new_zeroed(stage->root, expected[i].dtype, SHAPE(1000));
            assert_int_equal(ebb_tensor_fill(tensor, values[v]), 0);
            for (int64_t at = 0; at < 1000; at++)
                assert_memory_equal(place_of(tensor, at), expected[i].element,
                                    ebb_dtype_bytes(tensor->dtype));
        }
}

static void values_at_the_edge_of_a_dtype_are_told_apart(void **state) {
    const struct {
        struct ebb_dtype dtype;
        struct ebb_value held, lost;
    } edges[] = {
        {BOOL, ebb_value_int(1), ebb_value_int(2)},
        {BOOL, ebb_value_float(1), ebb_value_float(-1)},
        {INT8, ebb_value_int(-128), ebb_value_int(-129)},
        {INT8, ebb_value_uint(127), ebb_value_uint(128)},
        {INT16, ebb_value_float(32767), ebb_value_float(32768)},
        {INT16, ebb_value_float(-0.0), ebb_value_float(0x1p-1074)},
        {INT32, ebb_value_int(INT32_MIN), ebb_value_int((int64_t)INT32_MIN - 1)},
        {INT64, ebb_value_uint(INT64_MAX), ebb_value_uint((uint64_t)INT64_MAX + 1)},
        {INT64, ebb_value_float(-0x1p63), ebb_value_float(0x1p63)},
        {INT64, ebb_value_bool(true), ebb_value_float((double)NAN)},
        {UINT8, ebb_value_int(255), ebb_value_int(256)},
        {UINT8, ebb_value_int(0), ebb_value_int(-1)},
        {UINT16, ebb_value_uint(65535), ebb_value_uint(65536)},
        {UINT32, ebb_value_float(4294967295.0), ebb_value_float(4294967296.0)},
        {UINT64, ebb_value_uint(UINT64_MAX), ebb_value_int(-1)},
        {UINT64, ebb_value_float(0x1p63), ebb_value_float(0x1p64)},
        {UINT64, ebb_value_float(-0.0), ebb_value_float(-0.5)},
        {FLOAT16, ebb_value_float(65504), ebb_value_float(65505)},
        {FLOAT16, ebb_value_float(0x1p-24), ebb_value_float(0x1p-25)},
        {FLOAT16, ebb_value_float(0x1.ff8p-15), ebb_value_float(0x1.ffcp-15)},
        {FLOAT16, ebb_value_int(2048), ebb_value_int(2049)},
        {FLOAT16, ebb_value_float((double)INFINITY), ebb_value_float(0x1p16)},
        {BFLOAT16, ebb_value_int(256), ebb_value_int(257)},
        {BFLOAT16, ebb_value_float(0x1p-133), ebb_value_float(0x1p-134)},
        {BFLOAT16, ebb_value_float(0x1.fep127), ebb_value_float(0x1.ffp127)},
        {FLOAT32, ebb_value_float((double)0.1f), ebb_value_float(0.1)},
        {FLOAT32, ebb_value_int(1 << 24), ebb_value_int((1 << 24) + 1)},
        {FLOAT32, ebb_value_float(0x1p-149), ebb_value_float(0x1p-150)},
        {FLOAT32, ebb_value_float(0x1.fffffep127), ebb_value_float(0x1p128)},
        {FLOAT64, ebb_value_int(INT64_MIN), ebb_value_int(INT64_MAX)},
        {FLOAT64, ebb_value_uint((uint64_t)1 << 63), ebb_value_uint(UINT64_MAX)},
        {FLOAT64, ebb_value_complex(0.1, -0.0), ebb_value_complex(0, 1)},
        {COMPLEX64, ebb_value_complex(1, 0.5), ebb_value_complex(1, 0.1)},
        {COMPLEX128, ebb_value_complex(0.1, 0.1), ebb_value_uint(UINT64_MAX)},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        struct ebb_tensor *tensor = ebb_tensor_new(stage->root, edges[i].dtype, SHAPE(2));
        size_t bytes = ebb_tensor_bytes(tensor);
        if (ebb_tensor_fill(tensor, edges[i].held) != 0)
            fail_msg("edge %zu: %s", i, ebb_last_error_text());
        char *kept = malloc(bytes);
        memcpy(kept, tensor->data, bytes);
        assert_refused(ebb_tensor_fill(tensor, edges[i].lost), EBB_E_VALUE);
        assert_memory_equal(kept, tensor->data, bytes);
        free(kept);
    }
}

static void what_is_no_number_is_kept_by_floating_point(void **state) {
    static const struct {
        double given;
        uint16_t half, brain;
    } cases[] = {{(double)INFINITY, 0x7C00, 0x7F80}, {-(double)INFINITY, 0xFC00, 0xFF80},
                 {0.0, 0, 0}, {-0.0, 0x8000, 0x8000}, {(double)NAN, 0x7E00, 0x7FC0}};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ebb_tensor *half = ebb_tensor_new(stage->root, FLOAT16, SHAPE(1));
        struct ebb_tensor *brain = ebb_tensor_new(stage->root, BFLOAT16, SHAPE(1));
        assert_int_equal(ebb_tensor_fill(half, ebb_value_float(cases[i].given)), 0);
        assert_int_equal(ebb_tensor_fill(brain, ebb_value_float(cases[i].given)), 0);
        assert_int_equal(*(uint16_t *)half->data, cases[i].half);
        assert_int_equal(*(uint16_t *)brain->data, cases[i].brain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_copy_follows_the_strides_of_both),
        STAGED(a_copy_into_a_part_leaves_the_rest),
        STAGED(an_expanded_source_is_written_out),
        STAGED(a_contiguous_copy_is_always_a_copy),
        STAGED(a_tensor_like_another_has_its_shape_and_dtype_only),
        STAGED(dtypes_that_are_no_numbers_are_copied_too),
        STAGED(scalars_and_tensors_without_elements_are_copied),
        STAGED(a_copy_to_the_same_elements_does_nothing),
        STAGED(interleaved_elements_are_apart),
        STAGED(large_views_of_one_tensor_are_copied_between_each_other),
        STAGED(elements_that_share_memory_are_refused),
        STAGED(a_destination_whose_elements_share_memory_is_refused),
        STAGED(filling_sets_every_element_of_a_view),
        STAGED(every_dtype_is_filled_with_its_bytes),
        STAGED(values_at_the_edge_of_a_dtype_are_told_apart),
        STAGED(what_is_no_number_is_kept_by_floating_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
