// SPDX-License-Identifier: Apache-2.0
/*
 * alias.c - results in the memory of existing tensors: where they lie, when they may, what is
 * made instead when they may not, and who keeps the storage alive.
 */
#include "kit/tensors.h"

#define ALIAS(...) (&(struct ebb_alias){.size = sizeof(struct ebb_alias), __VA_ARGS__})

static void a_result_lies_where_the_tensor_does(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *old = counting(stage->root, SHAPE(3, 4));
    uint64_t blocks = stats_of(stage->root).blocks.current;
    struct ebb_alias alias = {.size = sizeof alias, .reason = 7};
    struct ebb_tensor *result = ebb_tensor_alias(stage->root, old, FLOAT64, SHAPE(2, 3), &alias);
    assert_shape(result, SHAPE(2, 3));
    assert_int_equal(alias.reason, 0);
    assert_ptr_equal(result->data, old->data);
    assert_ptr_equal(result->storage, old->storage);
    assert_true(ebb_dtype_equal(result->dtype, FLOAT64));
    assert_true(ebb_tensor_is_contiguous(result));
    assert_int_equal(stats_of(stage->root).blocks.current, blocks + 1);
    assert_int_equal(ebb_tensor_fill(result, ebb_value_float(0.5)), 0);
    assert_int_equal(element_at(old, 1), 0x3FE00000);
}

