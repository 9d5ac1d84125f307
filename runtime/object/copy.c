// SPDX-License-Identifier: Apache-2.0
/*
 * copy.c - copies and fills of tensors (see ebb/copy.h); the bytes are moved by elements.c.
 *
 * Invariant: everything is checked before the first byte is written. Refuses tensors that do not
 * agree, and destinations whose elements share memory with each other or with the source, or were
 * imported read-only.
 */
#include "object/copy.h"
#include "base/error.h"
#include "object/dtype.h"
#include "object/exchange.h"
#include "object/number.h"
#include "object/value.h"

#include <ebb/copy.h>

/* ---- checks ---- */

static int check_dtypes(const struct ebb_tensor *destination, const struct ebb_tensor *source) {
    char to[DTYPE_TEXT], from[DTYPE_TEXT];
    if (ebb_dtype_equal(destination->dtype, source->dtype))
        return 0;
    dtype_describe(destination->dtype, to);
    dtype_describe(source->dtype, from);
    return error_set(EBB_E_DTYPE, "a copy of %s to %s", from, to);
}

static int check_shapes(const struct ebb_tensor *destination, const struct ebb_tensor *source) {
    if (destination->ndim != source->ndim)
        return error_set(EBB_E_SHAPE, "a copy of %d dimensions to %d", source->ndim,
                         destination->ndim);
    for (int i = 0; i < source->ndim; i++)
        if (destination->shape[i] != source->shape[i])
            return error_set(EBB_E_SHAPE, "dimension %d: a copy of %lld to %lld", i,
                             (long long)source->shape[i], (long long)destination->shape[i]);
    return 0;
}

static int check_destination(const struct ebb_tensor *tensor) {
    int result = tensor_check_writable(tensor);
    if (result || !tensor_overlaps_itself(tensor))
        return result;
    return error_set(EBB_E_OVERLAP, "%lld elements of the destination share memory",
                     (long long)ebb_tensor_count(tensor));
}

/* True for two tensors of one shape if they see the same elements at the same places. */
static bool are_same(const struct ebb_tensor *destination, const struct ebb_tensor *source) {
    if (destination->data != source->data)
        return false;
    for (int i = 0; i < source->ndim; i++)
        if (source->shape[i] > 1 && destination->strides[i] != source->strides[i])
            return false;
    return true;
}

/* ---- copies ---- */

static void copy(struct ebb_tensor *destination, const struct ebb_tensor *source) {
    copy_elements(destination->data, destination->strides, source->data, source->strides,
                  source->shape, source->ndim, ebb_dtype_bytes(source->dtype));
}

int ebb_tensor_copy(struct ebb_tensor *destination, const struct ebb_tensor *source) {
    struct object_place place;
    int result;
    if (!tensor_find_readable(destination, &place) || !tensor_find_readable(source, &place))
        return error_latest();
    if ((result = check_dtypes(destination, source)) ||
        (result = check_shapes(destination, source)) || (result = check_destination(destination)))
        return result;
    if (are_same(destination, source))
        return 0;
    if (tensors_overlap(destination, source))
        return error_set(EBB_E_OVERLAP, "destination %p and source %p, %lld elements, share memory",
                         destination->data, source->data, (long long)ebb_tensor_count(source));
    copy(destination, source);
    return 0;
}

struct ebb_tensor *ebb_tensor_like(ebb_region region, const struct ebb_tensor *tensor) {
    struct object_place place;
    if (!tensor_find(tensor, &place))
        return NULL;
    return ebb_tensor_new(region, tensor->dtype, tensor->ndim, tensor->shape);
}

struct ebb_tensor *ebb_tensor_contiguous(ebb_region region, const struct ebb_tensor *tensor) {
    struct object_place place;
    struct ebb_tensor *dense =
        tensor_find_readable(tensor, &place) ? ebb_tensor_like(region, tensor) : NULL;
    if (dense)
        copy(dense, tensor);
    return dense;
}

/* ---- fills ---- */

int ebb_tensor_fill(struct ebb_tensor *tensor, struct ebb_value value) {
    static const int64_t repeat[EBB_DIMENSIONS_MAX];
    struct object_place place;
    char element[NUMBER_ELEMENT_BYTES];
    int result;
    if (!tensor_find_readable(tensor, &place))
        return error_latest();
    if ((result = value_write(value, tensor->dtype, element)) ||
        (result = check_destination(tensor)))
        return result;
    copy_elements(tensor->data, tensor->strides, element, repeat, tensor->shape, tensor->ndim,
                  ebb_dtype_bytes(tensor->dtype));
    return 0;
}
