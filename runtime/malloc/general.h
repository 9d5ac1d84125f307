// SPDX-License-Identifier: Apache-2.0
/*
 * general.h - the general heap: jemalloc, in a copy of our own.
 *
 * What is allocated outside of scopes lies here, and so does what this layer keeps for itself.
 */
#ifndef EBB_MALLOC_GENERAL_H
#define EBB_MALLOC_GENERAL_H

#include "base/jemalloc.h"

#include <stdint.h>
#include <string.h>

/* Up to so many bytes jemalloc's blocks are parts of slabs, whatever its page is. So one whose size
 * is a multiple of a power of two, up to a page, lies at a multiple of that; and calloc() clears it
 * each time. Only malloc() has a short way to them. */
#define GENERAL_SLAB_MOST ((size_t)8 << 10)

/* As je_calloc(), but that no more is cleared than was asked for. */
static inline void *general_alloc_zeroed(size_t bytes) {
    if (__builtin_expect(bytes > GENERAL_SLAB_MOST, 0))
        return je_calloc(1, bytes);
    void *block = je_malloc(bytes);
    return __builtin_expect(block != NULL, 1) ? memset(block, 0, bytes) : NULL;
}

/* `align` is a power of two. Keeps errno, also where there is no memory. */
void *general_alloc_aligned(size_t bytes, size_t align);

/* Once, when the library is loaded: sets the option for oversized blocks in jemalloc's first arena,
 * the first thread's, which is made before the options are read. */
void general_begin(void);

/* Reads a number of the heap by its name, such as "stats.allocated"; 0 if there is none. */
size_t general_read(const char *name);

/* Brings the numbers that general_read() gives up to date. */
void general_refresh(void);

/* Bytes of pages that went back to the system so far, those of trays too, as of the last
 * general_refresh(). */
uint64_t general_given_back(void);

/* Gives all free pages back to the system, those of trays too. */
void general_trim(void);

/* Gives back pages that have been free for long, by their age. */
#define GENERAL_AGES_MS 10000u /* after so long all are gone */
void general_decay(void);

#endif
