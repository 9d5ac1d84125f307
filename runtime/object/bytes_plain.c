// SPDX-License-Identifier: Apache-2.0
/*
 * bytes_plain.c - copies of dense bytes, where nothing is known to be better than memcpy(); its
 * twin for x86-64 is bytes_streamed.c.
 */
#include "object/copy.h"

#include <string.h>

void copy_bytes(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

void copy_past_caches(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}
