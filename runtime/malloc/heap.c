// SPDX-License-Identifier: Apache-2.0
/*
 * heap.c - heaps of threads (see heap.h).
 *
 * Invariant: a heap is on the list for ever; `is_taken` says, under the lock, that a thread has it.
 * Fails without effect where there is no memory for one.
 */
#include "malloc/heap.h"
#include "malloc/general.h"
#include "malloc/served.h"
#include "malloc/tender.h"

#include "base/error.h"
#include "base/os.h"
#include "step/site.h"

#include <pthread.h>
#include <string.h>

__thread struct here here;
struct heap_span heap_span;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ending;
static bool has_key;
static struct heap *heaps;
static ebb_pool *_Atomic(pool);

/* A server's memory is to follow its load: it keeps less than usual, and gives back faster. */
#define POOL_MARGIN 10   /* percent */
#define TRIM_NS 300000u  /* at the end of a scope */

/* ---- threads and forks ---- */

/* A thread ends: its scopes end, its heap is for the next one. */
static void leave(void *own) {
    struct heap *heap = own;
    while (heap->open)
        scope_end(heap->open);
    heap_drain(heap);
    heap_drop_stash(heap);
    here = (struct here){.scope = NULL};
    pthread_mutex_lock(&lock);
    heap->is_taken = false;
    pthread_mutex_unlock(&lock);
}

/*
 * Locks of this layer come after those of sites and pools (step/sites.c, pool/fork.c), but for that
 * of served sites, and all before jemalloc's. Handlers that were registered last run first.
 */
static void before_fork_outside(void) {
    served_fork(true);
    here.aside = here.scope; /* no handler of the program's is to need one of these locks */
    here.scope = NULL;
}

static void after_fork_outside(void) {
    here.scope = here.aside;
    served_fork(false);
}

static void before_fork(void) {
    tender_fork(true, false);
    if (GUARDED)
        guard_fork(true);
    pthread_mutex_lock(&lock);
    tray_fork(true);
}

static void after_fork(bool in_child) {
    tray_fork(false);
    pthread_mutex_unlock(&lock);
    if (GUARDED)
        guard_fork(false);
    tender_fork(false, in_child);
}

static void after_fork_in_parent(void) {
    after_fork(false);
}

static void after_fork_in_child(void) {
    for (struct heap *heap = heaps; heap; heap = heap->next)
        heap->is_lost = heap->is_lost || (heap->is_taken && heap != here.heap);
    after_fork(true);
}

static void watch_forks(void) {
    je_free(je_malloc(1)); /* so that jemalloc's handlers are there before */
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    sites_prepare();
    (void)pthread_atfork(before_fork_outside, after_fork_outside, after_fork_outside);
}

void heap_watch_forks(void) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    (void)pthread_once(&watched, watch_forks);
}

/* Both are reserved once; where one cannot be, its blocks are the general heap's. */
static void span_all(void) {
    uintptr_t base = UINTPTR_MAX, end = 0;
    if (tray_prepare()) {
        base = tray_zone.base;
        end = base + tray_zone.bytes;
    }
    ebb_pool *made = ebb_pool_create(
        EBB_POOL_OPTIONS(.name = "malloc", .keep_margin_percent = POOL_MARGIN));
    if (made) {
        made->trim_ns = TRIM_NS;
        atomic_store_explicit(&pool, made, memory_order_release);
        base = size_smaller(base, range.base);
        end = size_larger(end, range.base + range.bytes);
    }
    if (base >= end)
        return;
    atomic_store_explicit(&heap_span.base, base, memory_order_relaxed);
    atomic_store_explicit(&heap_span.bytes, end - base, memory_order_release);
}

static void prepare(void) {
    heap_watch_forks();
    error_mute();
    span_all();
    error_unmute();
    has_key = pthread_key_create(&ending, leave) == 0;
}

/* ---- heaps ---- */

static struct heap *find_left(void) {
    for (struct heap *heap = heaps; heap; heap = heap->next)
        if (!heap->is_taken && !heap->is_lost)
            return heap;
    return NULL;
}

