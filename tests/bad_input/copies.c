// SPDX-License-Identifier: Apache-2.0
/*
 * copies.c - copies, fills and conversions that cannot be: shapes and dtypes that differ, memory
 * that is shared, numbers that would change, dtypes that hold none, tensors that are none.
 */
#include "bad_input/court.h"
#include "kit/tensors.h"

static void shapes_that_differ_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *source = counting(court->child, SHAPE(3, 4));
    struct ebb_tensor *turned = counting(court->child, SHAPE(4, 3));
    struct ebb_tensor *flat = counting(court->child, SHAPE(12));
    struct ebb_tensor *row = counting(court->child, SHAPE(1, 4));
    court_note(court);
    court_refused(court, ebb_tensor_copy(turned, source), EBB_E_SHAPE, "dimension 0: a copy of 3",
                  "to 4", NULL);
    court_refused(court, ebb_tensor_copy(flat, source), EBB_E_SHAPE, "2 dimensions to 1", NULL);
    court_refused(court, ebb_tensor_copy(source, row), EBB_E_SHAPE, "a copy of 1 to 3", NULL);
    for (int i = 0; i < 12; i++)
        assert_int_equal(element_at(turned, i), i);
}

static void dtypes_that_differ_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *source = counting(court->child, SHAPE(4));
    const struct ebb_dtype others[] = {FLOAT32, UINT32, {EBB_INT, 32, 2}, {EBB_INT, 31, 1}};
    const char *const names[] = {"float32", "uint32", "int32x2", "int31"};
    for (int i = 0; i < 4; i++) {
        struct ebb_tensor *target = ebb_tensor_new_zeroed(court->child, others[i], SHAPE(4));
        court_note(court);
        court_refused(court, ebb_tensor_copy(target, source), EBB_E_DTYPE, "a copy of int32 to",
                      names[i], NULL);
    }
}

static void shared_memory_is_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *base = counting(court->child, SHAPE(4, 4));
    struct ebb_tensor *turned = ebb_tensor_transpose(court->child, base, 0, 1);
    struct ebb_tensor *one = ebb_tensor_reshape(court->child, base, SHAPE(1, 16));
    struct ebb_tensor *wide = ebb_tensor_expand(court->child, one, SHAPE(2, 16));
    struct ebb_tensor *source = counting(court->child, SHAPE(2, 16));
    court_note(court);
    court_refused(court, ebb_tensor_copy(base, turned), EBB_E_OVERLAP, "16 elements", NULL);
    court_refused(court, ebb_tensor_copy(wide, source), EBB_E_OVERLAP, "32 elements", NULL);
    court_refused(court, ebb_tensor_fill(wide, ebb_value_int(1)), EBB_E_OVERLAP, "32", NULL);
    for (int i = 0; i < 16; i++)
        assert_int_equal(element_at(base, i), i);
}

static void values_that_are_not_held_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *bytes = ebb_tensor_new_zeroed(court->child, INT8, SHAPE(5));
    struct ebb_tensor *single = ebb_tensor_new_zeroed(court->child, FLOAT32, SHAPE(5));
    court_note(court);
    court_refused(court, ebb_tensor_fill(bytes, ebb_value_int(300)), EBB_E_VALUE, "300", "int8",
                  NULL);
    court_refused(court, ebb_tensor_fill(bytes, ebb_value_uint(UINT64_MAX)), EBB_E_VALUE,
                  "18446744073709551615", NULL);
    court_refused(court, ebb_tensor_fill(single, ebb_value_float(0.1)), EBB_E_VALUE, "0.1000",
                  "float32", NULL);
    court_refused(court, ebb_tensor_fill(single, ebb_value_complex(1, -2)), EBB_E_VALUE, "1-2i",
                  NULL);
    struct ebb_value none = {.kind = (enum ebb_value_kind)9};
    court_refused(court, ebb_tensor_fill(single, none), EBB_E_ARGUMENT, "kind 9", NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(((int8_t *)bytes->data)[i], 0);
}

