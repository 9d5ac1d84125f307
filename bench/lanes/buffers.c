// SPDX-License-Identifier: Apache-2.0
//
// buffers.c - arrays of the simulator itself.
//
// One invariant: what comes back is never NULL. Refused, by ending the program with status 2: sizes
// that wrap, and running out. (Status 1 is a result of ebb-plan: a plan is too high.)

#include "buffers.h"

#include <stdio.h>
#include <stdlib.h>

void *buffer_resize(void *old, size_t count, size_t bytes)
{
    size_t total;
    void *grown = NULL;

    if (!__builtin_mul_overflow(count, bytes, &total))
        grown = realloc(old, total ? total : 1);
    if (grown)
        return grown;
    fprintf(stderr, "out of memory: %zu elements of %zu bytes\n", count, bytes);
    exit(2);
}

void *buffer_reserve(void *old, size_t *capacity, size_t count, size_t bytes)
{
    if (count < *capacity)
        return old;
    *capacity = *capacity ? 2 * *capacity : 64;
    return buffer_resize(old, *capacity, bytes);
}
