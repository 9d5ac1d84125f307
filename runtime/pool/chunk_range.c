// SPDX-License-Identifier: Apache-2.0
/*
 * chunk_range.c - chunks cut from the range itself (see chunk.h).
 *
 * One bit for each 2 MiB of the range says whether it is in a chunk; the lowest gap that is long
 * enough is taken. Pools ask for a GiB at a time, so the search is short and rare. Invariant: the
 * bits set are those of the chunks that were taken and not given back, and their number is
 * `taken`. Giving back cannot fail: pages that the system would not take stay resident until
 * they are used again.
 */
#include "base/check.h"
#include "base/os.h"
#include "pool/chunk.h"

#include <pthread.h>

#define WORD_BITS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t in_chunk[RANGE_MOST / CHUNK_ALIGN / WORD_BITS];
static size_t taken; /* in units of CHUNK_ALIGN */

static bool is_taken(size_t unit) {
    return in_chunk[unit / WORD_BITS] >> unit % WORD_BITS & 1;
}

static void turn(size_t from, size_t units) {
    for (size_t unit = from; unit < from + units; unit++)
        in_chunk[unit / WORD_BITS] ^= (uint64_t)1 << unit % WORD_BITS;
}

/* The lowest run of `units` free units; SIZE_MAX if there is none. */
static size_t find_gap(size_t units) {
    size_t total = range.bytes / CHUNK_ALIGN, free = 0;
    for (size_t unit = 0; unit < total;) {
        if (unit % WORD_BITS == 0 && in_chunk[unit / WORD_BITS] == UINT64_MAX) {
            free = 0;
            unit += WORD_BITS;
            continue;
        }
        free = is_taken(unit++) ? 0 : free + 1;
        if (free == units)
            return unit - units;
    }
    return SIZE_MAX;
}

uintptr_t chunk_take(size_t bytes) {
    CHECK(bytes && bytes % CHUNK_ALIGN == 0);
    if (!os.allow(OS_SLAB))
        return 0;
    size_t units = bytes / CHUNK_ALIGN;
    pthread_mutex_lock(&lock);
    size_t at = find_gap(units);
    bool has = at != SIZE_MAX && range_open((at + units) * CHUNK_ALIGN);
    if (has) {
        turn(at, units);
        taken += units;
    }
    pthread_mutex_unlock(&lock);
    return has ? range.base + at * CHUNK_ALIGN : 0;
}

void chunk_give(uintptr_t addr, size_t bytes) {
    size_t at = (addr - range.base) / CHUNK_ALIGN, units = bytes / CHUNK_ALIGN;
    os.give_back((void *)addr, bytes);
    pthread_mutex_lock(&lock);
    CHECK(is_taken(at) && is_taken(at + units - 1));
    turn(at, units);
    taken -= units;
    pthread_mutex_unlock(&lock);
}

size_t chunk_bytes(void) {
    pthread_mutex_lock(&lock);
    size_t bytes = taken * CHUNK_ALIGN;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void chunk_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&lock);
}
