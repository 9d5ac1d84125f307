// SPDX-License-Identifier: Apache-2.0
/*
 * sequences.c - sequences that cannot be: lengths that are too many, too few, too long or
 * negative, lists that are not alike, batch sizes and indices that say what is not so, padding
 * that no element can hold, tensors that are none.
 */
#include "bad_input/court.h"
#include "kit/tensors.h"

#define PACKING(...) \
    (&(struct ebb_pack_options){.size = sizeof(struct ebb_pack_options), __VA_ARGS__})
#define PADDING(...) \
    (&(struct ebb_pad_options){.size = sizeof(struct ebb_pad_options), __VA_ARGS__})
#define LENGTHS(...) SIZES(__VA_ARGS__), sizeof SIZES(__VA_ARGS__) / sizeof(int64_t)

static struct ebb_tensor *integers(ebb_region region, const int64_t *values, size_t count) {
    int64_t shape = (int64_t)count;
    struct ebb_tensor *tensor = ebb_tensor_from(region, INT64, 1, &shape, values);
    assert_non_null(tensor);
    return tensor;
}

/* Of the court's child, int32: 3 steps of 4 sequences. */
static struct ebb_tensor *exhibit(struct court *court) {
    struct ebb_tensor *tensor = counting(court->child, SHAPE(3, 4));
    court_note(court);
    return tensor;
}

static struct ebb_packed *packed_exhibit(struct court *court) {
    struct ebb_packed *packed =
        ebb_padded_pack(court->child, counting(court->child, SHAPE(3, 4)), LENGTHS(3, 1, 2, 0),
                        NULL);
    assert_non_null(packed);
    court_note(court);
    return packed;
}

/* ---- padded tensors ---- */

/* All that reads a padded tensor refuses it alike. */
static void refuse_padded(struct court *court, const struct ebb_tensor *padded,
                          const int64_t *lengths, size_t count,
                          const struct ebb_pack_options *options, int code, const char *part) {
    struct ebb_tensor *cut[8] = {0}, *none[8] = {0};
    court_refused_block(court, ebb_padded_pack(court->child, padded, lengths, count, options),
                        code, part);
    court_refused_block(court, ebb_padded_join(court->child, padded, lengths, count, options),
                        code, part);
    court_refused(court, ebb_padded_unpad(court->child, padded, lengths, count, options, cut),
                  code, part, NULL);
    assert_memory_equal(cut, none, sizeof cut);
}

static void lengths_that_do_not_fit_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *padded = exhibit(court);
    refuse_padded(court, padded, LENGTHS(3, 2, 2), NULL, EBB_E_LENGTH_COUNT,
                  "3 lengths");
    refuse_padded(court, padded, LENGTHS(3, 2, 2, 1, 1), NULL, EBB_E_LENGTH_COUNT,
                  "for 4 sequences");
    refuse_padded(court, padded, NULL, 4, NULL, EBB_E_LENGTH_COUNT, "4 lengths at");
    refuse_padded(court, padded, LENGTHS(3, -1, 2, 1), NULL, EBB_E_LENGTH_NEGATIVE,
                  "sequence 1 is -1");
    refuse_padded(court, padded, LENGTHS(3, 2, INT64_MIN, 1), NULL, EBB_E_LENGTH_NEGATIVE,
                  "sequence 2 is -9223372036854775808");
    refuse_padded(court, padded, LENGTHS(3, 2, 4, 1), NULL, EBB_E_LENGTH_EXCEEDS,
                  "sequence 2 is 4, padded it has 3");
    refuse_padded(court, padded, LENGTHS(3, 2, 2, INT64_MAX), NULL, EBB_E_LENGTH_EXCEEDS,
                  "sequence 3 is 9223372036854775807");
    refuse_padded(court, padded, LENGTHS(3, 2, 0, 1), PACKING(.refuse_empty = true),
                  EBB_E_LENGTH_NEGATIVE, "sequence 2 is 0");
    refuse_padded(court, padded, LENGTHS(3, 1, 2, 1), PACKING(.enforce_sorted = true),
                  EBB_E_UNSORTED, "sequence 2 is 2, after 1");
}

