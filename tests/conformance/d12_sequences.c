// SPDX-License-Identifier: Apache-2.0
/*
 * d12_sequences.c - part D12: packed and padded sequences, as torch has them or should have;
 * and of part D4 what does not need other owners: 54, 55, 58.
 */
#include "conformance/law.h"
#include "object/strand.h"

#include <stdlib.h>

static const struct ebb_dtype int64_dtype = {EBB_INT, 64, 1}, float_dtype = {EBB_FLOAT, 32, 1};

#define PACK(...) \
    (&(struct ebb_pack_options){.size = sizeof(struct ebb_pack_options), __VA_ARGS__})
#define PAD(...) \
    (&(struct ebb_pad_options){.size = sizeof(struct ebb_pad_options), __VA_ARGS__})
#define LIST(...) (const int64_t[]){__VA_ARGS__}, \
    sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static struct ebb_tensor *vector(ebb_region region, const int64_t *values, size_t count) {
    int64_t shape = (int64_t)count;
    struct ebb_tensor *tensor = ebb_tensor_from(region, int64_dtype, 1, &shape, values);
    assert_non_null(tensor);
    return tensor;
}

static struct ebb_tensor *matrix(ebb_region region, int64_t rows, int64_t columns,
                                 const int64_t *values) {
    struct ebb_tensor *tensor =
        ebb_tensor_from(region, int64_dtype, 2, (int64_t[]){rows, columns}, values);
    assert_non_null(tensor);
    return tensor;
}

