// SPDX-License-Identifier: Apache-2.0
/*
 * names.c - the family of malloc() once more, by the names that glibc has for them inside.
 *
 * Some programs and language runtimes call these, and free by the usual name what they got, or the
 * other way round; both must lead to the same heap. A malloc() that a program has of its own may be
 * made of these, so they lead to ours whatever it has.
 */
#include "malloc/theirs.h"

#include <malloc.h>

#define FAMILY __attribute__((visibility("default")))

FAMILY void *__libc_malloc(size_t bytes);
FAMILY void *__libc_calloc(size_t count, size_t bytes);
FAMILY void *__libc_realloc(void *block, size_t bytes);
FAMILY void *__libc_memalign(size_t align, size_t bytes);
FAMILY void *__libc_valloc(size_t bytes);
FAMILY void *__libc_pvalloc(size_t bytes);
FAMILY void __libc_free(void *block);
FAMILY int __posix_memalign(void **place, size_t align, size_t bytes);

void *__libc_malloc(size_t bytes) {
    return ours_malloc(bytes);
}

void *__libc_calloc(size_t count, size_t bytes) {
    return calloc(count, bytes);
}

void *__libc_realloc(void *block, size_t bytes) {
    return ours_realloc(block, bytes);
}

void *__libc_memalign(size_t align, size_t bytes) {
    return memalign(align, bytes);
}

void *__libc_valloc(size_t bytes) {
    return valloc(bytes);
}

void *__libc_pvalloc(size_t bytes) {
    return pvalloc(bytes);
}

void __libc_free(void *block) {
    ours_free(block);
}

int __posix_memalign(void **place, size_t align, size_t bytes) {
    return posix_memalign(place, align, bytes);
}
