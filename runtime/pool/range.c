// SPDX-License-Identifier: Apache-2.0
/*
 * range.c - reserves the range and hands out records that were never used before.
 *
 * Invariant: what is carved stays carved for the life of the process; the free lists of the
 * owners reuse it. Refuses to go on without at least 1 GiB of addresses, and where the system has
 * pages of other than EBB_PAGE bytes. Smaller limits on address space (ulimit -v) get a smaller
 * range.
 */
#include "pool/range.h"
#include "base/error.h"
#include "base/module.h"
#include "base/os.h"
#include "base/reserved.h"
#include "pool/fork.h"

#include <pthread.h>
#include <stdatomic.h>

#define SMALLEST ((size_t)1 << 30)
#define POOLS 1024

/*
 * Processors guess by the lower bits of an address where in their cache it is. Arrays that all
 * began at multiples of large powers of two would look alike: the first block, its entries and the
 * head of its region would displace each other at every access. Loads also wait for stores whose
 * place in a page is the same, and windows begin with a page: slots of regions begin within one.
 */
#define TABLES 10
#define STAGGER (64 * EBB_PAGE)
#define REGIONS_SHIFT (EBB_PAGE / 2)

struct range range;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* the range, or more of it */
static atomic_bool ready;

/* What grows: tables that describe user addresses, with them, and records, as they are carved. */
static struct {
    struct reserved block_at, run_at, run_at_huge, sites, notes, block_notes;
    struct reserved starts, pieces, pools;
} array;

static atomic_size_t carved_starts, carved_pieces, carved_regions, carved_pools;

static size_t pieces_bytes(size_t user) {
    return size_smaller(user / 16, (size_t)32 << 30);
}

static size_t regions_bytes(size_t user) {
    size_t slots = size_smaller(user / 256 / RANGE_REGION_BYTES, (size_t)1 << PIECE_SLOT_BITS);
    return slots * RANGE_REGION_BYTES;
}

static size_t total_bytes(size_t user) {
    return user + user / 256 + user / 1024 + user / RANGE_HUGE * 4 + user / 8 + user / 2 +
           user / 4 + user / 256 + pieces_bytes(user) + user / 256 + POOLS * RANGE_POOL_BYTES +
           TABLES * STAGGER + REGIONS_SHIFT + RANGE_HUGE;
}

static char *lay(struct reserved *reserved, char *at, size_t bytes) {
    reserved->at = at;
    reserved->bytes = bytes;
    atomic_store_explicit(&reserved->open, 0, memory_order_relaxed);
    return at + bytes + STAGGER;
}

static void lay_out(char *at, size_t user) {
    at = lay(&range.user, (char *)size_align((uintptr_t)at, RANGE_HUGE), user);
    at = lay(&array.block_at, at, user / RANGE_SLOT * sizeof *range.block_at);
    at = lay(&array.run_at, at, user / EBB_PAGE * sizeof *range.run_at);
    at = lay(&array.run_at_huge, at, user / RANGE_HUGE * sizeof *range.run_at_huge);
    at = lay(&array.starts, at, user / 8);
    at = lay(&array.sites, at, user / RANGE_GRANULE * sizeof *range.sites);
    at = lay(&array.notes, at, user / RANGE_GRANULE * sizeof *range.notes);
    at = lay(&array.block_notes, at, user / RANGE_SLOT * sizeof *range.block_notes);
    at = lay(&array.pieces, at, pieces_bytes(user));
    at = lay(&range.regions, at + REGIONS_SHIFT, regions_bytes(user));
    (void)lay(&array.pools, at, POOLS * RANGE_POOL_BYTES);
}

static void publish(void) {
    range.base = (uintptr_t)range.user.at;
    range.block_at = (uint32_t *)(void *)array.block_at.at;
    range.run_at = (uint32_t *)(void *)array.run_at.at;
    range.run_at_huge = (uint32_t *)(void *)array.run_at_huge.at;
    range.starts = array.starts.at;
    range.sites = (uintptr_t *)(void *)array.sites.at;
    range.notes = (uint32_t *)(void *)array.notes.at;
    range.block_notes = (uint32_t *)(void *)array.block_notes.at;
    range.pieces = array.pieces.at;
    range.pieces_bytes = array.pieces.bytes;
    range.region_count = range.regions.bytes / RANGE_REGION_BYTES;
    range.pool_count = POOLS;
    range.bytes = range.user.bytes;
}