static void assert_vector(const struct ebb_tensor *tensor, const int64_t *values, size_t count) {
    assert_non_null(tensor);
    assert_int_equal(tensor->ndim, 1);
    assert_int_equal(tensor->shape[0], count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(((int64_t *)tensor->data)[i], values[i]);
}

static void assert_matrix(const struct ebb_tensor *tensor, int64_t rows, int64_t columns,
                          const int64_t *values) {
    assert_non_null(tensor);
    assert_int_equal(tensor->ndim, 2);
    assert_int_equal(tensor->shape[0], rows);
    assert_int_equal(tensor->shape[1], columns);
    assert_memory_equal(tensor->data, values, (size_t)(rows * columns) * sizeof *values);
}

/* 1 to 12 as three steps of four sequences */
static struct ebb_tensor *twelve(ebb_region region) {
    return matrix(region, 3, 4, (const int64_t[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
}

static struct ebb_packed *packed_twelve(ebb_region region) {
    struct ebb_packed *packed = ebb_padded_pack(region, twelve(region), LIST(3, 2, 2, 1),
                                                PACK(.enforce_sorted = true));
    assert_non_null(packed);
    return packed;
}

static void c146_sorted_sequences_are_packed_step_by_step(void **state) {
    struct stage *stage = *state;
    struct ebb_packed *packed = packed_twelve(stage->root);
    assert_vector(packed->data, LIST(1, 2, 3, 4, 5, 6, 7, 9));
    assert_vector(packed->batch_sizes, LIST(4, 3, 1));
    assert_null(packed->sorted_indices);
    assert_null(packed->unsorted_indices);
    assert_int_equal(packed->padded_length, 3);
    assert_int_equal(packed->count, 4);
}

static void c147_unsorted_sequences_are_sorted_and_remember_their_order(void **state) {
    struct stage *stage = *state;
    struct ebb_packed *packed =
        ebb_padded_pack(stage->root, twelve(stage->root), LIST(1, 2, 3, 1), NULL);
    assert_vector(packed->data, LIST(3, 2, 1, 4, 7, 6, 11));
    assert_vector(packed->batch_sizes, LIST(4, 2, 1));
    assert_vector(packed->sorted_indices, LIST(2, 1, 0, 3));
    assert_vector(packed->unsorted_indices, LIST(2, 1, 0, 3));
}

static void c149_batch_first_goes_there_and_back(void **state) {
    static const int64_t rows[] = {1, 2, 0, 3, 0, 0, 4, 5, 6};
    struct stage *stage = *state;
    struct ebb_packed *packed = ebb_padded_pack(stage->root, matrix(stage->root, 3, 3, rows),
                                                LIST(2, 1, 3), PACK(.batch_first = true));
    int64_t lengths[3];
    assert_vector(packed->data, LIST(4, 1, 3, 5, 2, 6));
    assert_vector(packed->batch_sizes, LIST(3, 2, 1));
    assert_vector(packed->sorted_indices, LIST(2, 0, 1));
    assert_vector(packed->unsorted_indices, LIST(1, 2, 0));
    assert_matrix(ebb_packed_pad(stage->root, packed, PAD(.batch_first = true)), 3, 3, rows);
    assert_int_equal(ebb_packed_read_lengths(packed, lengths, 3), 0);
    assert_memory_equal(lengths, ((int64_t[]){2, 1, 3}), sizeof lengths);
}

static void c150_lists_are_padded_on_either_side_and_cut_again(void **state) {
    struct stage *stage = *state;
    ebb_region root = stage->root;
    struct ebb_tensor *list[] = {vector(root, LIST(4, 5)), vector(root, LIST(1, 2, 3)),
                                 vector(root, LIST(6))};
    struct ebb_tensor *cut[3];
    const struct ebb_pad_options *batch_first = PAD(.batch_first = true);
    assert_matrix(ebb_sequences_pad(root, list, 3, batch_first), 3, 3,
                  (int64_t[]){4, 5, 0, 1, 2, 3, 6, 0, 0});
    assert_matrix(ebb_sequences_pad(root, list, 3, NULL), 3, 3,
                  (int64_t[]){4, 1, 6, 5, 2, 0, 0, 3, 0});
    assert_matrix(ebb_sequences_pad(root, list, 3, PAD(.batch_first = true, .padding.i = 1)),
                  3, 3, (int64_t[]){4, 5, 1, 1, 2, 3, 6, 1, 1});
    struct ebb_tensor *left =
        ebb_sequences_pad(root, list, 3, PAD(.batch_first = true, .side = EBB_SIDE_LEFT));
    assert_matrix(left, 3, 3, (int64_t[]){0, 4, 5, 1, 2, 3, 0, 0, 6});
    struct ebb_tensor *time_first =
        ebb_sequences_pad(root, list, 3, PAD(.side = EBB_SIDE_LEFT, .padding.i = -7));
    assert_matrix(time_first, 3, 3, (int64_t[]){-7, 1, -7, 4, 2, -7, 5, 3, 6});
    assert_int_equal(ebb_padded_unpad(root, ebb_sequences_pad(root, list, 3, batch_first),
                                      LIST(2, 3, 1), PACK(.batch_first = true), cut), 0);
    assert_vector(cut[0], LIST(4, 5));
    assert_vector(cut[1], LIST(1, 2, 3));
    assert_vector(cut[2], LIST(6));
    assert_int_equal(ebb_padded_unpad(root, left, LIST(2, 3, 1),
                                      PACK(.batch_first = true, .side = EBB_SIDE_LEFT), cut), 0);
    assert_vector(cut[0], LIST(4, 5));
    assert_vector(cut[1], LIST(1, 2, 3));
    assert_vector(cut[2], LIST(6));
    assert_int_equal(ebb_padded_unpad(root, time_first, LIST(2, 3, 1),
                                      PACK(.side = EBB_SIDE_LEFT), cut), 0);
    assert_vector(cut[0], LIST(4, 5));
    assert_vector(cut[1], LIST(1, 2, 3));
    assert_vector(cut[2], LIST(6));
}

static void c152_rows_have_any_dimensions(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *time_first =
        ebb_tensor_new_zeroed(stage->root, float_dtype, 4, (int64_t[]){4, 3, 2, 5});
    struct ebb_tensor *batch_first =
        ebb_tensor_new_zeroed(stage->root, float_dtype, 4, (int64_t[]){3, 4, 2, 5});
    for (int i = 0; i < 2; i++) {
        struct ebb_packed *packed =
            ebb_padded_pack(stage->root, i ? batch_first : time_first, LIST(4, 2, 1),
                            PACK(.batch_first = i == 1, .enforce_sorted = true));
        assert_non_null(packed);
        assert_int_equal(packed->data->ndim, 3);
        assert_memory_equal(packed->data->shape, ((int64_t[]){7, 2, 5}), 3 * sizeof(int64_t));
        assert_vector(packed->batch_sizes, LIST(3, 2, 1, 1));
    }
}

static void c153_the_total_length_is_at_least_the_longest(void **state) {
    struct stage *stage = *state;
    struct ebb_packed *packed = packed_twelve(stage->root);
    static const int64_t good[] = {3, 4, 11}, bad[] = {-1, 0, 2};
    for (int i = 0; i < 3; i++) {
        struct ebb_tensor *padded = ebb_packed_pad(
            stage->root, packed, PAD(.has_total_length = true, .total_length = good[i]));
        assert_non_null(padded);
        assert_int_equal(padded->shape[0], good[i]);
        assert_int_equal(padded->shape[1], 4);
        assert_memory_equal(padded->data,
                            ((int64_t[]){1, 2, 3, 4, 5, 6, 7, 0, 9, 0, 0, 0}), 96);
        for (int64_t at = 12; at < 4 * good[i]; at++)
            assert_int_equal(((int64_t *)padded->data)[at], 0);
        assert_no_block(ebb_packed_pad(stage->root, packed,
                                       PAD(.has_total_length = true, .total_length = bad[i])),
                        EBB_E_TOTAL_LENGTH);
        assert_text_names("the longest sequence has 3");
    }
    assert_matrix(ebb_packed_pad(stage->root, packed,
                                 PAD(.has_total_length = true, .total_length = 2,
                                     .allow_truncation = true)),
                  2, 4, (int64_t[]){1, 2, 3, 4, 5, 6, 7, 0});
}

static void c154_each_mistake_has_its_own_code(void **state) {
    struct stage *stage = *state;
    ebb_region root = stage->root;
    struct ebb_tensor *padded = twelve(root);
    assert_no_block(ebb_padded_pack(root, padded, LIST(3, 2, 2, -1), NULL),
                    EBB_E_LENGTH_NEGATIVE);
    assert_text_names("sequence 3 is -1");
    assert_no_block(ebb_padded_pack(root, padded, LIST(3, 2, 2, 0), PACK(.refuse_empty = true)),
                    EBB_E_LENGTH_NEGATIVE);
    assert_text_names("sequence 3 is 0");
    assert_non_null(ebb_padded_pack(root, padded, LIST(3, 2, 2, 0), NULL));
    assert_no_block(ebb_padded_pack(root, padded, LIST(3, 2, 2), NULL), EBB_E_LENGTH_COUNT);
    assert_text_names("3 lengths");
    assert_text_names("4 sequences");
    assert_no_block(ebb_padded_pack(root, padded, LIST(1, 2, 3, 1), PACK(.enforce_sorted = true)),
                    EBB_E_UNSORTED);
    assert_text_names("sequence 1 is 2, after 1");
    struct ebb_tensor *empty = ebb_tensor_new(root, int64_dtype, 2, (int64_t[]){0, 0});
    assert_no_block(ebb_padded_pack(root, empty, NULL, 0, NULL), EBB_E_EMPTY);
    assert_text_names("0 by 0");
}

static void c155_a_length_beyond_the_padded_one_is_refused(void **state) {
    struct stage *stage = *state;
    assert_no_block(ebb_padded_pack(stage->root, twelve(stage->root), LIST(5, 2, 2, 1), NULL),
                    EBB_E_LENGTH_EXCEEDS);
    assert_text_names("sequence 0 is 5, padded it has 3");
}

static void c156_the_padded_length_is_remembered(void **state) {
    struct stage *stage = *state;
    struct ebb_packed *packed =
        ebb_padded_pack(stage->root, twelve(stage->root), LIST(2, 2, 1, 1), NULL);
    assert_vector(packed->data, LIST(1, 2, 3, 4, 5, 6));
    assert_vector(packed->batch_sizes, LIST(4, 2));
    assert_matrix(ebb_packed_pad(stage->root, packed, NULL), 3, 4,
                  (int64_t[]){1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0});
}

static void c157_empty_sequences_have_no_rows_and_come_back_as_padding(void **state) {
    static const int64_t rows[] = {0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 0, 0};
    struct stage *stage = *state;
    struct ebb_packed *packed = ebb_padded_pack(stage->root, matrix(stage->root, 3, 4, rows),
                                                LIST(0, 3, 2), PACK(.batch_first = true));
    assert_vector(packed->data, LIST(1, 4, 2, 5, 3));
    assert_vector(packed->batch_sizes, LIST(2, 2, 1));
    assert_vector(packed->sorted_indices, LIST(1, 2, 0));
    assert_int_equal(packed->count, 3);
    assert_matrix(ebb_packed_pad(stage->root, packed, PAD(.batch_first = true)), 3, 4, rows);
    assert_matrix(ebb_packed_pad(stage->root, packed,
                                 PAD(.batch_first = true, .padding.i = 9)),
                  3, 4, (int64_t[]){9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 9, 9});
}

static void c157_nothing_but_empty_sequences(void **state) {
    struct stage *stage = *state;
    struct ebb_packed *packed =
        ebb_padded_pack(stage->root, twelve(stage->root), LIST(0, 0, 0, 0), NULL);
    assert_non_null(packed);
    assert_int_equal(packed->data->shape[0], 0);
    assert_int_equal(packed->batch_sizes->shape[0], 0);
    assert_vector(packed->sorted_indices, LIST(0, 1, 2, 3));
    assert_matrix(ebb_packed_pad(stage->root, packed, PAD(.padding.i = 5)), 3, 4,
                  (int64_t[]){5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5});
}

static void c158_batch_sizes_and_indices_built_by_hand_are_checked(void **state) {
    struct stage *stage = *state;
    ebb_region root = stage->root;
    struct ebb_tensor *data = vector(root, LIST(1, 2, 3, 4, 5, 6));
    struct ebb_tensor *sizes = vector(root, LIST(3, 2, 1));
    assert_no_block(ebb_packed_from(root, data, vector(root, LIST(1, 2, 3)), NULL, NULL),
                    EBB_E_BATCH_SIZES);
    assert_text_names("batch_sizes[1] is 2");
    assert_no_block(ebb_packed_from(root, data, vector(root, LIST(3, 2)), NULL, NULL),
                    EBB_E_BATCH_SIZES);
    assert_text_names("sum to less than the 6 rows");
    assert_no_block(ebb_packed_from(root, data, vector(root, LIST(3, 3, 1)), NULL, NULL),
                    EBB_E_BATCH_SIZES);
    assert_text_names("6 rows");
    assert_no_block(ebb_packed_from(root, data, vector(root, LIST(3, 3, 0)), NULL, NULL),
                    EBB_E_BATCH_SIZES);
    assert_no_block(ebb_packed_from(root, data, sizes, vector(root, LIST(0, 2, 2)), NULL),
                    EBB_E_PERMUTATION);
    assert_text_names("indices 1 and 2 are both 2");
    assert_no_block(ebb_packed_from(root, data, sizes, vector(root, LIST(0, 2, 3)), NULL),
                    EBB_E_PERMUTATION);
    assert_no_block(ebb_packed_from(root, data, sizes, vector(root, LIST(1, 2, 0)),
                                    vector(root, LIST(1, 2, 0))),
                    EBB_E_PERMUTATION);
    struct ebb_packed *packed =
        ebb_packed_from(root, data, sizes, vector(root, LIST(1, 2, 0)), NULL);
    assert_non_null(packed);
    assert_vector(packed->unsorted_indices, LIST(2, 0, 1));
    assert_matrix(ebb_packed_pad(root, packed, PAD(.batch_first = true)), 3, 3,
                  (int64_t[]){3, 0, 0, 1, 4, 6, 2, 5, 0});
}

static void c159_equal_lengths_keep_their_order(void **state) {
    struct stage *stage = *state;
    int64_t lengths[100];
    for (int i = 0; i < 100; i++)
        lengths[i] = 2;
    struct ebb_tensor *padded =
        ebb_tensor_new_zeroed(stage->root, int64_dtype, 2, (int64_t[]){3, 100});
    struct ebb_packed *packed = ebb_padded_pack(stage->root, padded, lengths, 100, NULL);
    for (int64_t i = 0; i < 100; i++) {
        assert_int_equal(((int64_t *)packed->sorted_indices->data)[i], i);
        assert_int_equal(((int64_t *)packed->unsorted_indices->data)[i], i);
    }
}

enum { SEQUENCES = 10 };

/* Sequences of length i * i with `dimensions` more; sorted or shuffled. */
static void make_squares(ebb_region region, int dimensions, bool sorted,
                         struct ebb_tensor **list) {
    for (int i = 0; i < SEQUENCES; i++) {
        int64_t k = sorted ? SEQUENCES - i : (i * 7 + 3) % SEQUENCES + 1;
        list[i] = ebb_tensor_new(region, float_dtype, 1 + dimensions,
                                 (int64_t[]){k * k, 3, 2, 5});
        assert_non_null(list[i]);
        pattern_fill(list[i]->data, ebb_tensor_bytes(list[i]), (unsigned)k);
    }
}

static void assert_same(const struct ebb_tensor *a, const struct ebb_tensor *b) {
    assert_int_equal(a->ndim, b->ndim);
    assert_memory_equal(a->shape, b->shape, sizeof *a->shape * (size_t)a->ndim);
    assert_memory_equal(a->data, b->data, ebb_tensor_bytes(a));
}

static void go_round(ebb_region region, int dimensions, bool sorted, bool batch_first) {
    struct ebb_tensor *list[SEQUENCES], *back[SEQUENCES];
    int64_t lengths[SEQUENCES];
    make_squares(region, dimensions, sorted, list);
    struct ebb_tensor *padded = ebb_sequences_pad(
        region, list, SEQUENCES, PAD(.batch_first = batch_first, .padding.i = 7));
    for (int i = 0; i < SEQUENCES; i++)
        lengths[i] = list[i]->shape[0];
    struct ebb_packed *packed =
        ebb_padded_pack(region, padded, lengths, SEQUENCES,
                        PACK(.batch_first = batch_first, .enforce_sorted = sorted));
    struct ebb_packed *same =
        ebb_sequences_pack(region, list, SEQUENCES, PACK(.enforce_sorted = sorted));
    assert_same(packed->data, same->data);
    assert_same(packed->batch_sizes, same->batch_sizes);
    assert_same(ebb_packed_pad(region, packed,
                               PAD(.batch_first = batch_first, .padding.i = 7)),
                padded);
    assert_int_equal(ebb_packed_unpack(region, packed, back, SEQUENCES), 0);
    for (int i = 0; i < SEQUENCES; i++)
        assert_same(back[i], list[i]);
}

static void c161_unpacking_is_the_inverse_of_packing(void **state) {
    struct stage *stage = *state;
    for (int dimensions = 0; dimensions <= 3; dimensions++)
        for (int way = 0; way < 4; way++) {
            ebb_region region = OPEN(.parent = stage->root);
            go_round(region, dimensions, way & 1, way & 2);
            assert_int_equal(ebb_region_close(region), 0);
        }
}

static void c161_permutations_are_inverted(void **state) {
    struct stage *stage = *state;
    assert_vector(ebb_permutation_invert(stage->root, vector(stage->root, LIST(2, 0, 1))),
                  LIST(1, 2, 0));
    assert_null(ebb_permutation_invert(stage->root, NULL));
}

static void c162_each_byte_is_copied_once(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *list[SEQUENCES], *back[SEQUENCES];
    size_t payload = 0;
    make_squares(stage->root, 2, false, list);
    for (int i = 0; i < SEQUENCES; i++)
        payload += ebb_tensor_bytes(list[i]);
    weave_copied_bytes = 0;
    struct ebb_packed *packed = ebb_sequences_pack(stage->root, list, SEQUENCES, NULL);
    assert_int_equal(weave_copied_bytes, payload);
    struct ebb_tensor *padded = ebb_packed_pad(stage->root, packed, NULL);
    assert_non_null(padded);
    assert_int_equal(weave_copied_bytes, 2 * payload);
    assert_int_equal(ebb_packed_unpack(stage->root, packed, back, SEQUENCES), 0);
    assert_int_equal(weave_copied_bytes, 3 * payload);
    assert_non_null(ebb_sequences_pad(stage->root, list, SEQUENCES, PAD(.batch_first = true)));
    assert_int_equal(weave_copied_bytes, 4 * payload);
    struct ebb_ragged *ragged = ebb_packed_join(stage->root, packed);
    assert_int_equal(weave_copied_bytes, 5 * payload);
    assert_non_null(ebb_ragged_pack(stage->root, ragged, NULL));
    assert_int_equal(weave_copied_bytes, 6 * payload);
}

/* ---- D4 ---- */

static void c54_a_packed_sequence_counts_as_one_object(void **state) {
    struct stage *stage = *state;
    for (int sorted = 0; sorted < 2; sorted++) {
        ebb_region region = OPEN(.parent = stage->root);
        ebb_region inputs = OPEN(.parent = stage->root);
        struct ebb_packed *packed = ebb_padded_pack(region, twelve(inputs), LIST(3, 2, 2, 1),
                                                    PACK(.enforce_sorted = sorted == 1));
        struct ebb_object_counts counts;
        void *objects[8];
        assert_int_equal(ebb_region_list_objects(region, objects, 8), 1);
        assert_ptr_equal(objects[0], packed);
        assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_TENSOR, &counts), 0);
        assert_int_equal(counts.live, sorted ? 2 : 4);
        assert_int_equal(counts.joined, sorted ? 2 : 4);
        assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_PACKED, &counts), 0);
        assert_int_equal(counts.created_inside, 1);
        assert_int_equal(ebb_region_close(region), 0);
        assert_int_equal(ebb_region_close(inputs), 0);
    }
}

