// SPDX-License-Identifier: Apache-2.0
/*
 * views.c - views that cannot be: indices and dimensions that are not there, ranges that leave
 * the tensor, shapes of other counts, regions that cannot see the storage, tensors that are none.
 */
#include "bad_input/court.h"
#include "kit/tensors.h"

/* Of the court's child, int32: 3 by 4. */
static struct ebb_tensor *exhibit(struct court *court) {
    struct ebb_tensor *tensor = counting(court->child, SHAPE(3, 4));
    court_note(court);
    return tensor;
}

static void slices_that_leave_the_dimension_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    static const struct ebb_slice bad[] = {
        {1, -1, 2, 1}, {1, 0, 5, 1}, {1, 5, 5, 1}, {1, 3, 2, 1}, {1, 0, -1, 1},
        {1, 0, 4, -1}, {1, INT64_MIN, INT64_MAX, 1}, {1, 0, 4, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        court_refused_block(court, ebb_tensor_slice(court->child, tensor, bad[i]), EBB_E_SHAPE,
                            "of dimension 1, which has size 4");
    court_refused_block(court, ebb_tensor_slice(court->child, tensor, bad[1]), EBB_E_SHAPE,
                        "slice 0 to 5 by 1");
}

static void dimensions_that_are_not_there_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    static const int bad[] = {-1, 2, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        ebb_region at = court->child;
        struct ebb_slice slice = {.dim = bad[i]};
        court_refused_block(court, ebb_tensor_slice(at, tensor, slice), EBB_E_SHAPE, "of 2");
        court_refused_block(court, ebb_tensor_select(at, tensor, bad[i], 0), EBB_E_SHAPE, "of 2");
        court_refused_block(court, ebb_tensor_squeeze(at, tensor, bad[i]), EBB_E_SHAPE, "of 2");
        court_refused_block(court, ebb_tensor_transpose(at, tensor, bad[i], 0), EBB_E_SHAPE,
                            "of 2");
        court_refused_block(court, ebb_tensor_transpose(at, tensor, 0, bad[i]), EBB_E_SHAPE,
                            "of 2");
        if (bad[i] != 2)
            court_refused_block(court, ebb_tensor_unsqueeze(at, tensor, bad[i]), EBB_E_SHAPE,
                                "beside 2");
    }
    court_refused_block(court, ebb_tensor_unsqueeze(court->child, tensor, 3), EBB_E_SHAPE,
                        "dimension 3");
}

static void indices_that_are_not_there_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    static const int64_t bad[] = {-1, 3, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 4; i++)
        court_refused_block(court, ebb_tensor_select(court->child, tensor, 0, bad[i]),
                            EBB_E_SHAPE, "dimension 0, which has size 3");
    court_refused_block(court, ebb_tensor_squeeze(court->child, tensor, 1), EBB_E_SHAPE,
                        "size 4, not 1");
}

/* Nor if there are no elements: consumers of an export read the strides all the same. */
static void strides_are_there_and_not_negative(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    for (int64_t size = 0; size < 3; size++)
        court_refused_block(court, ebb_tensor_view(court->child, tensor, SHAPE(2, size),
                                                   SIZES(1, -1), 0),
                            EBB_E_SHAPE, "stride -1");
    court_refused_block(court, ebb_tensor_view(court->child, tensor, SHAPE(0, 2),
                                               SIZES(INT64_MIN, 1), 0),
                        EBB_E_SHAPE, "dimension 0");
    court_refused_block(court, ebb_tensor_view(court->child, tensor, SHAPE(2, 2), NULL, 0),
                        EBB_E_SHAPE, "2 dimensions, no strides");
}

