// SPDX-License-Identifier: Apache-2.0
/*
 * bundle.c - lists and padded tensors as input: checked once, then only walked.
 *
 * Refuses what is no live tensor, sequences that are not made alike, lengths that do not fit.
 * Invariant: after an input_ function returned 0, every row below every length is memory of a
 * live storage, and the sum of the lengths is known to fit.
 */
#include "object/bundle.h"
#include "base/error.h"
#include "object/dtype.h"
#include "object/exchange.h"
#include "region/small.h"

#include <string.h>

struct fabric fabric_of(const struct ebb_tensor *tensor, int lead) {
    return (struct fabric){tensor->dtype, tensor->ndim - lead, tensor->shape + lead};
}

struct ebb_tensor *fabric_tensor(ebb_region region, const struct fabric *fabric, int lead,
                                 const int64_t *sizes) {
    int64_t shape[EBB_DIMENSIONS_MAX + 2];
    memcpy(shape, sizes, sizeof *shape * (size_t)lead);
    memcpy(shape + lead, fabric->shape, sizeof *shape * (size_t)fabric->ndim);
    return ebb_tensor_new(region, fabric->dtype, lead + fabric->ndim, shape);
}

int member_check(const struct ebb_tensor *member, const char *form, const char *name) {
    if (!member)
        return error_set(EBB_E_RELEASED, "a %s sequence without %s", form, name);
    if (!object_is_tensor(&member->object))
        return error_set(EBB_E_TYPE, "%s: type '%s', a tensor is needed", name,
                         member->object.type->name);
    return import_check(member->storage);
}

static int too_long(int64_t count) {
    return error_set(EBB_E_SIZE, "the lengths of %lld sequences overflow", (long long)count);
}

int input_measure(struct input *input) {
    int64_t rows = 0, longest = 0;
    input->count = input->bundle.count;
    for (int64_t at = 0; at < input->count; at++) {
        int64_t length = bundle_length(&input->bundle, at);
        if (__builtin_add_overflow(rows, length, &rows))
            return too_long(input->count);
        longest = length > longest ? length : longest;
    }
    input->rows = rows;
    input->longest = longest;
    return 0;
}

/* ---- cutting ---- */

static int refuse_longer(const struct input *input, int64_t most) {
    int64_t at = 0;
    if (input->packed)
        return error_set(EBB_E_LENGTH_EXCEEDS, "the longest sequence has %lld steps, %lld may be",
                         (long long)input->longest, (long long)most);
    while (bundle_length(&input->bundle, at) <= most)
        at++;
    return error_set(EBB_E_LENGTH_EXCEEDS, "sequence %lld has %lld steps, %lld may be",
                     (long long)at, (long long)bundle_length(&input->bundle, at),
                     (long long)most);
}

int input_cut(struct input *input, int64_t most, bool allowed, enum ebb_side cut) {
    if (most < 0 || (unsigned)cut > EBB_SIDE_LEFT)
        return error_set(EBB_E_ARGUMENT, "options: at most %lld steps, cut on side %d",
                         (long long)most, (int)cut);
    if (most && input->padded_length > most && (allowed || input->longest <= most))
        input->padded_length = most;
    if (!most || input->longest <= most)
        return 0;
    if (!allowed)
        return refuse_longer(input, most);
    if (input->packed && cut == EBB_SIDE_LEFT)
        return error_set(EBB_E_ARGUMENT, "%lld packed steps are not cut to %lld on the left",
                         (long long)input->longest, (long long)most);
    input->bundle.most = most;
    input->bundle.drop_first = cut == EBB_SIDE_LEFT;
    input->longest = most;
    return input->packed ? 0 : input_measure(input);
}

/* ---- lists ---- */

struct bundle bundle_in_list(struct ebb_tensor *const *list, int64_t count) {
    return (struct bundle){.form = BUNDLE_LIST,
                           .count = count,
                           .time_step = (int64_t)ebb_dtype_bytes(list[0]->dtype),
                           .list = list};
}

static int check_alike(const struct ebb_tensor *tensor, const struct ebb_tensor *first,
                       size_t at) {
    char dtype[DTYPE_TEXT], wanted[DTYPE_TEXT];
    if (!ebb_dtype_equal(tensor->dtype, first->dtype)) {
        dtype_describe(tensor->dtype, dtype);
        dtype_describe(first->dtype, wanted);
        return error_set(EBB_E_DTYPE, "sequence %zu: %s, the first %s", at, dtype, wanted);
    }
    if (tensor->ndim < 1)
        return error_set(EBB_E_SHAPE, "sequence %zu: 0 dimensions, at least 1 is needed", at);
    if (tensor->ndim != first->ndim)
        return error_set(EBB_E_SHAPE, "sequence %zu: %d dimensions, the first %d", at,
                         tensor->ndim, first->ndim);
    for (int i = 1; i < tensor->ndim; i++)
        if (tensor->shape[i] != first->shape[i])
            return error_set(EBB_E_SHAPE, "sequence %zu: dimension %d is %lld, in the first %lld",
                             at, i, (long long)tensor->shape[i], (long long)first->shape[i]);
    return 0;
}