/* What an entry that names nothing is followed to. */
static bool open_nothing(void) {
    return reserved_open(&array.pieces, PIECES_BATCH_BYTES) &&
           reserved_open(&range.regions, RANGE_REGION_BYTES);
}

static int reserve(void) {
    if (os.page_bytes() != EBB_PAGE) /* what is given back would take others' bytes along */
        return error_set(EBB_E_MEMORY, "pages of %zu bytes: ebb is written for %zu",
                         os.page_bytes(), EBB_PAGE);
    for (size_t user = RANGE_MOST; user >= SMALLEST; user /= 4) {
        char *at = os.allow(OS_RANGE) ? os.reserve(total_bytes(user)) : NULL;
        if (at) {
            lay_out(at, user);
            publish();
            if (!open_nothing()) {
                os.release(at, total_bytes(user));
                range.base = range.bytes = 0; /* others may have these addresses next */
                break;
            }
            /* the first entries are the names of nothing: they stay unused */
            atomic_store_explicit(&carved_starts, RANGE_STARTS_UNIT, memory_order_relaxed);
            atomic_store_explicit(&carved_pieces, PIECES_BATCH_BYTES, memory_order_relaxed);
            return 0;
        }
    }
    return error_set(EBB_E_MEMORY, "no address space: %zu bytes could not be reserved or opened",
                     total_bytes(SMALLEST));
}

int range_prepare(void) {
    /* acquire: pairs with the release below, so that the tables' addresses are seen */
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return 0;
    module_keep_own(); /* what is reserved, and those that call back, are there for good */
    fork_prepare(); /* before anything of pools is locked */
    pthread_mutex_lock(&opening);
    int result = atomic_load_explicit(&ready, memory_order_relaxed) ? 0 : reserve();
    if (result == 0)
        atomic_store_explicit(&ready, true, memory_order_release);
    pthread_mutex_unlock(&opening);
    return result;
}

void range_fork(bool before) {
    (before ? pthread_mutex_lock : pthread_mutex_unlock)(&opening);
}

/* What describes the addresses below `end`, and they themselves. False: it is as it was. */
static bool open_all(size_t end) {
    struct reserved *tables[] = {&array.block_at, &array.run_at, &array.run_at_huge, &array.sites,
                                 &array.notes, &array.block_notes, &range.user};
    size_t count = sizeof tables / sizeof *tables, was[sizeof tables / sizeof *tables];
    for (size_t i = 0; i < count; i++) { /* addresses come last: then they may be looked up */
        was[i] = atomic_load_explicit(&tables[i]->open, memory_order_relaxed);
        if (reserved_open(tables[i], end / (range.bytes / tables[i]->bytes)))
            continue;
        for (; i > 0; i--)
            reserved_close(tables[i - 1], was[i - 1]);
        return false;
    }
    return true;
}

bool range_open(size_t end) {
    pthread_mutex_lock(&opening);
    bool result = open_all(end);
    pthread_mutex_unlock(&opening);
    return result;
}

