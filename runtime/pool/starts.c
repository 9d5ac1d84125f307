// SPDX-License-Identifier: Apache-2.0
/*
 * starts.c - stores of start maps (see starts.h).
 *
 * Invariant: a map is in at most one store. Batches beyond those a store keeps go to a list that
 * all stores share; when a pool gives pages back, so do they, all but the page with their link, and
 * are on another list then. Meanwhile each is on none, so that nobody waits for the system with the
 * lock.
 */
#include "pool/starts.h"
#include "base/os.h"

#include <pthread.h>

#define BATCH_UNITS 128 /* 64 KiB: maps for 508 KiB of windows */
#ifndef BATCHES_KEPT
#define BATCHES_KEPT 2 /* per store: 128 KiB */
#endif

struct batch {
    uint32_t next;
};

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;
static uint32_t shared;     /* batches without an owner */
static size_t shared_count; /* of these */
static uint32_t cold;       /* the same; they were given back */
static size_t going;        /* count of those that threads are giving back */

static struct batch *batch_at(uint32_t name) {
    return (struct batch *)(void *)starts_entries(name);
}

/* The list of free maps goes through their own first bytes. */
static uint32_t *link_of(uint32_t map) {
    return (uint32_t *)(void *)starts_entries(map);
}

static unsigned class_of(size_t window_bytes) {
    return (unsigned)__builtin_ctzll(window_bytes / STARTS_WINDOW);
}

/* ---- batches ---- */

static uint32_t pop(uint32_t *list) {
    uint32_t name = *list;
    if (name)
        *list = batch_at(name)->next;
    return name;
}

static void push(uint32_t *list, uint32_t name) {
    batch_at(name)->next = *list;
    *list = name;
}

static uint32_t pop_shared(void) {
    shared_count -= shared != 0;
    return pop(&shared);
}

/* From the first batch to the last of a list. */
static void share(uint32_t first, uint32_t last, size_t count) {
    batch_at(last)->next = shared;
    shared = first;
    shared_count += count;
}

static uint32_t acquire_batch(void) {
    if (!os.allow(OS_PIECES))
        return 0;
    pthread_mutex_lock(&sharing);
    uint32_t used = pop_shared(), name = used ? used : pop(&cold);
    pthread_mutex_unlock(&sharing);
    return name ? name : range_carve_starts(BATCH_UNITS);
}

static bool grow(struct starts_store *store) {
    uint32_t name = acquire_batch();
    if (!name)
        return false;
    batch_at(name)->next = 0;
    if (store->last)
        batch_at(store->last)->next = name;
    else
        store->first = name;
    store->last = name;
    if (++store->batches == BATCHES_KEPT)
        store->kept = name;
    return true;
}

static bool advance(struct starts_store *store) {
    uint32_t next = store->current ? batch_at(store->current)->next : store->first;
    if (!next) {
        if (!grow(store))
            return false;
        next = store->last;
    }
    store->current = next;
    store->cut = 1;
    return true;
}

/* ---- maps ---- */

uint32_t starts_take(struct starts_store *store, size_t window_bytes) {
    unsigned class = class_of(window_bytes);
    uint32_t units = 1u << class, map = store->free[class];
    if (map) {
        store->free[class] = *link_of(map);
        return map;
    }
    if ((!store->current || store->cut + units > BATCH_UNITS) && !advance(store))
        return 0;
    map = store->current + store->cut;
    store->cut += units;
    return map;
}

void starts_give(struct starts_store *store, uint32_t map, size_t window_bytes) {
    unsigned class = class_of(window_bytes);
    *link_of(map) = store->free[class];
    store->free[class] = map;
}

static void share_tail(struct starts_store *store) {
    pthread_mutex_lock(&sharing);
    share(batch_at(store->kept)->next, store->last, store->batches - BATCHES_KEPT);
    pthread_mutex_unlock(&sharing);
    store->last = store->kept;
    batch_at(store->last)->next = 0;
    store->batches = BATCHES_KEPT;
}

void starts_forget_all(struct starts_store *store) {
    for (unsigned class = 0; class < STARTS_CLASSES; class ++)
        store->free[class] = 0;
    store->current = store->cut = 0;
    if (store->batches > BATCHES_KEPT)
        share_tail(store);
}

void starts_give_up(struct starts_store *store) {
    if (store->last) {
        pthread_mutex_lock(&sharing);
        share(store->first, store->last, store->batches);
        pthread_mutex_unlock(&sharing);
    }
    *store = (struct starts_store){0};
}

/* False: the system refused. */
static bool cool(uint32_t name) {
    char *at = (char *)starts_entries(name);
    uintptr_t from = size_align((uintptr_t)at + RANGE_STARTS_UNIT, EBB_PAGE);
    uintptr_t to = size_align_down((uintptr_t)at + BATCH_UNITS * RANGE_STARTS_UNIT, EBB_PAGE);
    return os.give_back((void *)from, to - from) == 0;
}

/* With the lock, which others have meanwhile. False: the system refused. */
static bool cool_next(void) {
    uint32_t name = pop_shared();
    going++;
    pthread_mutex_unlock(&sharing);
    bool is_cold = cool(name);
    pthread_mutex_lock(&sharing);
    going--;
    if (is_cold)
        push(&cold, name);
    else
        share(name, name, 1);
    return is_cold;
}

/* No more than there were when it began: others may bring some all the time. */
bool starts_trim(uint64_t deadline_ns, size_t *most) {
    size_t bytes = (size_t)BATCH_UNITS * RANGE_STARTS_UNIT;
    pthread_mutex_lock(&sharing);
    for (size_t left = shared_count; left && shared && *most >= bytes &&
                                     !(deadline_ns && os.now_ns() >= deadline_ns) && cool_next();
         left--)
        *most -= bytes;
    bool is_done = !shared && !going;
    pthread_mutex_unlock(&sharing);
    return is_done;
}

void starts_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&sharing);
}