static void padded_tensors_that_are_none_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *flat = counting(court->child, SHAPE(4));
    struct ebb_tensor *empty = counting(court->child, SHAPE(3, 0)), *gone = exhibit(court);
    assert_int_equal(ebb_object_end(gone), 0);
    court_note(court);
    refuse_padded(court, flat, LENGTHS(1, 1, 1, 1), NULL, EBB_E_SHAPE, "1 dimensions");
    refuse_padded(court, empty, LENGTHS(1), NULL, EBB_E_EMPTY, "3 by 0");
    refuse_padded(court, gone, LENGTHS(1, 1, 1, 1), NULL, EBB_E_RELEASED, NULL);
    refuse_padded(court, NULL, LENGTHS(1, 1, 1, 1), NULL, EBB_E_FOREIGN, NULL);
    refuse_padded(court, (void *)court->large, LENGTHS(1, 1, 1, 1), NULL, EBB_E_TYPE, NULL);
}

static void lengths_that_overflow_are_refused(void **state) {
    struct court *court = *state;
    const int64_t most = INT64_MAX / 2;
    struct ebb_tensor *padded =
        ebb_tensor_new(court->child, INT8, 3, SIZES(most, 3, 0));
    assert_non_null(padded);
    court_note(court);
    refuse_padded(court, padded, LENGTHS(most, most, most), NULL, EBB_E_SIZE,
                  "lengths of 3 sequences");
}

static void options_that_are_none_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *padded = exhibit(court), *list[] = {padded};
    struct ebb_pack_options packing = {.size = 3};
    refuse_padded(court, padded, LENGTHS(3, 2, 2, 1), &packing, EBB_E_ARGUMENT, "size 3");
    refuse_padded(court, padded, LENGTHS(3, 2, 2, 1), PACKING(.side = 2), EBB_E_ARGUMENT,
                  "side 2");
    court_refused_block(court, ebb_sequences_pack(court->child, list, 1, &packing),
                        EBB_E_ARGUMENT, "size 3");
    court_refused_block(court, ebb_sequences_pad(court->child, list, 1,
                                                 &(struct ebb_pad_options){.size = 0}),
                        EBB_E_ARGUMENT, "size 0");
    court_refused_block(court, ebb_sequences_pad(court->child, list, 1, PADDING(.side = 7)),
                        EBB_E_ARGUMENT, "side 7");
    court_refused_block(court,
                        ebb_sequences_pad(court->child, list, 1, PADDING(.padding.kind = 99)),
                        EBB_E_ARGUMENT, "99");
}

/* ---- lists ---- */

static void refuse_list(struct court *court, struct ebb_tensor *const *list, size_t count,
                        int code, const char *part) {
    court_refused_block(court, ebb_sequences_pack(court->child, list, count, NULL), code, part);
    court_refused_block(court, ebb_sequences_pad(court->child, list, count, NULL), code, part);
    court_refused_block(court, ebb_sequences_join(court->child, list, count), code, part);
}

static void lists_that_are_not_alike_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *list[] = {counting(court->child, SHAPE(3, 4, 2)), NULL, NULL};
    list[1] = counting(court->child, SHAPE(0, 4, 2));
    list[2] = ebb_tensor_new_zeroed(court->child, INT64, SHAPE(3, 4, 2));
    court_note(court);
    refuse_list(court, list, 0, EBB_E_EMPTY, "a list of no sequences");
    refuse_list(court, NULL, 3, EBB_E_EMPTY, "a list of 3 sequences is NULL");
    refuse_list(court, list, 3, EBB_E_DTYPE, "sequence 2: int64, the first int32");
    list[2] = ebb_tensor_new(court->child, (struct ebb_dtype){EBB_INT, 32, 2}, SHAPE(3, 4, 2));
    court_note(court);
    refuse_list(court, list, 3, EBB_E_DTYPE, "sequence 2: int32x2, the first int32");
    list[2] = counting(court->child, SHAPE(3, 4, 3));
    court_note(court);
    refuse_list(court, list, 3, EBB_E_SHAPE, "sequence 2: dimension 2 is 3, in the first 2");
    list[2] = counting(court->child, SHAPE(3, 4));
    court_note(court);
    refuse_list(court, list, 3, EBB_E_SHAPE, "sequence 2: 2 dimensions, the first 3");
    list[2] = list[0] = counting(court->child, 0, NULL);
    court_note(court);
    refuse_list(court, list, 3, EBB_E_SHAPE, "sequence 0: 0 dimensions, at least 1");
    list[0] = list[1];
    assert_int_equal(ebb_object_end(list[2]), 0);
    court_note(court);
    refuse_list(court, list, 3, EBB_E_RELEASED, NULL);
    list[2] = (void *)court->small;
    refuse_list(court, list, 3, EBB_E_TYPE, NULL);
    list[2] = (void *)court->large;
    refuse_list(court, list, 3, EBB_E_TYPE, NULL);
    list[2] = NULL;
    refuse_list(court, list, 3, EBB_E_FOREIGN, NULL);
    list[2] = (void *)((char *)list[1] + 16);
    refuse_list(court, list, 3, EBB_E_INTERIOR, NULL);
}