static void c55_sorted_packing_has_no_indices_and_ends_without_them(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct ebb_object_counts counts;
    struct ebb_packed *packed = packed_twelve(region);
    assert_non_null(packed->data);
    assert_non_null(packed->batch_sizes);
    assert_null(packed->sorted_indices);
    assert_null(packed->unsorted_indices);
    assert_int_equal(ebb_object_end(packed), 0);
    assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_PACKED, &counts), 0);
    assert_int_equal(counts.ended_inside, 1);
    assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_ALL, &counts), 0);
    assert_int_equal(counts.live, 1); /* the padded input */
}

static void c58_a_member_that_has_ended_is_missed(void **state) {
    struct stage *stage = *state;
    struct ebb_object_counts counts;
    struct ebb_packed *packed =
        ebb_padded_pack(stage->root, twelve(stage->root), LIST(1, 2, 3, 1), NULL);
    assert_int_equal(ebb_object_end(packed->unsorted_indices), 0);
    assert_no_block(ebb_packed_pad(stage->root, packed, NULL), EBB_E_RELEASED);
    assert_text_names("unsorted_indices");
    assert_int_equal(ebb_object_end(packed->sorted_indices), 0);
    assert_no_block(ebb_packed_pad(stage->root, packed, NULL), EBB_E_RELEASED);
    assert_int_equal(ebb_object_end(packed), 0);
    assert_int_equal(ebb_region_read_objects(stage->root, EBB_OBJECT_TENSOR, &counts), 0);
    assert_int_equal(counts.ended_outside, 4);
    assert_int_equal(counts.live, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(c146_sorted_sequences_are_packed_step_by_step),
        CASE(c147_unsorted_sequences_are_sorted_and_remember_their_order),
        CASE(c149_batch_first_goes_there_and_back),
        CASE(c150_lists_are_padded_on_either_side_and_cut_again),
        CASE(c152_rows_have_any_dimensions),
        CASE(c153_the_total_length_is_at_least_the_longest),
        CASE(c154_each_mistake_has_its_own_code),
        CASE(c155_a_length_beyond_the_padded_one_is_refused),
        CASE(c156_the_padded_length_is_remembered),
        CASE(c157_empty_sequences_have_no_rows_and_come_back_as_padding),
        CASE(c157_nothing_but_empty_sequences),
        CASE(c158_batch_sizes_and_indices_built_by_hand_are_checked),
        CASE(c159_equal_lengths_keep_their_order),
        CASE(c161_unpacking_is_the_inverse_of_packing),
        CASE(c161_permutations_are_inverted),
        CASE(c162_each_byte_is_copied_once),
        CASE(c54_a_packed_sequence_counts_as_one_object),
        CASE(c55_sorted_packing_has_no_indices_and_ends_without_them),
        CASE(c58_a_member_that_has_ended_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
