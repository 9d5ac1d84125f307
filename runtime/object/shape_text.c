// SPDX-License-Identifier: Apache-2.0
/* shape_text.c - see shape_text.h. Never writes past the end; what does not fit becomes "...". */
#include "object/shape_text.h"

#include <stdio.h>
#include <string.h>

#define CUT "...]"

const char *shape_text(char *text, int ndim, const int64_t *shape) {
    size_t at = 1;
    strcpy(text, "[");
    for (int i = 0; i < ndim; i++) {
        char number[24];
        int length = snprintf(number, sizeof number, "%lld%s", (long long)shape[i],
                              i + 1 < ndim ? ", " : "");
        if (at + (size_t)length + sizeof CUT > SHAPE_TEXT_BYTES) {
            strcpy(text + at, CUT);
            return text;
        }
        memcpy(text + at, number, (size_t)length + 1);
        at += (size_t)length;
    }
    strcpy(text + at, "]");
    return text;
}
