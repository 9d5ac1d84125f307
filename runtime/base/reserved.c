// SPDX-License-Identifier: Apache-2.0
/*
 * reserved.c - opens in steps what is reserved (see reserved.h).
 *
 * Invariant: what lies below `open` can be touched, and is not opened again, which would lose what
 * is there: one thread at a time opens.
 */
#include "base/reserved.h"

#include "base/check.h"
#include "base/os.h"
#include "base/size.h"

#include <pthread.h>

#define STEP ((size_t)2 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool reserved_make(struct reserved *array, size_t bytes) {
    array->at = os.reserve(bytes);
    array->bytes = array->at ? bytes : 0;
    return array->at;
}

static bool open_more(struct reserved *array, size_t bytes) {
    size_t open = atomic_load_explicit(&array->open, memory_order_relaxed); /* the lock orders it */
    if (bytes <= open)
        return true;
    size_t to = size_smaller(size_align(bytes, STEP), array->bytes);
    uintptr_t first = size_align((uintptr_t)array->at + open, EBB_PAGE);
    uintptr_t end = size_align((uintptr_t)array->at + to, EBB_PAGE);
    if (!open) /* it may begin within a page */
        first = size_align_down((uintptr_t)array->at, EBB_PAGE);
    if (!array->only_counts && os.open((void *)first, end - first) != 0)
        return false;
    /* release: who reads how much is open may touch it */
    atomic_store_explicit(&array->open, to, memory_order_release);
    return true;
}

bool reserved_open(struct reserved *array, size_t bytes) {
    CHECK(bytes <= array->bytes);
    /* acquire: pairs with the release above */
    if (bytes <= atomic_load_explicit(&array->open, memory_order_acquire))
        return true;
    pthread_mutex_lock(&lock);
    bool result = open_more(array, bytes);
    pthread_mutex_unlock(&lock);
    return result;
}

void reserved_close(struct reserved *array, size_t bytes) {
    size_t open = atomic_load_explicit(&array->open, memory_order_relaxed);
    if (bytes >= open)
        return;
    atomic_store_explicit(&array->open, bytes, memory_order_relaxed);
    uintptr_t first = size_align((uintptr_t)array->at + bytes, EBB_PAGE);
    uintptr_t end = size_align((uintptr_t)array->at + open, EBB_PAGE);
    if (!array->only_counts)
        (void)os.close((void *)first, end - first); /* else it is open, and counted as closed */
}

void reserved_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&lock);
}
