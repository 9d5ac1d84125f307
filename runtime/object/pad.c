// SPDX-License-Identifier: Apache-2.0
/*
 * pad.c - padded tensors as results.
 *
 * What padding consists of and how long all is to be are checked before anything is made.
 * Invariant: each element of the result is written, by a row or by padding. Refuses a length that
 * would drop steps, unless it is asked to.
 */
#include "object/bundle.h"
#include "base/error.h"

static int check_options(const struct ebb_pad_options *options) {
    if (options->size != sizeof *options || (unsigned)options->side > EBB_SIDE_LEFT)
        return error_set(EBB_E_ARGUMENT, "options: size %zu instead of %zu, side %d",
                         options->size, sizeof *options, (int)options->side);
    return 0;
}

static int check_length(const struct input *input, int64_t length, bool allow_truncation) {
    if (length < 0 || (length < input->longest && !allow_truncation))
        return error_set(EBB_E_TOTAL_LENGTH, "total length %lld, the longest sequence has %lld",
                         (long long)length, (long long)input->longest);
    return 0;
}

static void fill(const struct ebb_tensor *padded, const struct input *input,
                 const struct ebb_pad_options *options, const struct padding *padding) {
    struct row row = row_of(padded, 2);
    bool batch_first = options->batch_first;
    struct bundle to = {.form = BUNDLE_PADDED,
                        .side = options->side,
                        .count = input->count,
                        .padded_length = padded->shape[batch_first],
                        .base = padded->data,
                        .batch_step = row_step(padded, !batch_first),
                        .time_step = row_step(padded, batch_first)};
    if (input->packed)
        weave_unpack(&to, &input->ranks, &row, input->longest, padding);
    else
        weave_strands(&to, &input->bundle, &row, to.padded_length, padding);
}

/* Finds out how long all is to be and cuts what is longer. */
static int find_length(struct input *input, const struct ebb_pad_options *options,
                       int64_t *length) {
    int result = input_cut(input, options->max_length, options->allow_truncation, options->cut);
    if (result)
        return result;
    *length = options->has_total_length ? options->total_length : input->padded_length;
    result = check_length(input, *length, options->allow_truncation);
    return result ? result : input_cut(input, *length, true, options->cut);
}

static struct ebb_tensor *pad(ebb_region region, struct input *input,
                              const struct ebb_pad_options *options) {
    static const struct ebb_pad_options defaults = {.size = sizeof defaults};
    struct padding padding;
    options = options ? options : &defaults;
    if (check_options(options) != 0)
        return NULL;
    int64_t length;
    if (find_length(input, options, &length) != 0 ||
        padding_encode(options->padding, input->fabric.dtype, &padding) != 0)
        return NULL;
    int64_t sizes[2] = {length, length};
    sizes[!options->batch_first] = input->count;
    struct ebb_tensor *padded = fabric_tensor(region, &input->fabric, 2, sizes);
    if (padded)
        fill(padded, input, options, &padding);
    return padded;
}

struct ebb_tensor *ebb_packed_pad(ebb_region region, const struct ebb_packed *packed,
                                  const struct ebb_pad_options *options) {
    struct input input;
    return input_packed(&input, packed) == 0 ? pad(region, &input, options) : NULL;
}

struct ebb_tensor *ebb_sequences_pad(ebb_region region, struct ebb_tensor *const *sequences,
                                     size_t count, const struct ebb_pad_options *options) {
    struct input input;
    return input_list(&input, sequences, count) == 0 ? pad(region, &input, options) : NULL;
}

struct ebb_tensor *ebb_ragged_pad(ebb_region region, const struct ebb_ragged *ragged,
                                  const struct ebb_pad_options *options) {
    struct input input;
    return input_ragged(&input, ragged) == 0 ? pad(region, &input, options) : NULL;
}
