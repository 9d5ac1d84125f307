// SPDX-License-Identifier: Apache-2.0
/*
 * collate_dense.c - tensors on top of each other: stacked, or padded to the largest.
 *
 * The result is made once, at its full size; each tensor goes to its slice. Padding is written
 * around the elements, not under them:
 *
 *     e e e e p     one slice, 2 dimensions, padding on the right: the rest of each row, then the
 *     e e e e p     rows that are missing
 *     p p p p p
 *
 * Invariant: every byte of the result is written exactly once.
 */
#include "base/error.h"
#include "object/collate.h"
#include "object/copy.h"
#include "object/strand.h"

#include <string.h>

/* ---- checking ---- */

static bool is_shape_equal(const struct ebb_tensor *left, const struct ebb_tensor *right) {
    return left->ndim == right->ndim &&
           memcmp(left->shape, right->shape, sizeof *left->shape * (size_t)left->ndim) == 0;
}

static int check_padding(const struct collation *collation, const struct ebb_collate_rule *rule) {
    struct padding padding;
    return padding_encode(rule->value, collation->tensors[0]->dtype, &padding);
}

int collate_check_dense(const struct collation *collation, const struct ebb_collate_rule *rule) {
    const struct ebb_tensor *first = collation->tensors[0];
    bool pad = rule->how == EBB_COLLATE_PAD;
    char path[COLLATE_PATH_BYTES];
    if (first->ndim == EBB_DIMENSIONS_MAX)
        return error_set(EBB_E_SHAPE, "'%s': %d dimensions and one more, %d may be",
                         collate_path(collation, path), first->ndim, EBB_DIMENSIONS_MAX);
    for (size_t i = 1; i < collation->count; i++)
        if (pad ? collation->tensors[i]->ndim != first->ndim
                : !is_shape_equal(collation->tensors[i], first))
            return collate_misshapen(collation, i);
    return pad ? check_padding(collation, rule) : 0;
}

/* ---- slices ---- */

/* One slice of the result, row-major, and the tensor that goes there. */
struct slice {
    char *at;
    int ndim;
    const int64_t *shape;   /* of the slice */
    const int64_t *strides; /* in elements */
    const struct ebb_tensor *tensor;
    size_t element_bytes;
    bool left;
    const struct padding *padding;
    uint64_t padded_bytes;
};

static void fill(struct slice *slice, char *at, int64_t elements) {
    size_t bytes = (size_t)elements * slice->element_bytes;
    padding_write(slice->padding, at, bytes);
    slice->padded_bytes += bytes;
}

static bool is_padded_from(const struct slice *slice, int dimension) {
    for (int i = dimension; i < slice->ndim; i++)
        if (slice->tensor->shape[i] != slice->shape[i])
            return true;
    return false;
}

/* Fills what the tensor leaves free of the part at `at`, from this dimension on. */
static void fill_around(struct slice *slice, char *at, int dimension) {
    if (!is_padded_from(slice, dimension))
        return;
    int64_t there = slice->tensor->shape[dimension], stride = slice->strides[dimension];
    int64_t missing = slice->shape[dimension] - there;
    ptrdiff_t step = (ptrdiff_t)stride * (ptrdiff_t)slice->element_bytes;
    char *elements = slice->left ? at + missing * step : at;
    fill(slice, slice->left ? at : at + there * step, missing * stride);
    for (int64_t i = 0; i < there && dimension + 1 < slice->ndim; i++)
        fill_around(slice, elements + i * step, dimension + 1);
}

/* Where the first element of the tensor goes. */
static char *first_of(const struct slice *slice) {
    char *at = slice->at;
    for (int i = 0; slice->left && i < slice->ndim; i++)
        at += (slice->shape[i] - slice->tensor->shape[i]) * slice->strides[i] *
              (int64_t)slice->element_bytes;
    return at;
}

static void write_slice(struct slice *slice) {
    const struct ebb_tensor *tensor = slice->tensor;
    fill_around(slice, slice->at, 0);
    copy_elements(first_of(slice), slice->strides, tensor->data, tensor->strides, tensor->shape,
                  tensor->ndim, slice->element_bytes);
}

/* ---- building ---- */

static struct ebb_tensor *new_result(const struct collation *collation) {
    const struct ebb_tensor *first = collation->tensors[0];
    int64_t shape[EBB_DIMENSIONS_MAX];
    shape[0] = (int64_t)collation->count;
    memcpy(shape + 1, first->shape, sizeof *shape * (size_t)first->ndim);
    for (size_t at = 1; at < collation->count; at++)
        for (int i = 0; i < first->ndim; i++)
            if (collation->tensors[at]->shape[i] > shape[i + 1])
                shape[i + 1] = collation->tensors[at]->shape[i];
    return ebb_tensor_new(collation->region, first->dtype, first->ndim + 1, shape);
}

struct ebb_tensor *collate_build_dense(struct collation *collation,
                                       const struct ebb_collate_rule *rule) {
    struct ebb_tensor *result = new_result(collation);
    struct padding padding;
    if (!result || ebb_tensor_bytes(result) == 0)
        return result;
    struct slice slice = {.ndim = result->ndim - 1,
                          .shape = result->shape + 1,
                          .strides = result->strides + 1,
                          .element_bytes = ebb_dtype_bytes(result->dtype),
                          .left = rule->left,
                          .padding = &padding};
    if (rule->how == EBB_COLLATE_PAD && padding_encode(rule->value, result->dtype, &padding) != 0)
        return NULL;
    size_t bytes = ebb_tensor_bytes(result) / collation->count;
    for (size_t i = 0; i < collation->count; i++) {
        slice.at = (char *)result->data + i * bytes;
        slice.tensor = collation->tensors[i];
        write_slice(&slice);
    }
    collation->done.padded_bytes += slice.padded_bytes;
    return result;
}
