// SPDX-License-Identifier: Apache-2.0
/*
 * truncation.c - sequences that are longer than they may be are cut if asked for, on either side,
 * from every form to every form: bit for bit what comes of a list that was sliced by hand.
 */
#include "kit/tensors.h"

#include <ebb/ebb.h>

enum { COUNT = 70, COLUMNS = 3, LONGEST = 23 };

struct cutting {
    ebb_region step;
    int64_t most;
    enum ebb_side cut, side;
    bool batch_first;
    struct ebb_tensor *list[COUNT];   /* as they are */
    struct ebb_tensor *sliced[COUNT]; /* as they shall be */
    int64_t lengths[COUNT];
};

/* Rows that lie apart, and at times columns, too. */
static struct ebb_tensor *sequence(ebb_region step, int64_t at, int64_t length) {
    struct ebb_tensor *base = counting(step, SHAPE(2 * length + 1, COLUMNS + 2));
    int32_t *elements = base->data;
    for (int64_t i = 0; i < ebb_tensor_count(base); i++)
        elements[i] += (int32_t)at * 1000;
    struct ebb_slice rows = {.dim = 0, .stop = 2 * length, .step = at % 3 ? 2 : 1};
    struct ebb_slice columns = {.dim = 1, .start = 1, .stop = COLUMNS + 1};
    if (at % 3 == 0)
        rows.stop = length;
    base = ebb_tensor_slice(step, ebb_tensor_slice(step, base, rows), columns);
    return at % 3 == 1 ? ebb_tensor_contiguous(step, base) : base;
}

static void prepare(struct cutting *cutting, ebb_region step, unsigned seed) {
    *cutting = (struct cutting){.step = step,
                                .most = 1 + seed / 8 % (LONGEST + 2),
                                .cut = (enum ebb_side)(seed & 1),
                                .side = (enum ebb_side)(seed >> 1 & 1),
                                .batch_first = seed >> 2 & 1};
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t length = (i * 7 + seed) % (LONGEST + 1);
        int64_t left = length > cutting->most ? length - cutting->most : 0;
        struct ebb_slice kept = {.dim = 0, .start = 0, .stop = length - left};
        if (cutting->cut == EBB_SIDE_LEFT)
            kept = (struct ebb_slice){.dim = 0, .start = left, .stop = length};
        cutting->lengths[i] = length;
        cutting->list[i] = sequence(step, i, length);
        cutting->sliced[i] = ebb_tensor_slice(step, cutting->list[i], kept);
    }
}

static struct ebb_pack_options packing(const struct cutting *cutting) {
    return (struct ebb_pack_options){.size = sizeof(struct ebb_pack_options),
                                     .batch_first = cutting->batch_first,
                                     .side = cutting->side,
                                     .max_length = cutting->most,
                                     .allow_truncation = true,
                                     .cut = cutting->cut};
}

static struct ebb_pad_options padding(const struct cutting *cutting, bool cuts) {
    struct ebb_pad_options options = {.size = sizeof options,
                                      .batch_first = cutting->batch_first,
                                      .side = cutting->side,
                                      .padding = ebb_value_int(-5)};
    if (cuts) {
        options.max_length = cutting->most;
        options.allow_truncation = true;
        options.cut = cutting->cut;
    }
    return options;
}

static void assert_same(const struct ebb_tensor *one, const struct ebb_tensor *other) {
    assert_true(one && other);
    assert_shape(one, other->ndim, other->shape);
    assert_memory_equal(one->data, other->data, ebb_tensor_bytes(one));
}

static void assert_packed(const struct ebb_packed *one, const struct ebb_packed *other) {
    assert_true(one && other);
    assert_same(one->data, other->data);
    assert_same(one->batch_sizes, other->batch_sizes);
    assert_same(one->sorted_indices, other->sorted_indices);
    assert_same(one->unsorted_indices, other->unsorted_indices);
}

static void assert_ragged(const struct ebb_ragged *one, const struct ebb_ragged *other) {
    assert_true(one && other);
    assert_same(one->data, other->data);
    assert_same(one->offsets, other->offsets);
}

/* ---- from each form ---- */

static void cut_lists(struct cutting *it, const struct ebb_tensor *padded,
                      const struct ebb_packed *packed) {
    struct ebb_pad_options pad = padding(it, true), plain = padding(it, false);
    struct ebb_pack_options pack = packing(it);
    assert_same(ebb_sequences_pad(it->step, it->list, COUNT, &pad), padded);
    assert_packed(ebb_sequences_pack(it->step, it->list, COUNT, &pack), packed);
    pad.has_total_length = plain.has_total_length = true;
    pad.total_length = plain.total_length = it->most + 2;
    assert_same(ebb_sequences_pad(it->step, it->list, COUNT, &pad),
                ebb_sequences_pad(it->step, it->sliced, COUNT, &plain));
    pad.max_length = 0; /* the total length alone cuts as well */
    pad.total_length = plain.total_length = it->most;
    assert_same(ebb_sequences_pad(it->step, it->list, COUNT, &pad),
                ebb_sequences_pad(it->step, it->sliced, COUNT, &plain));
}

/* As long as that or longer, but no sequence is. */
static struct ebb_pad_options wider(const struct cutting *cutting, bool cuts) {
    struct ebb_pad_options options = padding(cutting, cuts);
    options.has_total_length = true;
    options.total_length = cutting->most < LONGEST ? cutting->most + 2 : LONGEST;
    return options;
}

