// SPDX-License-Identifier: Apache-2.0
/*
 * reserved.c - opens in steps what is reserved (see reserved.h).
 *
 * Invariant: what lies below `open` can be touched. There is no lock: pages may be opened twice,
 * at once or one after the other, and are what they were.
 */
#include "base/reserved.h"

#include "base/check.h"
#include "base/os.h"
#include "base/size.h"

#define STEP ((size_t)2 << 20)

static void raise(atomic_size_t *open, size_t to) {
    size_t old = atomic_load_explicit(open, memory_order_relaxed);
    /* release: who reads how much is open may touch it */
    while (old < to && !atomic_compare_exchange_weak_explicit(open, &old, to, memory_order_release,
                                                              memory_order_relaxed))
        ;
}

bool reserved_make(struct reserved *array, size_t bytes) {
    array->at = os.reserve(bytes);
    array->bytes = array->at ? bytes : 0;
    return array->at;
}

bool reserved_open(struct reserved *array, size_t bytes) {
    size_t open = atomic_load_explicit(&array->open, memory_order_acquire); /* pairs with raise() */
    CHECK(bytes <= array->bytes);
    if (bytes <= open)
        return true;
    size_t to = size_smaller(size_align(bytes, STEP), array->bytes);
    uintptr_t first = size_align_down((uintptr_t)array->at + open, EBB_PAGE);
    uintptr_t end = size_align((uintptr_t)array->at + to, EBB_PAGE);
    if (os.open((void *)first, end - first) != 0)
        return false;
    raise(&array->open, to);
    return true;
}

void reserved_close(struct reserved *array, size_t bytes) {
    size_t open = atomic_load_explicit(&array->open, memory_order_relaxed);
    if (bytes >= open)
        return;
    atomic_store_explicit(&array->open, bytes, memory_order_relaxed);
    uintptr_t first = size_align((uintptr_t)array->at + bytes, EBB_PAGE);
    uintptr_t end = size_align((uintptr_t)array->at + open, EBB_PAGE);
    (void)os.forbid((void *)first, end - first); /* else it is open, and counted as closed */
}
