// SPDX-License-Identifier: Apache-2.0
/* dtype.h - types of elements: their size and their name (see dtype.c). */
#ifndef EBB_OBJECT_DTYPE_H
#define EBB_OBJECT_DTYPE_H

#include <ebb/tensor.h>

/* Bytes of an element; 0 if the type is none. */
static inline size_t dtype_bytes(struct ebb_dtype dtype) {
    if (dtype.code > EBB_BOOL || dtype.bits > 128)
        return 0;
    return ((unsigned)dtype.bits * dtype.lanes + 7) / 8;
}

enum { DTYPE_TEXT = 32 };

/* "int8", "bfloat16", "complex64", "float32x4". */
void dtype_describe(struct ebb_dtype dtype, char text[DTYPE_TEXT]);

#endif