static void lists_that_are_unsorted_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *list[] = {counting(court->child, SHAPE(2)),
                                 counting(court->child, SHAPE(3)),
                                 counting(court->child, SHAPE(0))};
    court_note(court);
    court_refused_block(court, ebb_sequences_pack(court->child, list, 3,
                                                  PACKING(.enforce_sorted = true)),
                        EBB_E_UNSORTED, "sequence 1 is 3, after 2");
    court_refused_block(court, ebb_sequences_pack(court->child, list, 3,
                                                  PACKING(.refuse_empty = true)),
                        EBB_E_LENGTH_NEGATIVE, "sequence 2 is 0");
}

/* ---- padding ---- */

static void padding_that_no_element_can_hold_is_refused(void **state) {
    static const struct ebb_dtype dtypes[] = {{EBB_UINT, 8, 1}, {EBB_INT, 8, 1},
                                              {EBB_FLOAT, 16, 1}, {EBB_BOOL, 8, 1},
                                              {EBB_INT, 64, 1}, {EBB_FLOAT, 32, 1}};
    const struct ebb_value bad[] = {ebb_value_int(-1), ebb_value_int(128), ebb_value_int(2049),
                                    ebb_value_int(2), ebb_value_float(0.5),
                                    ebb_value_int(16777217)};
    static const char *const texts[] = {"-1", "128", "2049", "2", "0.5", "16777217"};
    struct court *court = *state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        struct ebb_tensor *list[] = {ebb_tensor_new_zeroed(court->child, dtypes[i], SHAPE(2))};
        court_note(court);
        court_refused_block(court, ebb_sequences_pad(court->child, list, 1,
                                                     PADDING(.padding = bad[i])),
                            EBB_E_VALUE, texts[i]);
    }
    struct ebb_tensor *lanes[] = {
        ebb_tensor_new_zeroed(court->child, (struct ebb_dtype){EBB_FLOAT, 32, 65}, SHAPE(2))};
    court_note(court);
    court_refused_block(court, ebb_sequences_pad(court->child, lanes, 1,
                                                 PADDING(.padding = ebb_value_int(1))),
                        EBB_E_DTYPE, NULL);
    court_refused_block(court, ebb_sequences_pad(court->child, lanes, 1,
                                                 PADDING(.padding = ebb_value_float(-0.0))),
                        EBB_E_DTYPE, NULL);
    assert_non_null(ebb_sequences_pad(court->child, lanes, 1, NULL)); /* all can hold 0 */
    assert_non_null(
        ebb_sequences_pad(court->child, lanes, 1, PADDING(.padding = ebb_value_float(0.0))));
}

static void lengths_that_drop_steps_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_packed *packed = packed_exhibit(court);
    static const int64_t bad[] = {-1, 0, 2, INT64_MIN};
    static const char *const texts[] = {"length -1", "length 0", "length 2", "length -92233"};
    for (size_t i = 0; i < 4; i++)
        court_refused_block(court,
                            ebb_packed_pad(court->child, packed,
                                           PADDING(.has_total_length = true,
                                                   .total_length = bad[i])),
                            EBB_E_TOTAL_LENGTH, texts[i]);
    court_refused_block(court, ebb_packed_pad(court->child, packed,
                                              PADDING(.has_total_length = true,
                                                      .total_length = -1,
                                                      .allow_truncation = true)),
                        EBB_E_TOTAL_LENGTH, "length -1");
    court_refused_block(court, ebb_packed_pad(court->child, packed,
                                              PADDING(.has_total_length = true,
                                                      .total_length = INT64_MAX)),
                        EBB_E_SIZE, NULL);
}