static void shapes_at_null_are_called_that(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    ebb_region at = court->child;
    court_refused_block(court, ebb_tensor_new(at, INT8, 2, NULL), EBB_E_SHAPE, "is NULL");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, 2, NULL), EBB_E_SHAPE, "is NULL");
    court_refused_block(court, ebb_tensor_expand(at, tensor, 2, NULL), EBB_E_SHAPE, "is NULL");
    court_refused_block(court, ebb_tensor_new(at, INT8, -2, NULL), EBB_E_SHAPE, "-2 dimensions");
}

/* Of the largest stride there is the last element is 2^63 behind the first, which no type holds. */
static void elements_beyond_the_storage_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *bytes = ebb_tensor_new(court->child, INT8, SHAPE(64));
    struct ebb_tensor *tensor = exhibit(court);
    static const int64_t strides[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, 63, 64};
    for (size_t i = 0; i < 5; i++) {
        struct ebb_tensor *view =
            ebb_tensor_view(court->child, bytes, SHAPE(2), SIZES(strides[i]), 1);
        court_refused_block(court, view, EBB_E_SHAPE, NULL);
        if (strides[i] == 63)
            continue;
        view = ebb_tensor_view(court->child, bytes, SHAPE(2), SIZES(strides[i]), 0);
        court_refused_block(court, view, EBB_E_SHAPE, NULL);
        view = ebb_tensor_view(court->child, tensor, SHAPE(2), SIZES(strides[i]), 0);
        court_refused_block(court, view, EBB_E_SHAPE, NULL);
    }
}

static void permutations_that_are_none_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    static const int bad[][2] = {{0, 0}, {1, 1}, {0, 2}, {-1, 0}, {1, INT32_MIN}, {1, 32}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        court_refused_block(court, ebb_tensor_permute(court->child, tensor, bad[i]),
                            EBB_E_PERMUTATION, "of 2");
    court_refused_block(court, ebb_tensor_permute(court->child, tensor, NULL), EBB_E_ARGUMENT,
                        "2 dimensions");
}

static void shapes_of_other_counts_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court), *none = counting(court->child, SHAPE(0, 4));
    ebb_region at = court->child;
    int64_t half = (int64_t)1 << 32;
    court_note(court);
    court_refused_block(court, ebb_tensor_reshape(at, tensor, SHAPE(13)), EBB_E_SHAPE,
                        "12 elements in a shape of 13");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, SHAPE(5, -1)), EBB_E_SHAPE,
                        "some times 5");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, SHAPE(-1, -1)), EBB_E_SHAPE,
                        "dimension 1 is -1");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, SHAPE(-2, -6)), EBB_E_SHAPE, "-2");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, SHAPE(0)), EBB_E_SHAPE, "of 0");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, SHAPE(0, -1)), EBB_E_SHAPE, "12");
    court_refused_block(court, ebb_tensor_reshape(at, none, SHAPE(0, -1)), EBB_E_SHAPE, "0");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, SHAPE(half, half, 12)), EBB_E_SHAPE,
                        "overflow");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, 33, SIZES(1)), EBB_E_SHAPE, "33");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, -1, SIZES(1)), EBB_E_SHAPE, "-1");
    court_refused_block(court, ebb_tensor_reshape(at, tensor, 1, NULL), EBB_E_SHAPE, "1");
}

static void expansions_that_do_not_fit_are_refused(void **state) {
    struct court *court = *state;
    ebb_region at = court->child;
    struct ebb_tensor *tensor = counting(at, SHAPE(3, 1));
    court_note(court);
    court_refused_block(court, ebb_tensor_expand(at, tensor, SHAPE(3)), EBB_E_SHAPE, "2");
    court_refused_block(court, ebb_tensor_expand(at, tensor, SHAPE(4, 1)), EBB_E_SHAPE,
                        "size 3 expanded to 4");
    court_refused_block(court, ebb_tensor_expand(at, tensor, SHAPE(3, -1)), EBB_E_SHAPE, "-1");
    court_refused_block(court, ebb_tensor_expand(at, tensor, SHAPE(-5, 3, 1)), EBB_E_SHAPE, "-5");
    court_refused_block(court, ebb_tensor_expand(at, tensor, SHAPE(INT64_MAX, 3, 9)), EBB_E_SIZE,
                        "overflow");
    court_refused_block(court, ebb_tensor_expand(at, tensor, 33, SIZES(1)), EBB_E_SHAPE, "33");
}

