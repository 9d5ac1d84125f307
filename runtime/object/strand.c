// SPDX-License-Identifier: Apache-2.0
/*
 * strand.c - where the rows of sequences lie, and what lies between them (see strand.h).
 *
 * Pure arithmetic on what was checked when it was made: nothing here can fail. Invariant: all rows
 * of a strand lie inside the storage of its tensor.
 */
#include "object/strand.h"
#include "object/copy.h"
#include "object/value.h"

#include <string.h>

struct row row_of(const struct ebb_tensor *tensor, int lead) {
    struct row row = {.element_bytes = ebb_dtype_bytes(tensor->dtype),
                      .ndim = tensor->ndim - lead,
                      .shape = tensor->shape + lead};
    if (ebb_tensor_count(tensor) == 0)
        return row;
    row.bytes = row.element_bytes;
    for (int i = 0; i < row.ndim; i++)
        row.bytes *= (size_t)row.shape[i];
    return row;
}

int64_t row_step(const struct ebb_tensor *tensor, int dimension) {
    if (ebb_tensor_count(tensor) == 0 || tensor->shape[dimension] == 1)
        return 0;
    return tensor->strides[dimension] * (int64_t)ebb_dtype_bytes(tensor->dtype);
}

const int64_t *row_strides(const struct ebb_tensor *tensor, int lead) {
    int64_t expected = 1;
    if (ebb_tensor_count(tensor) == 0) /* sizes beside a zero may be anything */
        return NULL;
    for (int i = tensor->ndim - 1; i >= lead; i--) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != expected)
            return tensor->strides + lead;
        expected *= tensor->shape[i];
    }
    return NULL;
}

void ranks_read_lengths(const struct ranks *ranks, int64_t *lengths) {
    int64_t length = ranks->steps;
    for (int64_t rank = 0; rank < ranks->count; rank++) {
        length = ranks_length(ranks, rank, length);
        lengths[ranks->sorted ? ranks->sorted[rank] : rank] = length;
    }
}

int padding_encode(struct ebb_value value, struct ebb_dtype dtype, struct padding *padding) {
    *padding = (struct padding){.bytes = 1};
    if (value_is_blank(value))
        return 0;
    int result = value_write(value, dtype, padding->at);
    for (size_t i = 1; !result && i < ebb_dtype_bytes(dtype); i++)
        if (padding->at[i] != padding->at[0])
            padding->bytes = ebb_dtype_bytes(dtype);
    return result;
}

void padding_write(const struct padding *padding, void *to, size_t bytes) {
    if (padding->bytes == 1)
        memset(to, padding->at[0], bytes);
    else
        copy_repeated(to, padding->at, padding->bytes, bytes / padding->bytes);
}