static void sequences_that_are_too_long_are_refused_unless_cut(void **state) {
    struct court *court = *state;
    struct ebb_tensor *list[] = {counting(court->child, SHAPE(3)), counting(court->child, SHAPE(7)),
                                 counting(court->child, SHAPE(9))};
    struct ebb_tensor *padded = ebb_sequences_pad(court->child, list, 3, NULL);
    struct ebb_ragged *ragged = ebb_sequences_join(court->child, list, 3);
    struct ebb_packed *packed = ebb_sequences_pack(court->child, list, 3, NULL);
    static const int64_t lengths[] = {3, 7, 9};
    static const char text[] = "sequence 1 has 7 steps, 6 may be";
    const struct ebb_pack_options *six = PACKING(.max_length = 6);
    const struct ebb_pad_options *pad = PADDING(.max_length = 6, .total_length = 20,
                                                .has_total_length = true);
    ebb_region in = court->child;
    struct ebb_tensor *cut[3];
    court_note(court);
    court_refused_block(court, ebb_sequences_pack(in, list, 3, six), EBB_E_LENGTH_EXCEEDS, text);
    court_refused_block(court, ebb_sequences_pad(in, list, 3, pad), EBB_E_LENGTH_EXCEEDS, text);
    court_refused_block(court, ebb_ragged_pack(in, ragged, six), EBB_E_LENGTH_EXCEEDS, text);
    court_refused_block(court, ebb_ragged_pad(in, ragged, pad), EBB_E_LENGTH_EXCEEDS, text);
    court_refused_block(court, ebb_padded_pack(in, padded, lengths, 3, six), EBB_E_LENGTH_EXCEEDS,
                        text);
    court_refused_block(court, ebb_padded_join(in, padded, lengths, 3, six), EBB_E_LENGTH_EXCEEDS,
                        text);
    court_refused(court, ebb_padded_unpad(in, padded, lengths, 3, six, cut), EBB_E_LENGTH_EXCEEDS,
                  text, NULL);
    court_refused_block(court, ebb_packed_pad(in, packed, pad), EBB_E_LENGTH_EXCEEDS,
                        "longest sequence has 9 steps, 6 may be");
    court_refused_block(court, ebb_packed_pad(in, packed, PADDING(.max_length = 6,
                                                                  .allow_truncation = true,
                                                                  .cut = EBB_SIDE_LEFT)),
                        EBB_E_ARGUMENT, "9 packed steps are not cut to 6 on the left");
    court_refused_block(court, ebb_sequences_pad(in, list, 3, PADDING(.max_length = 9,
                                                                      .total_length = 8,
                                                                      .has_total_length = true)),
                        EBB_E_TOTAL_LENGTH, "total length 8, the longest sequence has 9");
}

static void cuts_that_make_no_sense_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *list[] = {counting(court->child, SHAPE(3))};
    court_note(court);
    court_refused_block(court, ebb_sequences_pack(court->child, list, 1, PACKING(.max_length = -1)),
                        EBB_E_ARGUMENT, "at most -1 steps");
    court_refused_block(court, ebb_sequences_pad(court->child, list, 1,
                                                 PADDING(.max_length = INT64_MIN,
                                                         .allow_truncation = true)),
                        EBB_E_ARGUMENT, "at most -9223372036854775808 steps");
    court_refused_block(court, ebb_sequences_pack(court->child, list, 1,
                                                  PACKING(.cut = (enum ebb_side)2)),
                        EBB_E_ARGUMENT, "side 2");
    court_refused_block(court, ebb_sequences_pad(court->child, list, 1,
                                                 PADDING(.cut = (enum ebb_side)7)),
                        EBB_E_ARGUMENT, "side 7");
}

static void too_many_dimensions_are_refused(void **state) {
    struct court *court = *state;
    int64_t shape[EBB_DIMENSIONS_MAX];
    for (int i = 0; i < EBB_DIMENSIONS_MAX; i++)
        shape[i] = 1;
    struct ebb_tensor *list[] = {counting(court->child, EBB_DIMENSIONS_MAX, shape)};
    court_note(court);
    court_refused_block(court, ebb_sequences_pad(court->child, list, 1, NULL), EBB_E_SHAPE,
                        "33 dimensions");
}