static void regions_that_cannot_see_the_storage_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    court_refused_block(court, ebb_tensor_select(court->root, tensor, 0, 0), EBB_E_NOT_ANCESTOR,
                        "'child'");
    court_refused_block(court, ebb_tensor_select(court->elsewhere, tensor, 0, 0),
                        EBB_E_NOT_ANCESTOR, "'elsewhere'");
    court_refused_block(court, ebb_tensor_select(court->closed, tensor, 0, 0), EBB_E_STALE, NULL);
    court_refused_block(court, ebb_tensor_select(court->measuring, tensor, 0, 0),
                        EBB_E_MEASURING, NULL);
    struct ebb_tensor *above = counting(court->root, SHAPE(2));
    court_note(court);
    court_refused_block(court, ebb_tensor_select(court->sealed, above, 0, 0), EBB_E_SEALED,
                        "'sealed'");
}

static void what_is_no_tensor_has_no_views(void **state) {
    struct court *court = *state;
    struct ebb_tensor *tensor = exhibit(court);
    assert_int_equal(ebb_object_end(tensor), 0);
    court_note(court);
    const void *const none[] = {NULL, court->small + 16, tensor, &court};
    for (size_t i = 0; i < 4; i++) {
        const struct ebb_tensor *bad = none[i];
        ebb_region at = court->child;
        assert_null(ebb_tensor_select(at, bad, 0, 0));
        assert_null(ebb_tensor_slice(at, bad, (struct ebb_slice){0, 0, 0, 0}));
        assert_null(ebb_tensor_transpose(at, bad, 0, 0));
        assert_null(ebb_tensor_permute(at, bad, NULL));
        assert_null(ebb_tensor_reshape(at, bad, 0, NULL));
        assert_null(ebb_tensor_expand(at, bad, 0, NULL));
        assert_null(ebb_tensor_squeeze(at, bad, 0));
        court_refused_block(court, ebb_tensor_unsqueeze(at, bad, 0), ebb_last_error(), NULL);
    }
}

/* Nothing is read where no memory is. */
static void blocks_without_memory_are_no_objects(void **state) {
    struct court *court = *state;
    void *small = ebb_region_alloc(court->measuring, 200, 16);
    void *const phantoms[] = {court->phantom, small};
    court_note(court);
    for (size_t i = 0; i < 2; i++) {
        const char *bytes = i ? "200 bytes" : "5000 bytes";
        court_refused(court, ebb_object_end(phantoms[i]), EBB_E_TYPE, bytes, NULL);
        court_refused_block(court, ebb_object_as(phantoms[i], &ebb_type_tensor), EBB_E_TYPE, bytes);
        court_refused_block(court, ebb_tensor_like(court->child, phantoms[i]), EBB_E_TYPE, bytes);
        assert_false(ebb_region_owns(court->measuring, phantoms[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TRIAL(slices_that_leave_the_dimension_are_refused),
        TRIAL(dimensions_that_are_not_there_are_refused),
        TRIAL(indices_that_are_not_there_are_refused),
        TRIAL(strides_are_there_and_not_negative),
        TRIAL(shapes_at_null_are_called_that),
        TRIAL(elements_beyond_the_storage_are_refused),
        TRIAL(permutations_that_are_none_are_refused),
        TRIAL(shapes_of_other_counts_are_refused),
        TRIAL(expansions_that_do_not_fit_are_refused),
        TRIAL(regions_that_cannot_see_the_storage_are_refused),
        TRIAL(what_is_no_tensor_has_no_views),
        TRIAL(blocks_without_memory_are_no_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