static void cut_ragged(struct cutting *it, const struct ebb_tensor *padded,
                       const struct ebb_packed *packed) {
    struct ebb_pad_options pad = padding(it, true), wide = wider(it, true);
    struct ebb_pad_options plain = wider(it, false);
    struct ebb_pack_options pack = packing(it);
    struct ebb_ragged *whole = ebb_sequences_join(it->step, it->list, COUNT);
    assert_same(ebb_ragged_pad(it->step, whole, &pad), padded);
    assert_same(ebb_ragged_pad(it->step, whole, &wide),
                ebb_sequences_pad(it->step, it->sliced, COUNT, &plain));
    struct ebb_packed *got = ebb_ragged_pack(it->step, whole, &pack);
    assert_packed(got, packed);
    assert_int_equal(got->padded_length, it->most < LONGEST ? it->most : LONGEST);
}

static void cut_padded(struct cutting *it, const struct ebb_packed *packed) {
    struct ebb_pad_options plain = padding(it, false);
    struct ebb_pack_options pack = packing(it);
    struct ebb_tensor *list[COUNT];
    plain.has_total_length = true;
    plain.total_length = LONGEST + 1;
    struct ebb_tensor *whole = ebb_sequences_pad(it->step, it->list, COUNT, &plain);
    struct ebb_packed *got = ebb_padded_pack(it->step, whole, it->lengths, COUNT, &pack);
    assert_packed(got, packed);
    assert_int_equal(got->padded_length, it->most < LONGEST + 1 ? it->most : LONGEST + 1);
    assert_ragged(ebb_padded_join(it->step, whole, it->lengths, COUNT, &pack),
                  ebb_sequences_join(it->step, it->sliced, COUNT));
    assert_int_equal(ebb_padded_unpad(it->step, whole, it->lengths, COUNT, &pack, list), 0);
    for (int i = 0; i < COUNT; i++)
        assert_same(list[i], ebb_tensor_contiguous(it->step, it->sliced[i]));
}

static void cut_packed(struct cutting *it, const struct ebb_tensor *padded) {
    struct ebb_pad_options pad = padding(it, true), wide = wider(it, true);
    struct ebb_pad_options plain = wider(it, false);
    struct ebb_packed *whole = ebb_sequences_pack(it->step, it->list, COUNT, NULL);
    if (it->cut == EBB_SIDE_RIGHT || it->most >= LONGEST) {
        assert_same(ebb_packed_pad(it->step, whole, &pad), padded);
        assert_same(ebb_packed_pad(it->step, whole, &wide),
                    ebb_sequences_pad(it->step, it->sliced, COUNT, &plain));
    } else {
        assert_no_block(ebb_packed_pad(it->step, whole, &pad), EBB_E_ARGUMENT);
        assert_no_block(ebb_packed_pad(it->step, whole, &wide), EBB_E_ARGUMENT);
    }
}

static void what_is_cut_is_what_was_sliced(void **state) {
    struct stage *stage = *state;
    for (unsigned seed = 0; seed < 8 * (LONGEST + 2); seed++) {
        struct cutting it;
        prepare(&it, OPEN(.parent = stage->root), seed);
        struct ebb_pad_options plain = padding(&it, false);
        struct ebb_tensor *padded = ebb_sequences_pad(it.step, it.sliced, COUNT, &plain);
        struct ebb_packed *packed = ebb_sequences_pack(it.step, it.sliced, COUNT, NULL);
        cut_lists(&it, padded, packed);
        cut_ragged(&it, padded, packed);
        cut_padded(&it, packed);
        cut_packed(&it, padded);
        assert_int_equal(ebb_region_close(it.step), 0);
    }
}

static void the_order_is_that_of_the_lengths_after_the_cut(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *list[] = {counting(stage->root, SHAPE(2)), counting(stage->root, SHAPE(9)),
                                 counting(stage->root, SHAPE(4))};
    struct ebb_pack_options options = {.size = sizeof options,
                                       .enforce_sorted = true,
                                       .max_length = 2,
                                       .allow_truncation = true,
                                       .cut = EBB_SIDE_LEFT};
    struct ebb_packed *packed = ebb_sequences_pack(stage->root, list, 3, &options);
    assert_non_null(packed);
    ASSERT_ELEMENTS(packed->data, 0, 7, 2, 1, 8, 3);
    assert_int_equal(packed->padded_length, 2);
    options.max_length = 3;
    assert_no_block(ebb_sequences_pack(stage->root, list, 3, &options), EBB_E_UNSORTED);
}

static void of_nothing_kept_all_is_padding(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *list[] = {counting(stage->root, SHAPE(2)), counting(stage->root, SHAPE(9))};
    struct ebb_pad_options options = {.size = sizeof options,
                                      .has_total_length = true,
                                      .allow_truncation = true,
                                      .cut = EBB_SIDE_LEFT};
    struct ebb_tensor *padded = ebb_sequences_pad(stage->root, list, 2, &options);
    assert_shape(padded, SHAPE(0, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(what_is_cut_is_what_was_sliced),
        STAGED(the_order_is_that_of_the_lengths_after_the_cut),
        STAGED(of_nothing_kept_all_is_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
