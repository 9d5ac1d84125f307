// SPDX-License-Identifier: Apache-2.0
/*
 * ragged.c - ragged sequences: the type, made from other forms or from members.
 *
 * As with packed ones, what a ragged sequence says is checked when it is composed and whenever it
 * is read: offsets begin with 0, never decrease and end with the number of rows.
 */
#include "object/bundle.h"
#include "base/error.h"

#include <string.h>

/* ---- the type ---- */

static int check_offsets(const struct ebb_ragged *ragged) {
    const int64_t *offsets = ragged->offsets->data;
    int64_t count = ragged->offsets->shape[0] - 1, rows = ragged->data->shape[0], longest = 0;
    if (count < 0 || count != ragged->count || offsets[count] != rows)
        return error_set(EBB_E_LENGTH_COUNT,
                         "%lld offsets, the last is %lld, for %lld sequences of %lld rows",
                         (long long)count + 1, count < 0 ? 0 : (long long)offsets[count],
                         (long long)ragged->count, (long long)rows);
    if (offsets[0] != 0)
        return error_set(EBB_E_LENGTH_NEGATIVE, "offset 0 is %lld", (long long)offsets[0]);
    for (int64_t at = 0; at < count; at++) {
        if (offsets[at + 1] < offsets[at])
            return error_set(EBB_E_LENGTH_NEGATIVE, "offset %lld is %lld, after %lld",
                             (long long)at + 1, (long long)offsets[at + 1],
                             (long long)offsets[at]);
        if (offsets[at + 1] - offsets[at] > longest)
            longest = offsets[at + 1] - offsets[at];
    }
    if (ragged->padded_length < longest)
        return error_set(EBB_E_TOTAL_LENGTH, "padded length %lld, %lld steps",
                         (long long)ragged->padded_length, (long long)longest);
    return 0;
}

static int check(const struct ebb_object *object) {
    const struct ebb_ragged *ragged = (const struct ebb_ragged *)object;
    int result = member_check(ragged->data, "ragged", "data");
    if (!result)
        result = member_check(ragged->offsets, "ragged", "offsets");
    if (!result)
        result = integers_check(ragged->offsets, "offsets");
    if (!result && ragged->data->ndim < 1)
        result = error_set(EBB_E_SHAPE, "data of a ragged sequence has no dimension");
    return result ? result : check_offsets(ragged);
}

static const struct ebb_field fields[] = {
    EBB_FIELD(struct ebb_ragged, EBB_FIELD_OBJECT, data),
    EBB_FIELD(struct ebb_ragged, EBB_FIELD_OBJECT, offsets),
};

struct ebb_type ebb_type_ragged = {.name = "ragged",
                                   .bytes = sizeof(struct ebb_ragged),
                                   .fields = fields,
                                   .field_count = sizeof fields / sizeof *fields,
                                   .check = check,
                                   .kind = EBB_OBJECT_RAGGED};

int input_ragged(struct input *input, const struct ebb_ragged *ragged) {
    int result = ebb_object_as((void *)ragged, &ebb_type_ragged) ? 0 : ebb_last_error();
    if (!result)
        result = compose_check_members((struct ebb_object *)&ragged->object, NULL);
    if (!result)
        result = check(&ragged->object);
    if (result)
        return result;
    *input = (struct input){.fabric = fabric_of(ragged->data, 1),
                            .padded_length = ragged->padded_length};
    input->bundle = (struct bundle){.form = BUNDLE_RAGGED,
                                    .count = ragged->count,
                                    .base = ragged->data->data,
                                    .time_step = row_step(ragged->data, 0),
                                    .offsets = ragged->offsets->data,
                                    .strides = row_strides(ragged->data, 1)};
    return input_measure(input);
}

/* ---- joining ---- */

static void fill_offsets(int64_t *offsets, const struct input *input) {
    offsets[0] = 0;
    if (input->packed)
        ranks_read_lengths(&input->ranks, offsets + 1);
    for (int64_t at = 0; at < input->count; at++)
        offsets[at + 1] =
            offsets[at] + (input->packed ? offsets[at + 1] : bundle_length(&input->bundle, at));
}

static void fill(const struct ebb_ragged *ragged, const struct input *input) {
    struct row row = row_of(ragged->data, 1);
    struct bundle to = {.form = BUNDLE_RAGGED,
                        .count = input->count,
                        .base = ragged->data->data,
                        .time_step = (int64_t)row.bytes,
                        .offsets = ragged->offsets->data};
    fill_offsets(ragged->offsets->data, input);
    if (input->packed)
        weave_unpack(&to, &input->ranks, &row, INT64_MAX, NULL);
    else
        weave_strands(&to, &input->bundle, &row, INT64_MAX, NULL);
}

static struct ebb_ragged *join(ebb_region region, const struct input *input) {
    struct attempt attempt;
    struct ebb_ragged *ragged;
    if (!attempt_begin(&attempt, region))
        return NULL;
    struct ebb_tensor *offsets = NULL, *data = NULL;
    if ((ragged = ebb_object_new(region, &ebb_type_ragged, 0)) != NULL &&
        (offsets = integers_new(region, input->count + 1)) != NULL &&
        (data = fabric_tensor(region, &input->fabric, 1, &input->rows)) != NULL) {
        ragged->data = data;
        ragged->offsets = offsets;
        ragged->count = input->count;
        ragged->padded_length = input->padded_length;
        attempt_compose(&attempt, &ragged->object);
        fill(ragged, input);
        return ragged;
    }
    attempt_abandon(&attempt);
    return NULL;
}

struct ebb_ragged *ebb_sequences_join(ebb_region region, struct ebb_tensor *const *sequences,
                                      size_t count) {
    struct input input;
    return input_list(&input, sequences, count) == 0 ? join(region, &input) : NULL;
}

struct ebb_ragged *ebb_padded_join(ebb_region region, const struct ebb_tensor *padded,
                                   const int64_t *lengths, size_t count,
                                   const struct ebb_pack_options *options) {
    struct input input;
    if (input_padded(&input, padded, lengths, count, options) != 0 ||
        (options && lengths_check_options(&input.bundle, options) != 0))
        return NULL;
    return join(region, &input);
}

struct ebb_ragged *ebb_packed_join(ebb_region region, const struct ebb_packed *packed) {
    struct input input;
    return input_packed(&input, packed) == 0 ? join(region, &input) : NULL;
}

/* ---- from members ---- */

static int64_t longest_in(const struct ebb_tensor *offsets) {
    const int64_t *at = offsets->data;
    int64_t longest = 0, length;
    for (int64_t i = 1; i < offsets->shape[0]; i++)
        if (!__builtin_sub_overflow(at[i], at[i - 1], &length) && length > longest)
            longest = length;
    return longest;
}

struct ebb_ragged *ebb_ragged_from(ebb_region region, struct ebb_tensor *data,
                                   struct ebb_tensor *offsets) {
    struct attempt attempt;
    struct object_place place;
    struct ebb_ragged *ragged;
    if (!tensor_find_readable(data, &place) || !tensor_find_readable(offsets, &place) ||
        integers_check(offsets, "offsets") != 0 || !attempt_begin(&attempt, region))
        return NULL;
    if ((ragged = ebb_object_new(region, &ebb_type_ragged, 0)) != NULL) {
        ragged->data = data;
        ragged->offsets = offsets;
        ragged->count = offsets->shape[0] - 1;
        ragged->padded_length = longest_in(offsets);
        if (ebb_object_compose(ragged) == 0)
            return ragged;
    }
    attempt_abandon(&attempt);
    return NULL;
}
