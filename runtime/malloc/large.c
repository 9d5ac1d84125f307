// SPDX-License-Identifier: Apache-2.0
/*
 * large.c - the records of large blocks (see large.h).
 *
 * Records and the table of pages are reserved once and opened as they are used. Each heap has its
 * own list of unused records, so there is no lock. Fails where nothing can be reserved or opened,
 * or no record is left.
 */
#include "malloc/large.h"
#include "malloc/tray.h"

#include "base/reserved.h"
#include "base/size.h"

#include <pthread.h>

#define RECORDS_MOST ((size_t)1 << 24) /* large blocks of scopes at once, in all */
#define BATCH 64u

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct reserved record_array, page_array;
static struct large *records; /* number 0 is none */
static uint32_t record_count;
static _Atomic(uint32_t) carved = 1;

/* Of a page that has one: NULL where no large block ever was so high. */
static _Atomic(uint32_t) *page_entry(uintptr_t addr) {
    size_t offset = (addr - range.base) / EBB_PAGE * sizeof(_Atomic(uint32_t));
    /* acquire: pairs with reserved_open(), and so with prepare() */
    if (offset >= atomic_load_explicit(&page_array.open, memory_order_acquire))
        return NULL;
    return (_Atomic(uint32_t) *)(void *)(page_array.at + offset);
}

/* No more records than large blocks can lie in the range: where addresses are few, others need what
 * is left. */
static void prepare(void) {
    uint32_t count = (uint32_t)size_smaller(RECORDS_MOST, range.bytes / TRAY_MOST);
    if (reserved_make(&record_array, count * sizeof *records) &&
        reserved_make(&page_array, range.bytes / EBB_PAGE * sizeof(_Atomic(uint32_t))))
        record_count = count;
    records = (struct large *)(void *)record_array.at;
}

/* A batch of records that were never used becomes unused ones of the list. */
static void carve(struct large **unused) {
    pthread_once(&once, prepare);
    uint32_t name = atomic_load_explicit(&carved, memory_order_relaxed);
    do {
        if (record_count < BATCH || name > record_count - BATCH ||
            !reserved_open(&record_array, (name + BATCH) * sizeof *records))
            return;
    } while (!atomic_compare_exchange_weak_explicit(&carved, &name, name + BATCH,
                                                    memory_order_relaxed, memory_order_relaxed));
    for (uint32_t last = name + BATCH; name < last; name++) {
        records[name].name = name;
        records[name].next = *unused;
        *unused = &records[name];
    }
}

/* The table has an entry for each page below the end of the block. */
static bool reaches(uintptr_t end) {
    return reserved_open(&page_array, (end - range.base) / EBB_PAGE * sizeof(_Atomic(uint32_t)));
}

struct large *large_add(struct large **unused, void *block, size_t bytes) {
    if (!*unused)
        carve(unused);
    struct large *large = *unused;
    if (!large || !reaches(size_align((uintptr_t)block + bytes, EBB_PAGE)))
        return NULL;
    *unused = large->next;
    large->block = (uintptr_t)block;
    large->bytes = bytes;
    large->seen_ms = 0;
    large->gone = 0;
    atomic_store_explicit(&large->state, LARGE_LIVE, memory_order_relaxed);
    atomic_store_explicit(page_entry(large->block), large->name, memory_order_relaxed);
    return large;
}

struct large *large_find(uintptr_t addr) {
    const _Atomic(uint32_t) *entry = page_entry(addr);
    uint32_t name = entry ? atomic_load_explicit(entry, memory_order_relaxed) : 0;
    return name && records[name].block == addr ? &records[name] : NULL;
}

void large_remove(struct large **unused, struct large *large) {
    atomic_store_explicit(&large->state, LARGE_NONE, memory_order_relaxed);
    large->next = *unused;
    *unused = large;
}

void large_link(struct large **list, struct large *large) {
    large->prev = NULL;
    large->next = *list;
    if (*list)
        (*list)->prev = large;
    *list = large;
}

void large_unlink(struct large **list, struct large *large) {
    if (large->prev)
        large->prev->next = large->next;
    else
        *list = large->next;
    if (large->next)
        large->next->prev = large->prev;
}

/* ---- those that others have freed ---- */

bool large_none(const large_list *list) {
    /* relaxed: who takes the list acquires it */
    return !atomic_load_explicit(list, memory_order_relaxed);
}

struct large *large_take_all(large_list *list) {
    /* acquire: pairs with large_push(), so with all who pushed before */
    return atomic_exchange_explicit(list, NULL, memory_order_acquire);
}

void large_push(large_list *list, struct large *large) {
    struct large *first = atomic_load_explicit(list, memory_order_relaxed);
    do
        large->handed_next = first;
    /* release: what this thread did with the block comes before the owner's use of its place */
    while (!atomic_compare_exchange_weak_explicit(list, &first, large, memory_order_release,
                                                  memory_order_relaxed));
}
