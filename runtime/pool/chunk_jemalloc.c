// SPDX-License-Identifier: Apache-2.0
/*
 * chunk_jemalloc.c - chunks from an arena of jemalloc that belongs to ebb alone (see chunk.h).
 *
 * The range is the arena's zone (base/zone.h). Decay is off: a chunk that comes back is purged at
 * once, since what should stay hot is kept by the pools. Refuses to run if the arena cannot be
 * made; the caller then sees exhausted memory.
 */
#include "pool/chunk.h"
#include "base/os.h"
#include "base/zone.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static struct zone zone;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static bool made;

static bool set_decay(const char *which) {
    char name[64];
    ssize_t at_once = 0;
    snprintf(name, sizeof name, "arena.%u.%s_decay_ms", zone.arena, which);
    return je_mallctl(name, NULL, NULL, &at_once, sizeof at_once) == 0;
}

static bool make_arena(void) {
    zone.base = range.base;
    zone.bytes = range.bytes;
    range.user.only_counts = true; /* the zone opens what it carves, and has something in it */
    return zone_open(&zone) && set_decay("dirty") && set_decay("muzzy");
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
    int flags = MALLOCX_ARENA(zone.arena) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(CHUNK_ALIGN);
    void *chunk = je_mallocx(bytes, flags);
    /* a thread that is ending gets what it asks for from another arena */
    if (chunk && !range_reserves((uintptr_t)chunk)) {
        je_dallocx(chunk, MALLOCX_TCACHE_NONE);
        return 0;
    }
    if (chunk && !range_open((uintptr_t)chunk + bytes - range.base)) {
        je_dallocx(chunk, flags);
        return 0;
    }
    return (uintptr_t)chunk;
}

void chunk_give(uintptr_t addr, size_t bytes) {
    (void)bytes; /* jemalloc knows */
    je_dallocx((void *)addr, MALLOCX_ARENA(zone.arena) | MALLOCX_TCACHE_NONE);
}

size_t chunk_bytes(void) {
    return atomic_load_explicit(&zone.carved, memory_order_relaxed);
}

void chunk_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&making);
}
