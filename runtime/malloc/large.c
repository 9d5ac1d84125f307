// SPDX-License-Identifier: Apache-2.0
/*
 * large.c - the records of large blocks (see large.h).
 *
 * Records and the table of pages are reserved once and cost memory where they are touched. Each
 * heap has its own list of unused records, so there is no lock. Fails where nothing can be
 * reserved, or no record is left.
 */
#include "malloc/large.h"
#include "malloc/tray.h"

#include "base/os.h"
#include "base/size.h"

#include <pthread.h>

#define RECORDS_MOST ((size_t)1 << 24) /* large blocks of scopes at once, in all */
#define BATCH 64u

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct large *records; /* number 0 is none */
static uint32_t record_count;
static _Atomic(uint32_t) *_Atomic(large_at);
static _Atomic(uint32_t) carved = 1;

static _Atomic(uint32_t) *page_entry(uintptr_t addr) {
    /* acquire: pairs with prepare() */
    _Atomic(uint32_t) *table = atomic_load_explicit(&large_at, memory_order_acquire);
    return table ? &table[(addr - range.base) / EBB_PAGE] : NULL;
}

/* No more records than large blocks can lie in the range: where addresses are few, others need what
 * is left. */
static void prepare(void) {
    record_count = (uint32_t)size_smaller(RECORDS_MOST, range.bytes / TRAY_MOST);
    records = os.reserve(record_count * sizeof *records);
    _Atomic(uint32_t) *table = os.reserve(range.bytes / EBB_PAGE * sizeof *table);
    if (records && table)
        atomic_store_explicit(&large_at, table, memory_order_release);
}

/* A batch of records that were never used becomes unused ones of the list. */
static void carve(struct large **unused) {
    pthread_once(&once, prepare);
    if (!atomic_load_explicit(&large_at, memory_order_acquire) ||
        atomic_load_explicit(&carved, memory_order_relaxed) > record_count - 2 * BATCH)
        return;
    uint32_t name = atomic_fetch_add_explicit(&carved, BATCH, memory_order_relaxed);
    if (name > record_count - BATCH)
        return;
    for (uint32_t last = name + BATCH; name < last; name++) {
        records[name].name = name;
        records[name].next = *unused;
        *unused = &records[name];
    }
}

struct large *large_add(struct large **unused, void *block, size_t bytes) {
    if (!*unused)
        carve(unused);
    struct large *large = *unused;
    if (!large)
        return NULL;
    *unused = large->next;
    large->block = (uintptr_t)block;
    large->bytes = bytes;
    atomic_store_explicit(&large->state, LARGE_LIVE, memory_order_relaxed);
    atomic_store_explicit(page_entry(large->block), large->name, memory_order_relaxed);
    return large;
}

struct large *large_find(uintptr_t addr) {
    const _Atomic(uint32_t) *entry = page_entry(addr);
    uint32_t name = entry ? atomic_load_explicit(entry, memory_order_relaxed) : 0;
    struct large *large = &records[name];
    return name && large->block == addr ? large : NULL;
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