/* ---- packed and ragged by hand ---- */

static void batch_sizes_that_are_none_are_refused(void **state) {
    static const int64_t bad[][3] = {{1, 2, 3}, {3, 2, 2}, {3, 2, 0}, {4, 3, -1}, {2, 2, 1},
                                     {INT64_MAX, INT64_MAX, 2}, {INT64_MIN, 1, 1}};
    static const char *const texts[] = {"batch_sizes[1] is 2, 1 to 1", "more than the 6 rows",
                                        "batch_sizes[2] is 0",         "more than the 6 rows",
                                        "less than the 6 rows",        "more than the 6 rows",
                                        "batch_sizes[0] is -9223372036854775808"};
    struct court *court = *state;
    struct ebb_tensor *data = counting(court->child, SHAPE(6, 2));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ebb_tensor *sizes = integers(court->child, bad[i], 3);
        court_note(court);
        court_refused_block(court, ebb_packed_from(court->child, data, sizes, NULL, NULL),
                            EBB_E_BATCH_SIZES, texts[i]);
    }
    struct ebb_tensor *wrong = counting(court->child, SHAPE(3));
    struct ebb_tensor *square = ebb_tensor_new_zeroed(court->child, INT64, SHAPE(2, 2));
    court_note(court);
    court_refused_block(court, ebb_packed_from(court->child, data, wrong, NULL, NULL),
                        EBB_E_DTYPE, "batch_sizes");
    court_refused_block(court, ebb_packed_from(court->child, data, square, NULL, NULL),
                        EBB_E_SHAPE, "batch_sizes: 2 dimensions");
    court_refused_block(court, ebb_packed_from(court->child, NULL, square, NULL, NULL),
                        EBB_E_FOREIGN, NULL);
}

static void indices_that_are_no_permutation_are_refused(void **state) {
    static const int64_t bad[][3] = {{0, 1, 1}, {0, 1, 3}, {-1, 0, 1}, {0, INT64_MAX, 1}};
    static const char *const texts[] = {"indices 1 and 2 are both 1", "index 2 is 3, of 3",
                                        "index 0 is -1", "index 1 is 9223372036854775807"};
    struct court *court = *state;
    struct ebb_tensor *data = counting(court->child, SHAPE(6, 2));
    struct ebb_tensor *sizes = integers(court->child, LENGTHS(3, 2, 1));
    struct ebb_tensor *good = integers(court->child, LENGTHS(1, 2, 0));
    struct ebb_tensor *few = integers(court->child, LENGTHS(1, 0));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ebb_tensor *wrong = integers(court->child, bad[i], 3);
        court_note(court);
        court_refused_block(court, ebb_permutation_invert(court->child, wrong),
                            EBB_E_PERMUTATION, texts[i]);
        court_refused_block(court, ebb_packed_from(court->child, data, sizes, wrong, NULL),
                            EBB_E_PERMUTATION, texts[i]);
        court_refused_block(court, ebb_packed_from(court->child, data, sizes, NULL, wrong),
                            EBB_E_PERMUTATION, texts[i]);
        court_refused_block(court, ebb_packed_from(court->child, data, sizes, wrong, good),
                            EBB_E_PERMUTATION, "sorted index");
    }
    court_refused_block(court, ebb_packed_from(court->child, data, sizes, good, good),
                        EBB_E_PERMUTATION, "sorted index 0 is 1, but unsorted index 1 is 2");
    court_refused_block(court, ebb_packed_from(court->child, data, sizes, good, few),
                        EBB_E_PERMUTATION, "3 sorted and 2 unsorted indices");
    court_refused_block(court, ebb_packed_from(court->child, data, sizes, few, NULL),
                        EBB_E_BATCH_SIZES, "batch_sizes[0] is 3, 1 to 2");
    court_refused_block(court, ebb_permutation_invert(court->child, data), EBB_E_DTYPE, NULL);
    struct ebb_tensor *square = ebb_tensor_new_zeroed(court->child, INT64, SHAPE(1, 3));
    struct ebb_tensor *narrow = ebb_tensor_new_zeroed(court->child, INT32, SHAPE(3));
    court_note(court);
    court_refused_block(court, ebb_packed_from(court->child, data, sizes, square, square),
                        EBB_E_SHAPE, "sorted_indices: 2 dimensions");
    court_refused_block(court, ebb_packed_from(court->child, data, sizes, good, square),
                        EBB_E_SHAPE, "unsorted_indices: 2 dimensions");
    court_refused_block(court, ebb_packed_from(court->child, data, sizes, good, narrow),
                        EBB_E_DTYPE, "unsorted_indices");
}

