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

/* For the functions that serve most requests: places them side by side, at cache lines. */
#define FRONT_HOT __attribute__((hot, aligned(64)))

#define FRONT_SMALL_MOST (TRAY_MOST - TRAY_GRANULE) /* larger blocks have pages of the scope */

/* A block of the scope in the simple case: a few instructions. NULL: ask front_alloc_scoped(). */
static inline void *front_alloc_quick(struct scope *scope, size_t bytes, size_t align,
                                      const void *caller) {
    uint32_t key = leaks_key(caller, bytes);
    if (bytes > FRONT_SMALL_MOST || leaks_is_sure(key))
        return NULL;
    return scope_alloc_quick(scope, bytes, align, key);
}

/* The same in the general case. The caller has read here.scope once: a signal handler may end a
 * turn that is only awaited. */
void *front_alloc_scoped(size_t bytes, struct scope *scope, const void *caller);
void *front_alloc_zeroed(size_t bytes, const void *caller);

/* `align` is a power of two. Keeps errno, also where there is no memory. */
void *front_alloc_aligned(size_t bytes, size_t align, const void *caller);

/* As realloc(), but a new size of 0 is a size like any other. */
void *front_resize(void *block, size_t bytes, const void *caller);

/*
 * The ways that few blocks go, for front_free_sized(), which needs no frame since all return as far
 * as it can see: a small one that is none, or has not so many bytes; one of another's tray; what is
 * in no tray, though heap_may_hold().
 */
void front_refuse_small(void *block, size_t bytes);
void front_free_other(void *block);
void front_free_no_small(void *block, size_t bytes);

/* The newest block's place is bumped again; any other block is the next of its size. */
static inline void front_free_small(void *block, size_t bytes) {
    struct tray_head *head = tray_head_of(block);
    struct tray *tray = tray_of((uintptr_t)block);
    size_t step;
    if (!__builtin_expect((uintptr_t)block % TRAY_GRANULE == 0 &&
                          (step = tray_live_step(head)) <= TRAY_MOST &&
                          bytes <= step - sizeof *head, 1)) {
        front_refuse_small(block, bytes);
        return;
    }
    /* relaxed: only whose it is matters, and that is this thread or it stays another's */
    if (!__builtin_expect(atomic_load_explicit(&tray->owner, memory_order_relaxed) == here.heap,
                          1)) {
        front_free_other(block);
        return;
    }
    struct scope *scope = tray->scope;
    /* another thread that frees it at once is seen later (scope_small.c) */
    __atomic_store_n(&head->mark, TRAY_FREED + (uint32_t)step, __ATOMIC_RELAXED);
    scope->freed_bytes += step;
    if ((uintptr_t)block + step == scope->cursor)
        scope->cursor = (uintptr_t)block;
    else
        scope_list(scope, block, (uint32_t)step);
}

/* Of what heap_may_hold(), or any other. */
static inline void front_free_low(void *block, size_t bytes) {
    if (__builtin_expect(tray_holds((uintptr_t)block), 1))
        front_free_small(block, bytes);
    else
        front_free_no_small(block, bytes);
}

/* Keeps errno. NULL: nothing. What is no block ends the process, if it is seen. `bytes`: what the
 * caller believes it has; 0: unknown. */
static inline void front_free_sized(void *block, size_t bytes) {
    if (__builtin_expect(!heap_may_hold((uintptr_t)block), 1))
        je_free(block);
    else
        front_free_low(block, bytes);
}

static inline void front_free(void *block) {
    front_free_sized(block, 0);
}

/* Of what heap_may_hold(). */
size_t front_usable_low(const void *block);

/* Bytes that may be used. 0 for NULL. */
static inline size_t front_usable(const void *block) {
    if (__builtin_expect(!heap_may_hold((uintptr_t)block), 1))
        return je_malloc_usable_size((void *)(uintptr_t)block);
    return front_usable_low(block);
}

#endif
