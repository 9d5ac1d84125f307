// SPDX-License-Identifier: Apache-2.0
/*
 * unpack.c - lists of tensors as results.
 *
 * The caller's array is written when all tensors are there, and then read off the region's own
 * list, on which they are the newest: so a failure leaves the array as it was, and there is no
 * bound on their number.
 */
#include "object/bundle.h"
#include "base/error.h"

/* Makes a tensor for each sequence, packed ones in order of ranks; false if one is missing. */
static bool make(ebb_region region, const struct input *input) {
    int64_t length = input->longest;
    for (int64_t at = 0; at < input->count; at++) {
        length = input->packed ? ranks_length(&input->ranks, at, length)
                               : bundle_length(&input->bundle, at);
        if (!fabric_tensor(region, &input->fabric, 1, &length))
            return false;
    }
    return true;
}

static void list(struct ebb_object *newest, const struct input *input,
                 struct ebb_tensor **sequences) {
    const int64_t *sorted = input->packed ? input->ranks.sorted : NULL;
    for (int64_t at = input->count; at > 0; newest = newest->next) {
        at--;
        sequences[sorted ? sorted[at] : at] = tensor_of(newest);
    }
}

static void fill(const struct input *input, struct ebb_tensor *const *sequences) {
    if (input->count == 0)
        return;
    struct bundle to = bundle_in_list(sequences, input->count);
    for (int64_t at = 0; at < input->count; at++) {
        struct row row = row_of(sequences[at], 1);
        if (row.bytes == 0)
            continue;
        if (input->packed)
            weave_unpack(&to, &input->ranks, &row, INT64_MAX, NULL);
        else
            weave_strands(&to, &input->bundle, &row, INT64_MAX, NULL);
        return;
    }
}

static int unpack(ebb_region region, const struct input *input, struct ebb_tensor **sequences,
                  size_t count) {
    struct attempt attempt;
    if (count != (size_t)input->count || (count && !sequences))
        return error_set(EBB_E_LENGTH_COUNT, "room for %zu tensors at %p, of %lld sequences",
                         count, (void *)sequences, (long long)input->count);
    if (!attempt_begin(&attempt, region))
        return error_latest();
    if (!make(region, input)) {
        attempt_abandon(&attempt);
        return error_latest();
    }
    list(attempt.region->objects, input, sequences);
    fill(input, sequences);
    return 0;
}

int ebb_packed_unpack(ebb_region region, const struct ebb_packed *packed,
                      struct ebb_tensor **sequences, size_t count) {
    struct input input;
    int result = input_packed(&input, packed);
    return result ? result : unpack(region, &input, sequences, count);
}

int ebb_padded_unpad(ebb_region region, const struct ebb_tensor *padded, const int64_t *lengths,
                     size_t count, const struct ebb_pack_options *options,
                     struct ebb_tensor **sequences) {
    struct input input;
    int result = input_padded(&input, padded, lengths, count, options);
    if (!result && options)
        result = lengths_check_options(&input.bundle, options);
    return result ? result : unpack(region, &input, sequences, count);
}

int ebb_ragged_split(ebb_region region, const struct ebb_ragged *ragged,
                     struct ebb_tensor **sequences, size_t count) {
    struct input input;
    int result = input_ragged(&input, ragged);
    return result ? result : unpack(region, &input, sequences, count);
}
