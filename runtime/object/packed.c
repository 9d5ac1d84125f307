// SPDX-License-Identifier: Apache-2.0
/*
 * packed.c - packed sequences: the type, made from other forms or from members.
 *
 * What a packed sequence says is checked whenever one is composed and whenever one is read, since
 * its members can be written to, ended and replaced in between, and its fields written: they refer
 * to members; batch sizes never grow, are at least 1 and sum to the rows; the indices are
 * permutations, inverse to each other. So nothing that follows can leave the memory of its members.
 */
#include "object/bundle.h"
#include "base/error.h"

#include <string.h>

/* Empty ones take no bytes, so nothing else bounds them: offsets of all have a size. */
#define SEQUENCES_MOST (INT64_MAX / (int64_t)sizeof(int64_t) - 1)

/* ---- the type ---- */

static int check_integers(const struct ebb_tensor *member, const char *name) {
    int result = member_check(member, "packed", name);
    return result ? result : integers_check(member, name);
}

/* They are in order, and so few that their sum cannot overflow while it is that of the rows. */
static int check_batch_sizes(const struct ebb_packed *packed) {
    const int64_t *sizes = packed->batch_sizes->data;
    int64_t left = packed->data->shape[0], steps = packed->batch_sizes->shape[0];
    int64_t before = packed->count;
    for (int64_t step = 0; step < steps; step++) {
        if (sizes[step] < 1 || sizes[step] > before)
            return error_set(EBB_E_BATCH_SIZES, "batch_sizes[%lld] is %lld, 1 to %lld may be",
                             (long long)step, (long long)sizes[step], (long long)before);
        before = sizes[step];
        left -= before;
        if (left < 0)
            break;
    }
    if (left != 0)
        return error_set(EBB_E_BATCH_SIZES, "batch_sizes sum to %s than the %lld rows of data",
                         left < 0 ? "more" : "less", (long long)packed->data->shape[0]);
    if (packed->padded_length < steps)
        return error_set(EBB_E_TOTAL_LENGTH, "padded length %lld, %lld steps",
                         (long long)packed->padded_length, (long long)steps);
    return 0;
}

/* The byte of a bool that another process wrote may be anything. */
static int read_bool(const bool *place, unsigned char *byte) {
    memcpy(byte, place, 1);
    return *byte <= 1 ? 0
                      : error_set(EBB_E_TYPE, "has_indices is %d, neither false nor true", *byte);
}

static int check_indices(const struct ebb_packed *packed) {
    const struct ebb_tensor *sorted = packed->sorted_indices;
    const struct ebb_tensor *unsorted = packed->unsorted_indices;
    unsigned char indices;
    int result = read_bool(&packed->has_indices, &indices);
    if (result || (!indices && !sorted && !unsorted))
        return result;
    result = check_integers(sorted, "sorted_indices");
    if (!result)
        result = check_integers(unsorted, "unsorted_indices");
    if (result)
        return result;
    if (sorted->shape[0] != packed->count || unsorted->shape[0] != packed->count)
        return error_set(EBB_E_PERMUTATION, "%lld sorted and %lld unsorted indices of %lld",
                         (long long)sorted->shape[0], (long long)unsorted->shape[0],
                         (long long)packed->count);
    return permutations_check(sorted->data, unsorted->data, packed->count);
}

static int check(const struct ebb_object *object) {
    const struct ebb_packed *packed = (const struct ebb_packed *)object;
    int result = member_check(packed->data, "packed", "data");
    if (!result)
        result = check_integers(packed->batch_sizes, "batch_sizes");
    if (!result && packed->data->ndim < 1)
        result = error_set(EBB_E_SHAPE, "data of a packed sequence has no dimension");
    if (!result && packed->count < 0)
        result = error_set(EBB_E_LENGTH_COUNT, "%lld sequences", (long long)packed->count);
    if (!result)
        result = check_batch_sizes(packed);
    if (!result && packed->count > SEQUENCES_MOST)
        result = error_set(EBB_E_LENGTH_COUNT, "%lld sequences, %lld may be",
                           (long long)packed->count, (long long)SEQUENCES_MOST);
    return result ? result : check_indices(packed);
}