static void no_options_mean_all_checks(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *old = counting(stage->root, SHAPE(12));
    struct ebb_tensor *result = ebb_tensor_alias(stage->root, old, INT32, SHAPE(12), NULL);
    ASSERT_ELEMENTS(result, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    assert_no_block(ebb_tensor_alias(stage->root, old, INT32, SHAPE(12), NULL), EBB_E_OVERLAP);
    assert_text_names("2 tensors see the storage of 48 bytes");
}

static void elements_of_one_byte_may_lie_anywhere(void **state) {
    struct stage *stage = *state;
    static const struct ebb_dtype types[] = {{EBB_INT, 8, 1}, {EBB_COMPLEX, 8, 1}};
    struct ebb_tensor *old = ebb_tensor_new(stage->root, INT8, 1, (const int64_t[]){5});
    struct ebb_tensor *odd =
        ebb_tensor_slice(stage->root, old, (struct ebb_slice){.dim = 0, .start = 1, .stop = 5});
    for (int i = 0; i < 2; i++)
        assert_non_null(ebb_tensor_alias(stage->root, odd, types[i], SHAPE(4),
                                         ALIAS(.shared = true)));
}

static void the_result_keeps_the_storage(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *old = counting(stage->root, SHAPE(2000));
    struct ebb_tensor *result = ebb_tensor_alias(stage->root, old, INT32, SHAPE(4), NULL);
    assert_int_equal(ebb_object_end(old), 0);
    ASSERT_ELEMENTS(result, 0, 1, 2, 3);
    struct ebb_tensor *next = ebb_tensor_alias(stage->root, result, INT8, SHAPE(16), NULL);
    assert_non_null(next);
    assert_int_equal(ebb_object_end(result), 0);
    assert_no_block(ebb_tensor_alias(stage->root, next, INT8, SHAPE(17), NULL), EBB_E_NO_ROOM);
    assert_int_equal(ebb_object_end(next), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

/* ---- where it cannot be ---- */

static void a_tensor_that_others_see_is_taken_only_if_the_caller_vouches(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *old = counting(stage->root, SHAPE(4));
    struct ebb_tensor *seen = ebb_tensor_reshape(stage->root, old, SHAPE(2, 2));
    struct counted before = counted_of(stage->root);
    assert_no_block(ebb_tensor_alias(stage->root, old, INT32, SHAPE(4), ALIAS(.shared = false)),
                    EBB_E_OVERLAP);
    assert_nothing_changed(stage->root, &before);
    struct ebb_tensor *result =
        ebb_tensor_alias(stage->root, old, INT32, SHAPE(4), ALIAS(.shared = true));
    assert_non_null(result);
    assert_int_equal(ebb_tensor_fill(result, ebb_value_int(9)), 0);
    ASSERT_ELEMENTS(seen, 9, 9, 9, 9);
}

/* Refused with this code, or a fresh tensor that says so. */
static void check_fall_back(ebb_region region, const struct ebb_tensor *old,
                            struct ebb_dtype dtype, int64_t count, int code) {
    struct ebb_alias alias = {.size = sizeof alias, .shared = code != EBB_E_OVERLAP, .reason = 7};
    struct counted before = counted_of(region);
    assert_no_block(ebb_tensor_alias(region, old, dtype, 1, &count, &alias), code);
    assert_int_equal(alias.reason, 7);
    assert_nothing_changed(region, &before);
    alias.fall_back = true;
    int earlier = ebb_region_close(ebb_region_of(NULL)); /* an error to be kept */
    struct ebb_tensor *fresh = ebb_tensor_alias(region, old, dtype, 1, &count, &alias);
    assert_non_null(fresh);
    assert_int_equal(ebb_last_error(), earlier);
    assert_int_equal(alias.reason, code);
    assert_int_equal(fresh->storage->tensors, 1);
    assert_ptr_not_equal(fresh->storage, old->storage);
    assert_int_equal(ebb_tensor_bytes(fresh), (size_t)count * ebb_dtype_bytes(dtype));
    assert_int_equal(ebb_object_end(fresh), 0);
}

static void what_cannot_be_an_alias_is_refused_or_fresh(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.name = "step", .parent = stage->root);
    struct ebb_tensor *old = counting(step, SHAPE(4, 4));
    check_fall_back(step, old, INT32, 17, EBB_E_NO_ROOM);
    check_fall_back(step, old, INT8, 65, EBB_E_NO_ROOM);
    check_fall_back(step, old, COMPLEX128, 5, EBB_E_NO_ROOM);
    check_fall_back(stage->root, old, INT32, 16, EBB_E_NOT_ANCESTOR);
    struct ebb_tensor *turned = ebb_tensor_transpose(step, old, 0, 1);
    check_fall_back(step, turned, INT32, 4, EBB_E_VIEW);
    check_fall_back(step, old, INT32, 16, EBB_E_OVERLAP);
    struct ebb_tensor *row = ebb_tensor_select(step, old, 0, 1);
    check_fall_back(step, row, INT32, 5, EBB_E_NO_ROOM); /* room behind it is not its own */
    struct ebb_tensor *bytes = ebb_tensor_new(step, UINT8, SHAPE(64));
    struct ebb_tensor *odd = ebb_tensor_slice(step, bytes, (struct ebb_slice){0, 4, 64, 1});
    check_fall_back(step, odd, FLOAT64, 1, EBB_E_VIEW);
    assert_non_null(ebb_tensor_alias(step, odd, COMPLEX64, SHAPE(7), ALIAS(.shared = true)));
}

static void bad_arguments_are_errors_even_with_a_fall_back(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *old = counting(stage->root, SHAPE(4));
    struct ebb_dtype none = {9, 8, 1};
    struct ebb_alias short_one = {.size = 1, .fall_back = true};
    struct counted before = counted_of(stage->root);
    struct ebb_alias *alias = ALIAS(.fall_back = true);
    assert_no_block(ebb_tensor_alias(stage->root, old, none, SHAPE(4), alias), EBB_E_DTYPE);
    assert_no_block(ebb_tensor_alias(stage->root, old, INT32, SHAPE(-4), alias), EBB_E_SHAPE);
    assert_no_block(ebb_tensor_alias(stage->root, old, INT32, 33, SIZES(1), alias), EBB_E_SHAPE);
    assert_no_block(ebb_tensor_alias(stage->root, old, INT32, SHAPE(INT64_MAX, 2), alias),
                    EBB_E_SIZE);
    assert_no_block(ebb_tensor_alias(stage->root, NULL, INT32, SHAPE(4), alias), EBB_E_FOREIGN);
    assert_no_block(ebb_tensor_alias(ebb_region_of(NULL), old, INT32, SHAPE(4), alias),
                    EBB_E_STALE);
    assert_no_block(ebb_tensor_alias(stage->root, old, INT32, SHAPE(4), &short_one),
                    EBB_E_ARGUMENT);
    assert_int_equal(alias->reason, 0);
    assert_nothing_changed(stage->root, &before);
}

static void an_alias_may_be_made_below_and_leaves_with_its_region(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *old = counting(stage->root, SHAPE(4));
    for (int round = 0; round < 3; round++) {
        ebb_region step = OPEN(.parent = stage->root);
        struct ebb_tensor *result = ebb_tensor_alias(step, old, INT32, SHAPE(2, 2), NULL);
        assert_non_null(result);
        assert_int_equal(ebb_tensor_fill(result, ebb_value_int(round)), 0);
        assert_int_equal(ebb_region_close(step), 0);
    }
    ASSERT_ELEMENTS(old, 2, 2, 2, 2);
    assert_int_equal(old->storage->tensors, 1);
}

static void scalars_and_results_without_elements_fit_anywhere(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *none = counting(stage->root, SHAPE(0));
    struct ebb_tensor *one = counting(stage->root, SHAPE(1));
    assert_shape(ebb_tensor_alias(stage->root, none, INT32, SHAPE(3, 0, INT64_MAX, INT64_MAX),
                                  NULL), SHAPE(3, 0, INT64_MAX, INT64_MAX));
    assert_int_equal(ebb_tensor_alias(stage->root, one, FLOAT32, 0, NULL, NULL)->ndim, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_result_lies_where_the_tensor_does),
        STAGED(no_options_mean_all_checks),
        STAGED(elements_of_one_byte_may_lie_anywhere),
        STAGED(the_result_keeps_the_storage),
        STAGED(a_tensor_that_others_see_is_taken_only_if_the_caller_vouches),
        STAGED(what_cannot_be_an_alias_is_refused_or_fresh),
        STAGED(bad_arguments_are_errors_even_with_a_fall_back),
        STAGED(an_alias_may_be_made_below_and_leaves_with_its_region),
        STAGED(scalars_and_results_without_elements_fit_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