/* Bytes of the block of the region that begins at an address of the range; 0 if none does. */
static size_t block_of(const struct region *host, uintptr_t addr) {
    return block_peek(host, range_block_at(addr), addr);
}

/* A live tensor of this region, as most of a list are of the same. A short cut: what is not that
 * obvious, tensor_find() looks at. */
static bool is_tensor_of(const struct region *host, const struct ebb_tensor *tensor) {
    return range_holds((uintptr_t)tensor) &&
           block_of(host, (uintptr_t)tensor) >= sizeof *tensor &&
           object_is_tensor(&tensor->object) &&
           (tensor->object.state & (OBJECT_OWNER | OBJECT_LIVE)) ==
               (host->alone ^ OBJECT_ALONE); /* of a shared one: never */
}

int input_list(struct input *input, struct ebb_tensor *const *sequences, size_t count) {
    struct object_place place = {.host = NULL};
    int64_t rows = 0, longest = 0;
    *input = (struct input){.packed = false};
    if (count == 0)
        return error_set(EBB_E_EMPTY, "a list of no sequences");
    if (!sequences)
        return error_set(EBB_E_EMPTY, "a list of %zu sequences is NULL", count);
    for (size_t i = 0; i < count; i++) {
        if ((i == 0 || !is_tensor_of(place.host, sequences[i])) &&
            !tensor_find(sequences[i], &place))
            return error_latest();
        if (import_check(sequences[i]->storage) != 0)
            return EBB_E_RELEASED;
        int result = check_alike(sequences[i], sequences[0], i);
        if (!result && __builtin_add_overflow(rows, sequences[i]->shape[0], &rows))
            result = too_long((int64_t)count);
        if (result)
            return result;
        longest = sequences[i]->shape[0] > longest ? sequences[i]->shape[0] : longest;
    }
    input->fabric = fabric_of(sequences[0], 1);
    input->bundle = bundle_in_list(sequences, (int64_t)count);
    input->count = (int64_t)count;
    input->rows = rows;
    input->longest = input->padded_length = longest;
    return 0;
}

/* ---- padded tensors ---- */

static int check_pack_options(const struct ebb_pack_options *options) {
    if (options->size != sizeof *options || (unsigned)options->side > EBB_SIDE_LEFT)
        return error_set(EBB_E_ARGUMENT, "options: size %zu instead of %zu, side %d",
                         options->size, sizeof *options, (int)options->side);
    return 0;
}

static int check_padded(const struct ebb_tensor *padded, int batch) {
    struct object_place place;
    if (!tensor_find_readable(padded, &place))
        return error_latest();
    if (padded->ndim < 2)
        return error_set(EBB_E_SHAPE, "a padded tensor of %d dimensions, 2 are batch and time",
                         padded->ndim);
    if (padded->shape[batch] == 0)
        return error_set(EBB_E_EMPTY, "a padded tensor of %lld by %lld: no sequences",
                         (long long)padded->shape[0], (long long)padded->shape[1]);
    return 0;
}

static struct bundle padded_bundle(const struct ebb_tensor *padded, bool batch_first,
                                   enum ebb_side side) {
    return (struct bundle){.form = BUNDLE_PADDED,
                           .side = side,
                           .count = padded->shape[!batch_first],
                           .padded_length = padded->shape[batch_first],
                           .base = padded->data,
                           .batch_step = row_step(padded, !batch_first),
                           .time_step = row_step(padded, batch_first),
                           .strides = row_strides(padded, 2)};
}

int input_padded(struct input *input, const struct ebb_tensor *padded, const int64_t *lengths,
                 size_t count, const struct ebb_pack_options *options) {
    static const struct ebb_pack_options defaults = {.size = sizeof defaults};
    options = options ? options : &defaults;
    *input = (struct input){.packed = false};
    int result = check_pack_options(options);
    if (!result)
        result = check_padded(padded, !options->batch_first);
    if (result)
        return result;
    struct bundle *bundle = &input->bundle;
    *bundle = padded_bundle(padded, options->batch_first, options->side);
    bundle->lengths = lengths;
    input->fabric = fabric_of(padded, 2);
    input->padded_length = bundle->padded_length;
    result = lengths_check(lengths, count, bundle->count, bundle->padded_length);
    if (!result)
        result = input_measure(input);
    return result ? result : input_cut(input, options->max_length, options->allow_truncation,
                                       options->cut);
}
