// SPDX-License-Identifier: Apache-2.0
/* descriptor.c - see descriptor.h. Refuses negative dimensions and sizes that overflow. */
#include "descriptor.h"

#define ELEMENT_BYTES sizeof(float)

/* Bytes in front of the elements, as long as the block begins at a multiple of 16. */
static size_t head_bytes(int32_t ndim) {
    size_t bytes = sizeof(struct descriptor) + 2 * sizeof(int64_t) * (size_t)ndim;

    return (bytes + 2 * DESCRIPTOR_ALIGN - 17) & ~(DESCRIPTOR_ALIGN - 1);
}

size_t descriptor_block_bytes(int32_t ndim, const int64_t *shape) {
    size_t bytes = ELEMENT_BYTES;

    for (int32_t i = 0; i < ndim; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(bytes, (size_t)shape[i], &bytes))
            return 0;
    if (__builtin_add_overflow(bytes, head_bytes(ndim), &bytes))
        return 0;
    return bytes;
}

struct descriptor *descriptor_fill(void *block, int32_t ndim, const int64_t *shape) {
    struct descriptor *tensor = block;
    uintptr_t behind = (uintptr_t)(tensor + 1) + 2 * sizeof(int64_t) * (size_t)ndim;
    int64_t count = 1;

    tensor->data = (void *)((behind + DESCRIPTOR_ALIGN - 1) & ~(uintptr_t)(DESCRIPTOR_ALIGN - 1));
    tensor->references = 1;
    tensor->code = 2;
    tensor->bits = 32;
    tensor->lanes = 1;
    tensor->ndim = ndim;
    tensor->shape = (int64_t *)(tensor + 1);
    tensor->strides = tensor->shape + ndim;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        tensor->shape[i] = shape[i];
        tensor->strides[i] = count;
        count *= shape[i];
    }
    tensor->bytes = (size_t)count * ELEMENT_BYTES;
    return tensor;
}
