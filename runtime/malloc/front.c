// SPDX-License-Identifier: Apache-2.0
/*
 * front.c - which heap serves a request, and whose a block is (see front.h).
 *
 * A double free and the free of what begins no block are seen for blocks of scopes, and end the
 * process with a message (misuse.h); the general heap does not look.
 */
#include "malloc/front.h"
#include "malloc/general.h"
#include "malloc/guard.h"
#include "malloc/heap.h"
#include "malloc/misuse.h"

#include "base/size.h"

#include <errno.h>
#include <string.h>

#define LIKELY(claim) __builtin_expect(!!(claim), 1)

/* ---- allocating ---- */

#define WHOLE_PAGES ((size_t)32 << 10)

/* Large blocks begin and end at multiples of this: from some size on no two share a page, so that
 * one that outlives its scope pins none of its neighbours. */
static size_t large_unit(size_t bytes) {
    return bytes < WHOLE_PAGES ? EBB_UNIT : EBB_PAGE;
}

static __attribute__((noinline)) void *alloc_large(struct scope *scope, size_t bytes,
                                                   size_t align) {
    size_t unit = large_unit(bytes);
    if (GUARDED || bytes > RANGE_MOST || align > EBB_ALIGN_MAX)
        return NULL; /* pages that a guard forbids are the general heap's */
    int before = errno;
    void *block = scope_alloc_large(scope, size_align(bytes, unit), size_larger(align, unit));
    errno = before;
    return block;
}

static __attribute__((noinline)) void *alloc_small(struct scope *scope, size_t bytes, size_t align,
                                                   uint32_t key) {
    int before = errno;
    void *block = scope_alloc_small(scope, bytes, align, key);
    errno = before;
    return block;
}

/* A block of the scope, or NULL: of the general heap, then. */
static inline void *alloc_in(struct scope *scope, size_t bytes, size_t align, const void *caller) {
    if (bytes > FRONT_SMALL_MOST)
        return alloc_large(scope, bytes, size_larger(align, 64));
    uint32_t key = leaks_key(caller, bytes);
    if (leaks_is_sure(key) || align > EBB_PAGE)
        return NULL;
    void *block = scope_alloc_quick(scope, bytes, align, key);
    return LIKELY(block) ? block : alloc_small(scope, bytes, align, key);
}

void *front_alloc_scoped(size_t bytes, struct scope *scope, const void *caller) {
    void *block = alloc_in(scope, bytes, TRAY_GRANULE, caller);
    return LIKELY(block) ? block : je_malloc(bytes);
}

void *front_alloc(size_t bytes, const void *caller) {
    struct scope *scope = here.scope;
    return scope ? front_alloc_scoped(bytes, scope, caller) : je_malloc(bytes);
}

/* Of so much zeroed memory a program may touch little, and could not have all of it: from here on
 * it is the general heap's, whose pages come when they are touched. Below, clearing hot pages of
 * the scope costs a fifth of faulting in new ones. */
#define ZEROED_MOST ((size_t)256 << 20)

void *front_alloc_zeroed(size_t bytes, const void *caller) {
    struct scope *scope = bytes < ZEROED_MOST ? here.scope : NULL;
    void *block = scope ? alloc_in(scope, bytes, TRAY_GRANULE, caller) : NULL;
    return block ? memset(block, 0, bytes) : general_alloc_zeroed(bytes);
}

void *front_alloc_aligned(size_t bytes, size_t align, const void *caller) {
    struct scope *scope = here.scope;
    void *block = scope ? alloc_in(scope, bytes, size_larger(align, TRAY_GRANULE), caller) : NULL;
    return block ? block : general_alloc_aligned(bytes, align);
}

/* ---- freeing ---- */

static inline bool is_live(void *block) {
    return (uintptr_t)block % TRAY_GRANULE == 0 && tray_live_step(tray_head_of(block)) <= TRAY_MOST;
}

static inline struct tray_head *head_of(void *block) {
    if (!LIKELY(is_live(block)))
        misuse_of_small(block);
    return tray_head_of(block);
}

__attribute__((cold)) void front_refuse_small(void *block, size_t bytes) {
    misuse_of_size(block, bytes, tray_step_of(head_of(block)) - sizeof(struct tray_head));
}

