// SPDX-License-Identifier: Apache-2.0
/*
 * door.h - what the malloc() family calls: the heaps as they are (front.h), or, in the hardened
 * library, behind guards (guard.h). The choice is made at compile time, so it costs nothing.
 * Outside of scopes requests go straight to the general heap from here.
 */
#ifndef EBB_MALLOC_DOOR_H
#define EBB_MALLOC_DOOR_H

#include "malloc/front.h"
#include "malloc/general.h"
#include "malloc/heap.h"

#include <errno.h>

/* In a scope. */
static inline void *door_alloc_scoped(size_t bytes, struct scope *scope, const void *caller) {
    void *block = front_alloc_quick(scope, bytes, TRAY_GRANULE, caller);
    return __builtin_expect(block != NULL, 1) ? block : front_alloc_scoped(bytes, scope, caller);
}

static inline void *door_alloc(size_t bytes, const void *caller) {
    struct scope *scope = here.scope;
    if (GUARDED)
        return guard_alloc(bytes, GUARD_ALIGN, caller);
    return __builtin_expect(!scope, 1) ? je_malloc(bytes) : door_alloc_scoped(bytes, scope, caller);
}

static inline void *door_alloc_zeroed(size_t bytes, const void *caller) {
    if (GUARDED)
        return guard_alloc_zeroed(bytes, caller);
    return __builtin_expect(!here.scope, 1) ? general_alloc_zeroed(bytes)
                                            : front_alloc_zeroed(bytes, caller);
}

/* Keeps errno. Reading that is a call, so the common path does not. */
static inline void *door_alloc_aligned(size_t bytes, size_t align, const void *caller) {
    struct scope *scope = here.scope;
    if (GUARDED) {
        int before = errno;
        void *block = guard_alloc(bytes, align, caller);
        errno = before;
        return block;
    }
    if (__builtin_expect(!scope, 1))
        return general_alloc_aligned(bytes, align);
    void *block = align > TRAY_GRANULE && align <= EBB_PAGE
                      ? front_alloc_quick(scope, bytes, align, caller)
                      : NULL;
    return __builtin_expect(block != NULL, 1) ? block : front_alloc_aligned(bytes, align, caller);
}

/* Whether jemalloc's realloc() does all that there is to do. Above some size of no memory it leaves
 * errno alone. */
static inline bool door_resizes_general(const void *block, size_t bytes) {
    return !GUARDED && block && !heap_may_hold((uintptr_t)block) && !here.scope &&
           bytes && bytes <= RANGE_MOST;
}

static inline void *door_resize(void *block, size_t bytes, const void *caller) {
    return GUARDED ? guard_resize(block, bytes, caller) : front_resize(block, bytes, caller);
}

static inline void door_free(void *block) {
    if (GUARDED)
        guard_free(block);
    else
        front_free(block);
}

static inline void door_free_sized(void *block, size_t bytes) {
    if (GUARDED)
        guard_free_sized(block, bytes);
    else
        front_free_sized(block, bytes);
}

static inline size_t door_usable(const void *block) {
    return GUARDED ? guard_usable(block) : front_usable(block);
}

#endif