static void members_of_others_are_refused(void **state) {
    struct court *court = *state;
    struct ebb_tensor *data = counting(court->child, SHAPE(6, 2));
    struct ebb_tensor *sizes = integers(court->root, LENGTHS(3, 2, 1));
    struct ebb_packed *packed = packed_exhibit(court);
    court_refused_block(court, ebb_packed_from(court->child, data, sizes, NULL, NULL),
                        EBB_E_NOT_OWNED, "batch_sizes");
    court_refused_block(court,
                        ebb_packed_from(court->child, packed->data, packed->batch_sizes, NULL,
                                        NULL),
                        EBB_E_MEMBER, "data");
    court_refused_block(court, ebb_ragged_from(court->child, packed->data, packed->batch_sizes),
                        EBB_E_MEMBER, "data");
}

static void offsets_that_are_none_are_refused(void **state) {
    static const int64_t bad[][3] = {{0, 7, 6}, {1, 3, 6}, {0, 3, 5}, {0, -3, 6},
                                     {INT64_MIN, INT64_MAX, 6}};
    static const int codes[] = {EBB_E_LENGTH_NEGATIVE, EBB_E_LENGTH_NEGATIVE, EBB_E_LENGTH_COUNT,
                                EBB_E_LENGTH_NEGATIVE, EBB_E_LENGTH_NEGATIVE};
    static const char *const texts[] = {"offset 2 is 6, after 7", "offset 0 is 1",
                                        "the last is 5", "offset 1 is -3, after 0",
                                        "offset 0 is -9223372036854775808"};
    struct court *court = *state;
    struct ebb_tensor *data = counting(court->child, SHAPE(6, 2));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ebb_tensor *offsets = integers(court->child, bad[i], 3);
        court_note(court);
        court_refused_block(court, ebb_ragged_from(court->child, data, offsets), codes[i],
                            texts[i]);
    }
    struct ebb_tensor *none = integers(court->child, NULL, 0);
    struct ebb_tensor *narrow = counting(court->child, SHAPE(2));
    court_note(court);
    court_refused_block(court, ebb_ragged_from(court->child, data, none), EBB_E_LENGTH_COUNT,
                        "0 offsets");
    court_refused_block(court, ebb_ragged_from(court->child, data, narrow), EBB_E_DTYPE,
                        "offsets");
}

/* What a packed sequence says is looked at again whenever it is used. */
static void members_that_were_changed_since_are_found(void **state) {
    struct court *court = *state;
    struct ebb_packed *packed = packed_exhibit(court);
    struct ebb_tensor *list[4] = {0};
    int64_t lengths[4] = {0}, *sizes = packed->batch_sizes->data;
    sizes[1] = 1000000;
    court_refused_block(court, ebb_packed_pad(court->child, packed, NULL), EBB_E_BATCH_SIZES,
                        "1000000");
    court_refused(court, ebb_packed_unpack(court->child, packed, list, 4), EBB_E_BATCH_SIZES,
                  "1000000", NULL);
    court_refused_block(court, ebb_packed_join(court->child, packed), EBB_E_BATCH_SIZES,
                        "1000000");
    court_refused(court, ebb_packed_read_lengths(packed, lengths, 4), EBB_E_BATCH_SIZES,
                  "1000000", NULL);
    sizes[1] = 2;
    ((int64_t *)packed->sorted_indices->data)[2] = 77;
    court_refused_block(court, ebb_packed_pad(court->child, packed, NULL), EBB_E_PERMUTATION,
                        "77");
    assert_null(list[0]);
}

