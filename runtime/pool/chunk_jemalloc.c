// SPDX-License-Identifier: Apache-2.0
/*
 * chunk_jemalloc.c - chunks from an arena of jemalloc that belongs to ebb alone (see chunk.h).
 *
 * jemalloc splits, merges and reuses chunks; its extent hooks carve from the range and give pages
 * back, they never unmap. Invariant: every address that the arena hands out lies in the range,
 * because the only function that makes addresses is the alloc hook below. Decay is off: a chunk
 * that comes back is purged at once, since what should stay hot is kept by the pools. Refuses to
 * run if the arena cannot be made; the caller then sees exhausted memory.
 */
#include "pool/chunk.h"
#include "base/os.h"

/* The names of our private copy, see jemalloc.sh. */
#define mallocx ebb_jemalloc_mallocx
#define dallocx ebb_jemalloc_dallocx
#define mallctl ebb_jemalloc_mallctl
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_size_t carved; /* bytes of the range that the arena has */

/* Next never used addresses, aligned; 0 when the range is used up. */
static uintptr_t carve(size_t bytes, size_t align) {
    /* relaxed: only distinct addresses matter; contents are zero pages of the system */
    size_t old = atomic_load_explicit(&carved, memory_order_relaxed);
    size_t start, end;
    do {
        if (!size_round_up(old, align, &start) || !size_add(start, bytes, &end) ||
            end > range.bytes)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&carved, &old, end, memory_order_relaxed,
                                                    memory_order_relaxed));
    return range.base + start;
}

static void *hook_alloc(extent_hooks_t *hooks, void *at, size_t bytes, size_t align, bool *zero,
                        bool *commit, unsigned arena) {
    (void)hooks, (void)arena;
    if (at)
        return NULL; /* growing in place at a wished address is not supported */
    uintptr_t addr = carve(bytes, align);
    if (!addr)
        return NULL;
    *zero = true;
    *commit = true;
    return (void *)addr;
}

/* true: refused; jemalloc then keeps the addresses for reuse. */
static bool hook_dalloc(extent_hooks_t *hooks, void *addr, size_t bytes, bool committed,
                        unsigned arena) {
    (void)hooks, (void)addr, (void)bytes, (void)committed, (void)arena;
    return true;
}

static bool hook_purge(extent_hooks_t *hooks, void *addr, size_t bytes, size_t offset,
                       size_t length, unsigned arena) {
    (void)hooks, (void)bytes, (void)arena;
    return os.give_back((char *)addr + offset, length) != 0;
}

static bool hook_split(extent_hooks_t *hooks, void *addr, size_t bytes, size_t left, size_t right,
                       bool committed, unsigned arena) {
    (void)hooks, (void)addr, (void)bytes, (void)left, (void)right, (void)committed, (void)arena;
    return false;
}

static bool hook_merge(extent_hooks_t *hooks, void *left, size_t left_bytes, void *right,
                       size_t right_bytes, bool committed, unsigned arena) {
    (void)hooks, (void)left, (void)left_bytes, (void)right, (void)right_bytes;
    (void)committed, (void)arena;
    return false;
}

static extent_hooks_t hooks = {
    .alloc = hook_alloc,
    .dalloc = hook_dalloc,
    .purge_forced = hook_purge,
    .split = hook_split,
    .merge = hook_merge,
};

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static bool made;
static unsigned arena_index;

static bool set_decay(const char *which) {
    char name[64];
    ssize_t at_once = 0;
    snprintf(name, sizeof name, "arena.%u.%s_decay_ms", arena_index, which);
    return mallctl(name, NULL, NULL, &at_once, sizeof at_once) == 0;
}

static bool make_arena(void) {
    extent_hooks_t *ours = &hooks;
    size_t length = sizeof arena_index;
    return mallctl("arenas.create", &arena_index, &length, &ours, sizeof ours) == 0 &&
           set_decay("dirty") && set_decay("muzzy");
}

static bool arena_ready(void) {
    pthread_mutex_lock(&making);
    if (!made)
        made = make_arena();
    bool ready = made;
    pthread_mutex_unlock(&making);
    return ready;
}

uintptr_t chunk_take(size_t bytes) {
    if (!os.allow(OS_SLAB) || !arena_ready())
        return 0;
    int flags = MALLOCX_ARENA(arena_index) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(CHUNK_ALIGN);
    return (uintptr_t)mallocx(bytes, flags);
}

void chunk_give(uintptr_t addr, size_t bytes) {
    (void)bytes; /* jemalloc knows */
    dallocx((void *)addr, MALLOCX_ARENA(arena_index) | MALLOCX_TCACHE_NONE);
}

size_t chunk_bytes(void) {
    return atomic_load_explicit(&carved, memory_order_relaxed);
}

void chunk_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&making);
}
