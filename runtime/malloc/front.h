// SPDX-License-Identifier: Apache-2.0
/*
 * front.h - allocating and freeing as the family of malloc() sees it, whoever serves it.
 *
 *     in the zone of trays     a small block of a scope         tray.h
 *     in the range of ebb      a large block of a scope         large.h
 *     anywhere else            a block of the general heap      general.h
 *
 * Blocks outside of scopes cost a comparison each way more than jemalloc's.
 */
#ifndef EBB_MALLOC_FRONT_H
#define EBB_MALLOC_FRONT_H

#include "malloc/general.h"
#include "malloc/heap.h"

#include <stddef.h>

/* `caller` names the place that allocates. NULL: no memory, errno is ENOMEM. */
void *front_alloc(size_t bytes, const void *caller);

/* What most requests come through: next to each other, and from the beginning of a cache line. */
#define FRONT_HOT __attribute__((hot, aligned(64)))

#define FRONT_SMALL_MOST (TRAY_MOST - TRAY_GRANULE) /* larger blocks have pages of the scope */

/* A block of the scope in a few instructions, mostly. NULL: ask front_alloc_scoped(). */
static inline void *front_alloc_quick(struct scope *scope, size_t bytes, size_t align,
                                      const void *caller) {
    uint32_t key = leaks_key(caller, bytes);
    if (bytes > FRONT_SMALL_MOST || leaks_is_sure(key))
        return NULL;
    return scope_alloc_quick(scope, bytes, align, key);
}

/* The same, asked for in the scope. It is read once: a handler of a signal may end a turn that is
 * only awaited. */
void *front_alloc_scoped(struct scope *scope, size_t bytes, const void *caller);
void *front_alloc_zeroed(size_t bytes, const void *caller);

/* `align` is a power of two. Keeps errno, also where there is no memory. */
void *front_alloc_aligned(size_t bytes, size_t align, const void *caller);

/* As realloc(), but a new size of 0 is a size like any other. */
void *front_resize(void *block, size_t bytes, const void *caller);

/*
 * Where heap_may_hold() is true. Keeps errno. What is no block ends the process, if it is seen.
 * `bytes`: what the caller believes it has; 0: unknown.
 */
void front_free_spanned(void *block, size_t bytes);

/* NULL: nothing. */
static inline void front_free_sized(void *block, size_t bytes) {
    if (__builtin_expect(!heap_may_hold((uintptr_t)block), 1))
        je_free(block);
    else
        front_free_spanned(block, bytes);
}

static inline void front_free(void *block) {
    front_free_sized(block, 0);
}

/* Bytes that may be used. 0 for NULL. */
size_t front_usable(const void *block);

#endif
