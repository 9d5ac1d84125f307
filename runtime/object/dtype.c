// SPDX-License-Identifier: Apache-2.0
/*
 * dtype.c - types of elements: their size and their name (see dtype.h).
 *
 * Any program may fill in a dtype, so none is taken for granted: one that is none has no size, but
 * a text for messages. What the numbers of an element are is number.c's.
 */
#include "object/dtype.h"
#include "base/error.h"

#include <stdio.h>

size_t ebb_dtype_bytes(struct ebb_dtype dtype) {
    size_t bytes = dtype_bytes(dtype);
    if (bytes)
        return bytes;
    error_set(EBB_E_DTYPE, "dtype: code %d, %d bits, %d lanes", dtype.code, dtype.bits,
              dtype.lanes);
    return 0;
}

void dtype_describe(struct ebb_dtype dtype, char text[DTYPE_TEXT]) {
    static const char *const names[] = {"int",    "uint",    "float", "opaque",
                                        "bfloat", "complex", "bool"};
    int length;
    if (dtype.code > EBB_BOOL)
        length = snprintf(text, DTYPE_TEXT, "code %d, %d bits", dtype.code, dtype.bits);
    else if (dtype.code == EBB_BOOL && dtype.bits == 8)
        length = snprintf(text, DTYPE_TEXT, "bool");
    else
        length = snprintf(text, DTYPE_TEXT, "%s%d", names[dtype.code], dtype.bits);
    if (dtype.lanes != 1)
        snprintf(text + length, (size_t)(DTYPE_TEXT - length), "x%d", dtype.lanes);
}