static void dtypes_without_numbers_are_neither_filled_nor_converted(void **state) {
    static const struct ebb_dtype none[] = {{EBB_INT, 12, 1}, {EBB_FLOAT, 8, 1}, {EBB_BOOL, 1, 1},
                                            {EBB_FLOAT, 4, 2}, {EBB_OPAQUE, 64, 1},
                                            {EBB_COMPLEX, 32, 1}, {EBB_BFLOAT, 32, 1}};
    struct court *court = *state;
    struct ebb_tensor *source = counting(court->child, SHAPE(4));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct ebb_tensor *odd = ebb_tensor_new_zeroed(court->child, none[i], SHAPE(4));
        court_note(court);
        court_refused(court, ebb_tensor_fill(odd, ebb_value_int(0)), EBB_E_DTYPE, NULL);
        court_refused_block(court, ebb_tensor_convert(court->child, odd, INT32), EBB_E_DTYPE, "");
        court_refused_block(court, ebb_tensor_convert(court->child, source, none[i]), EBB_E_DTYPE,
                            "no dtype whose numbers");
    }
    struct ebb_dtype unknown = {9, 8, 1};
    court_refused_block(court, ebb_tensor_convert(court->child, source, unknown), EBB_E_DTYPE,
                        "code 9");
}

static void elements_that_are_too_long_are_neither_filled_nor_converted(void **state) {
    static const struct ebb_dtype most = {EBB_INT, 32, 64}, more = {EBB_INT, 32, 65},
                                  fine = {EBB_INT, 4, 512}, finer = {EBB_INT, 4, 514};
    struct court *court = *state;
    struct ebb_tensor *last = ebb_tensor_new_zeroed(court->child, most, SHAPE(3));
    struct ebb_tensor *long_one = ebb_tensor_new_zeroed(court->child, more, SHAPE(3));
    struct ebb_tensor *nibbles = ebb_tensor_new_zeroed(court->child, finer, SHAPE(3));
    court_note(court);
    court_refused(court, ebb_tensor_fill(long_one, ebb_value_int(1)), EBB_E_DTYPE, "int32x65",
                  "260 bytes", "256", NULL);
    court_refused(court, ebb_tensor_fill(nibbles, ebb_value_int(1)), EBB_E_DTYPE, "257 bytes",
                  NULL);
    court_refused_block(court, ebb_tensor_convert(court->child, long_one, most), EBB_E_DTYPE,
                        "260");
    court_refused_block(court, ebb_tensor_convert(court->child, last, more), EBB_E_DTYPE, "260");
    court_refused_block(court, ebb_tensor_convert(court->child, last, INT32), EBB_E_DTYPE,
                        "int32x64 to int32: 64 lanes and 1");
    court_refused_block(court, ebb_tensor_convert(court->child, last, fine), EBB_E_DTYPE,
                        "64 lanes and 512");
    assert_int_equal(ebb_tensor_fill(last, ebb_value_int(1)), 0);
}

static void a_lane_that_loses_a_number_is_named(void **state) {
    struct court *court = *state;
    static const int32_t numbers[] = {7, -8, 0, 1, 2, 8};
    struct ebb_tensor *pairs =
        ebb_tensor_from(court->child, (struct ebb_dtype){EBB_INT, 32, 2}, SHAPE(3), numbers);
    struct ebb_tensor *nibbles =
        ebb_tensor_new_zeroed(court->child, (struct ebb_dtype){EBB_INT, 4, 2}, SHAPE(3));
    court_note(court);
    court_refused_block(court, ebb_tensor_convert(court->child, pairs, nibbles->dtype), EBB_E_VALUE,
                        "element 2, lane 1, is 8, not held exactly by int4x2");
    court_refused(court, ebb_tensor_fill(nibbles, ebb_value_int(8)), EBB_E_VALUE, "8", "int4x2",
                  NULL);
    court_refused(court, ebb_tensor_fill(nibbles, ebb_value_int(-9)), EBB_E_VALUE, "-9", NULL);
    assert_memory_equal(nibbles->data, "\0\0\0", 3);
}