static const struct ebb_field fields[] = {
    EBB_FIELD(struct ebb_packed, EBB_FIELD_OBJECT, data),
    EBB_FIELD(struct ebb_packed, EBB_FIELD_OBJECT, batch_sizes),
    EBB_FIELD(struct ebb_packed, EBB_FIELD_OBJECT, sorted_indices),
    EBB_FIELD(struct ebb_packed, EBB_FIELD_OBJECT, unsorted_indices),
};

struct ebb_type ebb_type_packed = {.name = "packed",
                                   .bytes = sizeof(struct ebb_packed),
                                   .fields = fields,
                                   .field_count = sizeof fields / sizeof *fields,
                                   .check = check,
                                   .kind = EBB_OBJECT_PACKED};

int input_packed(struct input *input, const struct ebb_packed *packed) {
    int result = ebb_object_as((void *)packed, &ebb_type_packed) ? 0 : ebb_last_error();
    if (!result)
        result = compose_check_members((struct ebb_object *)&packed->object, NULL);
    if (!result)
        result = check(&packed->object);
    if (result)
        return result;
    *input = (struct input){.packed = true,
                            .fabric = fabric_of(packed->data, 1),
                            .count = packed->count,
                            .rows = packed->data->shape[0],
                            .longest = packed->batch_sizes->shape[0],
                            .padded_length = packed->padded_length};
    input->ranks = (struct ranks){.base = packed->data->data,
                                  .step = row_step(packed->data, 0),
                                  .steps = input->longest,
                                  .count = packed->count,
                                  .batch_sizes = packed->batch_sizes->data,
                                  .sorted = integers_of(packed->sorted_indices),
                                  .unsorted = integers_of(packed->unsorted_indices),
                                  .strides = row_strides(packed->data, 1)};
    return 0;
}

/* ---- packing ---- */

/* Makes the object and its members; false if one of them could not be made. */
static bool make(struct ebb_packed **packed, ebb_region region, const struct input *input,
                 bool indices) {
    struct ebb_tensor *batch_sizes, *sorted = NULL, *unsorted = NULL, *data = NULL;
    *packed = ebb_object_new(region, &ebb_type_packed, 0);
    if (!*packed || !(batch_sizes = integers_new(region, input->longest)) ||
        (indices && (!(sorted = integers_new(region, input->count)) ||
                     !(unsorted = integers_new(region, input->count)))) ||
        !(data = fabric_tensor(region, &input->fabric, 1, &input->rows)))
        return false;
    (*packed)->data = data;
    (*packed)->batch_sizes = batch_sizes;
    (*packed)->sorted_indices = sorted;
    (*packed)->unsorted_indices = unsorted;
    (*packed)->has_indices = indices;
    (*packed)->count = input->count;
    (*packed)->padded_length = input->padded_length;
    return true;
}

static void fill(const struct ebb_packed *packed, const struct input *input) {
    struct row row = row_of(packed->data, 1);
    struct ranks ranks = {.base = packed->data->data,
                          .step = (int64_t)row.bytes,
                          .steps = input->longest,
                          .count = input->count,
                          .batch_sizes = packed->batch_sizes->data,
                          .sorted = integers_of(packed->sorted_indices)};
    lengths_arrange(&input->bundle, input->longest, packed->batch_sizes->data,
                    (int64_t *)ranks.sorted,
                    packed->has_indices ? packed->unsorted_indices->data : NULL);
    weave_pack(&ranks, &input->bundle, &row, input->rows);
}

static struct ebb_packed *pack(ebb_region region, struct input *input,
                               const struct ebb_pack_options *options) {
    struct attempt attempt;
    struct ebb_packed *packed;
    bool indices = !options || !options->enforce_sorted;
    if (options && (options->size != sizeof *options)) {
        error_set(EBB_E_ARGUMENT, "options: size %zu instead of %zu", options->size,
                  sizeof *options);
        return NULL;
    }
    if ((options && (input_cut(input, options->max_length, options->allow_truncation,
                               options->cut) != 0 ||
                     lengths_check_options(&input->bundle, options) != 0)) ||
        !attempt_begin(&attempt, region))
        return NULL;
    if (make(&packed, region, input, indices)) {
        attempt_compose(&attempt, &packed->object);
        fill(packed, input);
        return packed;
    }
    attempt_abandon(&attempt);
    return NULL;
}