/* Takes `bytes` of an array of records; SIZE_MAX if there are not that many left, or no memory. */
static size_t carve(struct reserved *records, atomic_size_t *used, size_t bytes) {
    size_t old = atomic_load_explicit(used, memory_order_relaxed);
    do {
        if (records->bytes - old < bytes || !reserved_open(records, old + bytes))
            return SIZE_MAX;
    } while (!atomic_compare_exchange_weak_explicit(used, &old, old + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return old;
}

struct ebb_piece *range_carve_pieces(void) {
    size_t at = carve(&array.pieces, &carved_pieces, PIECES_BATCH_BYTES);
    return at == SIZE_MAX ? NULL : (struct ebb_piece *)(void *)(range.pieces + at);
}

uint32_t range_carve_starts(uint32_t units) {
    size_t at = carve(&array.starts, &carved_starts, units * RANGE_STARTS_UNIT);
    return at == SIZE_MAX ? 0 : (uint32_t)(at / RANGE_STARTS_UNIT);
}

void *range_carve_region(void) {
    size_t at = carve(&range.regions, &carved_regions, RANGE_REGION_BYTES);
    return at == SIZE_MAX ? NULL : range.regions.at + at;
}

void *range_carve_pool(void) {
    size_t at = carve(&array.pools, &carved_pools, RANGE_POOL_BYTES);
    return at == SIZE_MAX ? NULL : array.pools.at + at;
}

/* relaxed: it is for messages, and others may carve meanwhile */
size_t range_regions_left(void) {
    size_t carved = atomic_load_explicit(&carved_regions, memory_order_relaxed);
    return (range.regions.bytes - carved) / RANGE_REGION_BYTES;
}

size_t range_pools_left(void) {
    size_t carved = atomic_load_explicit(&carved_pools, memory_order_relaxed);
    return (array.pools.bytes - carved) / RANGE_POOL_BYTES;
}

void range_name_window(const struct ebb_piece *piece) {
    uint32_t *entry = &range.block_at[(piece->addr - range.base) / RANGE_SLOT];
    for (size_t slot = 0; slot < piece->bytes / RANGE_SLOT; slot++)
        entry[slot] = range_piece_name(piece);
}

/* One by one, as others read them. relaxed: see below. */
static void fill(uint32_t *entries, size_t from, size_t to, uint32_t name) {
    for (size_t at = from; at < to; at++)
        __atomic_store_n(&entries[at], name, __ATOMIC_RELAXED);
}

void range_name_pages(const struct ebb_piece *run, uintptr_t addr, size_t bytes) {
    uintptr_t from = addr - range.base, to = from + bytes;
    uintptr_t huge_from = size_align(from, RANGE_HUGE), huge_to = size_align_down(to, RANGE_HUGE);
    uint32_t name = range_piece_name(run);
    atomic_thread_fence(memory_order_release); /* who follows the name sees the run as it is now */
    if (huge_from >= huge_to)
        huge_from = huge_to = to;
    fill(range.run_at, from / EBB_PAGE, huge_from / EBB_PAGE, name);
    fill(range.run_at_huge, huge_from / RANGE_HUGE, huge_to / RANGE_HUGE, name);
    fill(range.run_at, huge_to / EBB_PAGE, to / EBB_PAGE, name);
}

/* `table` has one byte for each `share` bytes of user addresses: so much describes a page of it. */
static void forget(void *table, size_t share, const uintptr_t *part, const uintptr_t *free) {
    size_t stride = share * EBB_PAGE;
    uintptr_t from = size_larger(size_align_down(part[0], stride), size_align(free[0], stride));
    uintptr_t to = size_smaller(size_align(part[1], stride), size_align_down(free[1], stride));
    if (from < to)
        os.give_back((char *)table + from / share, (to - from) / share);
}

void range_forget_notes(uintptr_t addr, size_t bytes) {
    const uintptr_t part[] = {addr - range.base, addr - range.base + bytes};
    forget(range.notes, RANGE_GRANULE / sizeof *range.notes, part, part);
}

void range_forget(uintptr_t addr, size_t bytes, uintptr_t free_from, uintptr_t free_to) {
    const uintptr_t part[] = {addr - range.base, addr - range.base + bytes};
    const uintptr_t free[] = {free_from - range.base, free_to - range.base};
    forget(range.sites, RANGE_GRANULE / sizeof *range.sites, part, free);
    forget(range.notes, RANGE_GRANULE / sizeof *range.notes, part, free);
    forget(range.block_notes, RANGE_SLOT / sizeof *range.block_notes, part, free);
    forget(range.block_at, RANGE_SLOT / sizeof *range.block_at, part, free);
    forget(range.run_at, EBB_PAGE / sizeof *range.run_at, part, free);
}
