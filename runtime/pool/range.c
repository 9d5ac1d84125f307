// SPDX-License-Identifier: Apache-2.0
/*
 * range.c - reserves the range and hands out what was never used before.
 *
 * Invariant: what is carved stays carved for the life of the process; jemalloc and the free
 * lists of the owners reuse it. Refuses to go on without at least 1 GiB of addresses. Smaller
 * limits on address space (ulimit -v, strict overcommit) get a smaller range.
 */
#include "pool/range.h"
#include "base/error.h"
#include "base/os.h"

#include <pthread.h>
#include <stdatomic.h>

#define LARGEST ((size_t)1 << 40)
#define SMALLEST ((size_t)1 << 30)
#define POOLS 1024

struct range range;

static pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ready;
static atomic_size_t carved, carved_starts, carved_pieces, carved_regions, carved_pools;

static size_t pieces_bytes(size_t user) {
    return size_smaller(user / 16, (size_t)32 << 30);
}

static size_t regions_bytes(size_t user) {
    size_t slots = size_smaller(user / 256 / RANGE_REGION_BYTES, (size_t)1 << PIECE_SLOT_BITS);
    return slots * RANGE_REGION_BYTES;
}

static size_t total_bytes(size_t user) {
    return user + user / 256 + user / 1024 + user / RANGE_HUGE * 4 + user / 8 + user / 2 +
           pieces_bytes(user) + user / 256 + POOLS * RANGE_POOL_BYTES + RANGE_HUGE;
}

static void lay_out(char *at, size_t user) {
    at = (char *)size_align((uintptr_t)at, RANGE_HUGE);
    range.base = (uintptr_t)at;
    range.block_at = (uint32_t *)(void *)(at += user);
    range.run_at = (uint32_t *)(void *)(at += user / 256);
    range.run_at_huge = (uint32_t *)(void *)(at += user / 1024);
    range.starts = at += user / RANGE_HUGE * 4;
    range.starts_bytes = user / 8;
    range.sites = (uintptr_t *)(void *)(at += user / 8);
    range.pieces = at += user / 2;
    range.pieces_bytes = pieces_bytes(user);
    range.regions = at += range.pieces_bytes;
    range.region_count = regions_bytes(user) / RANGE_REGION_BYTES;
    range.pools = at + user / 256;
    range.pool_count = POOLS;
    range.bytes = user;
}

static int reserve(void) {
    for (size_t user = LARGEST; user >= SMALLEST; user /= 4) {
        char *at = os.allow(OS_RANGE) ? os.reserve(total_bytes(user)) : NULL;
        if (at) {
            lay_out(at, user);
            /* the first entries are the names of nothing: they stay unused */
            atomic_store_explicit(&carved_starts, RANGE_STARTS_UNIT, memory_order_relaxed);
            atomic_store_explicit(&carved_pieces, PIECES_BATCH_BYTES, memory_order_relaxed);
            return 0;
        }
    }
    return error_set(EBB_E_MEMORY, "no address space: %zu bytes could not be reserved",
                     total_bytes(SMALLEST));
}

int range_prepare(void) {
    /* acquire: pairs with the release below, so that the tables' addresses are seen */
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return 0;
    pthread_mutex_lock(&preparing);
    int result = atomic_load_explicit(&ready, memory_order_relaxed) ? 0 : reserve();
    if (result == 0)
        atomic_store_explicit(&ready, true, memory_order_release);
    pthread_mutex_unlock(&preparing);
    return result;
}

uintptr_t range_carve(size_t bytes, size_t align) {
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

size_t range_carved_bytes(void) {
    return atomic_load_explicit(&carved, memory_order_relaxed);
}

/* Takes `bytes` of an array that ends at `limit`; SIZE_MAX if there are not that many left. */
static size_t carve_record(atomic_size_t *used, size_t bytes, size_t limit) {
    size_t old = atomic_load_explicit(used, memory_order_relaxed);
    do {
        if (limit - old < bytes)
            return SIZE_MAX;
    } while (!atomic_compare_exchange_weak_explicit(used, &old, old + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return old;
}

struct ebb_piece *range_carve_pieces(void) {
    size_t at = carve_record(&carved_pieces, PIECES_BATCH_BYTES, range.pieces_bytes);
    return at == SIZE_MAX ? NULL : (struct ebb_piece *)(void *)(range.pieces + at);
}

uint32_t range_carve_starts(uint32_t units) {
    size_t at = carve_record(&carved_starts, units * RANGE_STARTS_UNIT, range.starts_bytes);
    return at == SIZE_MAX ? 0 : (uint32_t)(at / RANGE_STARTS_UNIT);
}

void *range_carve_region(void) {
    size_t at = carve_record(&carved_regions, RANGE_REGION_BYTES,
                             range.region_count * RANGE_REGION_BYTES);
    return at == SIZE_MAX ? NULL : range.regions + at;
}

void *range_carve_pool(void) {
    size_t at = carve_record(&carved_pools, RANGE_POOL_BYTES, range.pool_count * RANGE_POOL_BYTES);
    return at == SIZE_MAX ? NULL : range.pools + at;
}

void range_name_block(const struct ebb_piece *piece) {
    range.block_at[(piece->addr - range.base) / RANGE_SLOT] = range_piece_name(piece);
}

void range_name_window(const struct ebb_piece *piece) {
    uint32_t *entry = &range.block_at[(piece->addr - range.base) / RANGE_SLOT];
    for (size_t slot = 0; slot < piece->bytes / RANGE_SLOT; slot++)
        entry[slot] = range_piece_name(piece);
}

static void fill(uint32_t *entries, size_t from, size_t to, uint32_t name) {
    for (size_t at = from; at < to; at++)
        entries[at] = name;
}

void range_name_pages(const struct ebb_piece *run, uintptr_t addr, size_t bytes) {
    uintptr_t from = addr - range.base, to = from + bytes;
    uintptr_t huge_from = size_align(from, RANGE_HUGE), huge_to = size_align_down(to, RANGE_HUGE);
    uint32_t name = range_piece_name(run);
    if (huge_from >= huge_to)
        huge_from = huge_to = to;
    fill(range.run_at, from / EBB_PAGE, huge_from / EBB_PAGE, name);
    fill(range.run_at_huge, huge_from / RANGE_HUGE, huge_to / RANGE_HUGE, name);
    fill(range.run_at, huge_to / EBB_PAGE, to / EBB_PAGE, name);
}

/* `table` has one byte for each `share` bytes of user addresses. */
static void forget(void *table, size_t share, uintptr_t addr, size_t bytes) {
    uintptr_t from = (uintptr_t)table + (addr - range.base) / share;
    uintptr_t to = from + bytes / share;
    from = size_align(from, EBB_PAGE);
    to = size_align_down(to, EBB_PAGE);
    if (from < to)
        os.give_back((void *)from, to - from);
}

void range_forget(uintptr_t addr, size_t bytes) {
    forget(range.sites, RANGE_GRANULE / sizeof *range.sites, addr, bytes);
    forget(range.block_at, RANGE_SLOT / sizeof *range.block_at, addr, bytes);
}