static void a_conversion_that_loses_a_number_leaves_nothing(void **state) {
    struct court *court = *state;
    struct ebb_tensor *source = counting(court->child, SHAPE(100, 100));
    struct counted before = counted_of(court->child);
    court_note(court);
    court_refused_block(court, ebb_tensor_convert(court->child, source, UINT8), EBB_E_VALUE,
                        "element 256 is 256, not held exactly by uint8");
    court_refused_block(court, ebb_tensor_convert(court->child, source, FLOAT16), EBB_E_VALUE,
                        "element 2049 is 2049");
    court_refused_block(court, ebb_tensor_convert(court->child, source, BOOL), EBB_E_VALUE,
                        "element 2 is 2");
    assert_nothing_changed(court->child, &before);
}

static void regions_that_take_nothing_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *source = counting(court->child, SHAPE(100, 100));
    court_note(court);
    const struct {
        ebb_region region;
        int code;
    } bad[] = {{court->closed, EBB_E_STALE},
               {court->sealed, EBB_E_SEALED},
               {court->limited, EBB_E_REGION_LIMIT},
               {court->measuring, EBB_E_MEASURING}};
    for (int i = 0; i < 4; i++) {
        court_refused_block(court, ebb_tensor_contiguous(bad[i].region, source), bad[i].code, "");
        court_refused_block(court, ebb_tensor_like(bad[i].region, source), bad[i].code, "");
        court_refused_block(court, ebb_tensor_convert(bad[i].region, source, INT64), bad[i].code,
                            "");
        court_refused_block(court, ebb_tensor_convert(bad[i].region, source, INT16), bad[i].code,
                            "");
    }
}

static void elements_at_null_are_none(void **state) {
    struct court *court = *state;
    court_note(court);
    court_refused_block(court, ebb_tensor_from(court->child, INT32, SHAPE(2, 3), NULL),
                        EBB_E_ARGUMENT, "24 bytes");
    court_refused_block(court, ebb_tensor_from(court->child, INT32, 1, NULL, NULL), EBB_E_SHAPE,
                        NULL);
    assert_non_null(ebb_tensor_from(court->child, INT32, SHAPE(2, 0), NULL));
}

static void what_is_no_tensor_is_not_copied(void **state) {
    struct court *court = *state;
    struct ebb_tensor *good = counting(court->child, SHAPE(4));
    struct ebb_tensor *ended = counting(court->child, SHAPE(4));
    assert_int_equal(ebb_object_end(ended), 0);
    court_note(court);
    struct ebb_tensor *const none[] = {NULL, (void *)(court->small + 16), ended, (void *)&court};
    for (size_t i = 0; i < 4; i++) {
        assert_int_not_equal(ebb_tensor_copy(good, none[i]), 0);
        assert_int_not_equal(ebb_tensor_copy(none[i], good), 0);
        assert_int_not_equal(ebb_tensor_fill(none[i], ebb_value_int(0)), 0);
        assert_null(ebb_tensor_contiguous(court->child, none[i]));
        assert_null(ebb_tensor_like(court->child, none[i]));
        court_refused_block(court, ebb_tensor_convert(court->child, none[i], INT8),
                            ebb_last_error(), "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TRIAL(shapes_that_differ_are_refused),
        TRIAL(dtypes_that_differ_are_refused),
        TRIAL(shared_memory_is_refused),
        TRIAL(values_that_are_not_held_are_refused),
        TRIAL(dtypes_without_numbers_are_neither_filled_nor_converted),
        TRIAL(elements_that_are_too_long_are_neither_filled_nor_converted),
        TRIAL(a_lane_that_loses_a_number_is_named),
        TRIAL(a_conversion_that_loses_a_number_leaves_nothing),
        TRIAL(regions_that_take_nothing_are_refused),
        TRIAL(elements_at_null_are_none),
        TRIAL(what_is_no_tensor_is_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