static void room_that_is_not_that_of_the_sequences_is_refused(void **state) {
    struct court *court = *state;
    struct ebb_packed *packed = packed_exhibit(court);
    struct ebb_tensor *list[5] = {0};
    int64_t lengths[5] = {0};
    static const size_t bad[] = {0, 3, 5, SIZE_MAX};
    for (size_t i = 0; i < 4; i++) {
        court_refused(court, ebb_packed_unpack(court->child, packed, list, bad[i]),
                      EBB_E_LENGTH_COUNT, "of 4 sequences", NULL);
        court_refused(court, ebb_packed_read_lengths(packed, lengths, bad[i]),
                      EBB_E_LENGTH_COUNT, "of 4 sequences", NULL);
    }
    court_refused(court, ebb_packed_unpack(court->child, packed, NULL, 4), EBB_E_LENGTH_COUNT,
                  "of 4 sequences", NULL);
    assert_null(list[0]);
}

static void what_is_no_packed_sequence_is_refused(void **state) {
    struct court *court = *state;
    struct ebb_packed *packed = packed_exhibit(court);
    court_refused_block(court, ebb_ragged_pack(court->child, (void *)packed, NULL), EBB_E_TYPE,
                        "packed");
    court_refused_block(court, ebb_packed_pad(court->child, (void *)packed->data, NULL),
                        EBB_E_TYPE, "tensor");
    court_refused_block(court, ebb_packed_pad(court->child, NULL, NULL), EBB_E_FOREIGN, NULL);
    assert_int_equal(ebb_object_end(packed), 0);
    court_note(court);
    court_refused_block(court, ebb_packed_pad(court->child, packed, NULL), EBB_E_RELEASED, NULL);
}

/* ---- regions ---- */

static void regions_that_take_nothing_get_nothing(void **state) {
    struct court *court = *state;
    struct ebb_packed *packed = packed_exhibit(court);
    struct ebb_tensor *list[4] = {0};
    struct {
        ebb_region region;
        int code;
    } const bad[] = {{court->sealed, EBB_E_SEALED},
                     {court->closed, EBB_E_STALE},
                     {court->measuring, EBB_E_MEASURING}};
    for (size_t i = 0; i < 3; i++) {
        court_refused_block(court, ebb_packed_pad(bad[i].region, packed, NULL), bad[i].code,
                            NULL);
        court_refused_block(court, ebb_packed_join(bad[i].region, packed), bad[i].code, NULL);
        court_refused(court, ebb_packed_unpack(bad[i].region, packed, list, 4), bad[i].code,
                      NULL);
    }
    struct ebb_tensor *wide[] = {counting(court->child, SHAPE(4, 300))};
    assert_null(ebb_sequences_pack(court->limited, wide, 1, NULL)); /* may keep pages */
    court_note(court);
    court_refused_block(court, ebb_sequences_pack(court->limited, wide, 1, NULL),
                        EBB_E_REGION_LIMIT, "'limited'");
    court_refused_block(court, ebb_sequences_join(court->limited, wide, 1), EBB_E_REGION_LIMIT,
                        "'limited'");
    assert_null(list[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TRIAL(lengths_that_do_not_fit_are_refused),
        TRIAL(padded_tensors_that_are_none_are_refused),
        TRIAL(lengths_that_overflow_are_refused),
        TRIAL(options_that_are_none_are_refused),
        TRIAL(lists_that_are_not_alike_are_refused),
        TRIAL(lists_that_are_unsorted_are_refused),
        TRIAL(padding_that_no_element_can_hold_is_refused),
        TRIAL(lengths_that_drop_steps_are_refused),
        TRIAL(sequences_that_are_too_long_are_refused_unless_cut),
        TRIAL(cuts_that_make_no_sense_are_refused),
        TRIAL(too_many_dimensions_are_refused),
        TRIAL(batch_sizes_that_are_none_are_refused),
        TRIAL(indices_that_are_no_permutation_are_refused),
        TRIAL(members_of_others_are_refused),
        TRIAL(offsets_that_are_none_are_refused),
        TRIAL(members_that_were_changed_since_are_found),
        TRIAL(room_that_is_not_that_of_the_sequences_is_refused),
        TRIAL(what_is_no_packed_sequence_is_refused),
        TRIAL(regions_that_take_nothing_get_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