/* Of several threads that free it at once one does. */
void front_free_other(void *block) {
    struct tray_head *head = tray_head_of(block);
    struct tray *tray = tray_of((uintptr_t)block);
    int before = errno;
    uint32_t step = tray_step_of(head), live = TRAY_LIVE + step;
    /* release: who finds it so may write the head (tray_thin()); else the balance orders it */
    if (!__atomic_compare_exchange_n(&head->mark, &live, TRAY_PASSED + step, false,
                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        misuse_of_small(block);
    if (tray_release_other(tray, tray_weight(step)))
        heap_give_any_tray(tray);
    errno = before;
}

static struct large *large_of(const void *block) {
    struct large *large = large_find((uintptr_t)block);
    if (!large || atomic_load_explicit(&large->state, memory_order_relaxed) != LARGE_LIVE)
        misuse_of_large(block, large);
    return large;
}

static void free_large(void *block, size_t bytes) {
    struct large *large = large_of(block);
    uint32_t live = LARGE_LIVE;
    int before = errno;
    if (bytes > large->bytes)
        misuse_of_size(block, bytes, large->bytes);
    /* relaxed: the list that it is handed in to orders it */
    if (!atomic_compare_exchange_strong_explicit(&large->state, &live, LARGE_HANDED_IN,
                                                 memory_order_relaxed, memory_order_relaxed))
        misuse_of_large(block, large);
    if (large->heap == here.heap)
        scope_release_large(large);
    else
        heap_hand_in(large);
    errno = before;
}

/* It is in no tray, and of no large block. */
static inline void expect_general(const void *block) {
    if (tray_reserves((uintptr_t)block))
        misuse_of_small(block);
}

static inline bool is_scoped(const void *block) {
    if (LIKELY(!heap_may_hold((uintptr_t)block)))
        return false;
    if (tray_holds((uintptr_t)block) || range_reserves((uintptr_t)block))
        return true;
    expect_general(block);
    return false;
}

void front_free_no_small(void *block, size_t bytes) {
    if (range_reserves((uintptr_t)block)) {
        free_large(block, bytes);
        return;
    }
    expect_general(block);
    je_free(block);
}

size_t front_usable_low(const void *block) {
    if (!is_scoped(block))
        return je_malloc_usable_size((void *)(uintptr_t)block);
    if (tray_holds((uintptr_t)block))
        return tray_step_of(head_of((void *)(uintptr_t)block)) - sizeof(struct tray_head);
    return large_of(block)->bytes;
}

/* ---- resizing ---- */

/* The newest block of the tray in use may grow and shrink there. */
static bool resize_small(void *block, size_t bytes) {
    struct tray_head *head = head_of(block);
    struct tray *tray = tray_of((uintptr_t)block);
    struct scope *scope = here.scope;
    size_t step = tray_step(bytes), before = tray_step_of(head), usable = before - sizeof *head;
    bool is_last = scope && scope->tray == tray && (uintptr_t)block + before == scope->cursor;
    if (!is_last || bytes > FRONT_SMALL_MOST || (uintptr_t)block + step > scope->limit)
        return bytes <= usable && bytes >= usable / 2;
    scope->bytes = scope->bytes - before + step;
    head->mark = TRAY_LIVE + (uint32_t)step;
    scope->cursor = (uintptr_t)block + step;
    return true;
}

/* In its scope, but for one that shall have pages of its own and does not begin one. */
static bool resize_large(struct large *large, size_t bytes) {
    size_t unit = large_unit(bytes);
    return large->block % unit == 0 && scope_resize_large(large, size_align(bytes, unit));
}

/* One that outlived its scope was relinked with its pages, which are not cut: as another thread's
 * it stays as it is, while it needs half of them. */
static bool resize_in_place(void *block, size_t bytes) {
    if (tray_holds((uintptr_t)block))
        return resize_small(block, bytes);
    struct large *large = large_of(block);
    if (bytes <= TRAY_MOST || bytes > RANGE_MOST)
        return false;
    if (large->heap == here.heap && large->scope)
        return resize_large(large, bytes);
    return bytes <= large->bytes && bytes >= large->bytes / 2;
}

/* jemalloc leaves errno alone where the size is above all of its classes. */
static inline void *resize_general(void *block, size_t bytes) {
    void *moved = je_realloc(block, bytes);
    if (!moved)
        errno = ENOMEM;
    return moved;
}

void *front_resize(void *block, size_t bytes, const void *caller) {
    if (!block)
        return front_alloc(bytes, caller);
    if (!is_scoped(block)) {
        struct scope *scope = here.scope;
        if (scope && bytes > FRONT_SMALL_MOST && bytes <= RANGE_MOST) /* as none could have */
            scope_note_growth(scope, je_malloc_usable_size(block), bytes);
        return resize_general(block, bytes ? bytes : 1);
    }
    int before = errno;
    if (resize_in_place(block, bytes)) {
        errno = before;
        return block;
    }
    size_t usable = front_usable(block);
    void *moved = front_alloc(bytes, caller);
    if (!moved)
        return NULL;
    memcpy(moved, block, size_smaller(usable, bytes));
    front_free(block);
    return moved;
}