static struct heap *take(void) {
    pthread_mutex_lock(&lock);
    struct heap *heap = find_left();
    if (!heap && (heap = je_calloc(1, sizeof *heap))) {
        heap->next = heaps;
        heaps = heap;
    }
    if (heap)
        heap->is_taken = true;
    pthread_mutex_unlock(&lock);
    return heap;
}

struct heap *heap_own(void) {
    if (here.heap)
        return here.heap;
    pthread_once(&once, prepare);
    struct heap *heap = has_key ? take() : NULL;
    if (!heap)
        return NULL;
    if (pthread_setspecific(ending, heap) != 0) {
        pthread_mutex_lock(&lock);
        heap->is_taken = false;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    here.heap = heap;
    tender_begin();
    return heap;
}

void heap_drain(struct heap *heap) {
    /* relaxed: who takes the list acquires it */
    if (!atomic_load_explicit(&heap->handed_in, memory_order_relaxed))
        return;
    struct large *large =
        atomic_exchange_explicit(&heap->handed_in, NULL, memory_order_acquire);
    while (large) {
        struct large *next = large->handed_next;
        scope_release_large(large);
        large = next;
    }
}

void heap_hand_in(struct large *large) {
    struct heap *heap = large->heap;
    struct large *first = atomic_load_explicit(&heap->handed_in, memory_order_relaxed);
    do
        large->handed_next = first;
    /* release: what this thread did with the block comes before the owner's use of its place */
    while (!atomic_compare_exchange_weak_explicit(&heap->handed_in, &first, large,
                                                  memory_order_release, memory_order_relaxed));
}

/* ---- empty trays ---- */

/* Guarded, an empty tray is forbidden until it is used again, and the oldest is used first. */
static bool open_tray(struct tray *tray) {
    return !GUARDED || os.cover(tray, TRAY_BYTES) == 0;
}

static struct tray *take_stashed(struct heap *heap) {
    struct tray *tray = heap->stash[GUARDED ? 0 : heap->stashed - 1];
    heap->stashed--;
    if (GUARDED)
        memmove(heap->stash, heap->stash + 1, heap->stashed * sizeof *heap->stash);
    return open_tray(tray) ? tray : NULL; /* else it is lost */
}

struct tray *heap_take_tray(struct heap *heap) {
    struct tray *tray = NULL;
    if (heap->stashed > (GUARDED ? HEAP_STASH - 1 : 0))
        tray = take_stashed(heap);
    if (!tray)
        return tray_take(heap);
    atomic_store_explicit(&tray->balance, 0, memory_order_relaxed);
    atomic_store_explicit(&tray->owner, heap, memory_order_relaxed);
    return tray;
}

void heap_give_tray(struct heap *heap, struct tray *tray) {
    if (GUARDED && heap->stashed == HEAP_STASH) {
        struct tray *oldest = take_stashed(heap);
        if (oldest)
            tray_give(oldest);
    }
    if (heap->stashed == HEAP_STASH) {
        tray_give(tray);
        return;
    }
    if (GUARDED)
        (void)os.forbid(tray, TRAY_BYTES);
    heap->stash[heap->stashed++] = tray;
}

void heap_drop_stash(struct heap *heap) {
    while (heap->stashed) {
        struct tray *tray = take_stashed(heap);
        if (tray)
            tray_give(tray);
    }
}

/* ---- regions ---- */

ebb_pool *heap_pool(void) {
    return atomic_load_explicit(&pool, memory_order_acquire);
}

ebb_region heap_keeper(struct heap *heap) {
    if (heap_pool() && !ebb_region_is_open(heap->keeper)) {
        error_mute();
        heap->keeper =
            ebb_region_open(EBB_REGION_OPTIONS(.name = "survivors", .pool = heap_pool()));
        error_unmute();
    }
    return heap->keeper;
}

void heap_tidy_left(void) {
    for (;;) {
        pthread_mutex_lock(&lock);
        struct heap *heap = heaps;
        while (heap && (heap->is_taken || heap->is_lost ||
                        !atomic_load_explicit(&heap->handed_in, memory_order_relaxed)))
            heap = heap->next;
        if (heap)
            heap->is_taken = true;
        pthread_mutex_unlock(&lock);
        if (!heap)
            return;
        heap_drain(heap);
        pthread_mutex_lock(&lock);
        heap->is_taken = false;
        pthread_mutex_unlock(&lock);
    }
}