struct ebb_packed *ebb_padded_pack(ebb_region region, const struct ebb_tensor *padded,
                                   const int64_t *lengths, size_t count,
                                   const struct ebb_pack_options *options) {
    struct input input;
    if (input_padded(&input, padded, lengths, count, options) != 0)
        return NULL;
    return pack(region, &input, options);
}

struct ebb_packed *ebb_sequences_pack(ebb_region region, struct ebb_tensor *const *sequences,
                                      size_t count, const struct ebb_pack_options *options) {
    struct input input;
    if (input_list(&input, sequences, count) != 0)
        return NULL;
    return pack(region, &input, options);
}

struct ebb_packed *ebb_ragged_pack(ebb_region region, const struct ebb_ragged *ragged,
                                   const struct ebb_pack_options *options) {
    struct input input;
    if (input_ragged(&input, ragged) != 0)
        return NULL;
    return pack(region, &input, options);
}

/* ---- from members ---- */

/* The indices that are missing are those that are there, inverted; false with an error. */
static bool complete(ebb_region region, struct ebb_tensor **missing,
                     const struct ebb_tensor *there) {
    if (*missing || !there)
        return true;
    *missing = ebb_permutation_invert(region, there);
    return *missing != NULL;
}

/* All members are live tensors, all but the data of integers. The last two may be missing. */
static int check_tensors(struct ebb_tensor *const *members) {
    static const char *const names[] = {"data", "batch_sizes", "sorted_indices",
                                        "unsorted_indices"};
    struct object_place place;
    int result = 0;
    for (int i = 0; i < 4; i++)
        if ((i < 2 || members[i]) && !tensor_find_readable(members[i], &place))
            return error_latest();
    for (int i = 1; i < 4 && !result; i++)
        if (members[i])
            result = integers_check(members[i], names[i]);
    return result;
}

static int64_t sequences_in(const struct ebb_tensor *batch_sizes,
                            const struct ebb_tensor *indices) {
    if (indices)
        return indices->shape[0];
    int64_t first = batch_sizes->shape[0] ? *integers_of(batch_sizes) : 0;
    return first < 0 ? 0 : first; /* refused by the check */
}

struct ebb_packed *ebb_packed_from(ebb_region region, struct ebb_tensor *data,
                                   struct ebb_tensor *batch_sizes,
                                   struct ebb_tensor *sorted_indices,
                                   struct ebb_tensor *unsorted_indices) {
    struct ebb_tensor *members[] = {data, batch_sizes, sorted_indices, unsorted_indices};
    struct attempt attempt;
    struct ebb_packed *packed;
    if (check_tensors(members) != 0 || !attempt_begin(&attempt, region))
        return NULL;
    if (complete(region, &sorted_indices, unsorted_indices) &&
        complete(region, &unsorted_indices, sorted_indices) &&
        (packed = ebb_object_new(region, &ebb_type_packed, 0)) != NULL) {
        packed->data = data;
        packed->batch_sizes = batch_sizes;
        packed->sorted_indices = sorted_indices;
        packed->unsorted_indices = unsorted_indices;
        packed->has_indices = sorted_indices != NULL;
        packed->count = sequences_in(batch_sizes, sorted_indices);
        packed->padded_length = batch_sizes->shape[0];
        if (ebb_object_compose(packed) == 0)
            return packed;
    }
    attempt_abandon(&attempt);
    return NULL;
}

/* ---- lengths ---- */

int ebb_packed_read_lengths(const struct ebb_packed *packed, int64_t *lengths, size_t count) {
    struct input input;
    int result = input_packed(&input, packed);
    if (result)
        return result;
    if (count != (size_t)input.count || (count && !lengths))
        return error_set(EBB_E_LENGTH_COUNT, "room for %zu lengths at %p, of %lld sequences",
                         count, (void *)lengths, (long long)input.count);
    ranks_read_lengths(&input.ranks, lengths);
    return 0;
}
