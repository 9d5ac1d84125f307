// SPDX-License-Identifier: Apache-2.0
/*
 * range.h - the one range of addresses of the process, and the tables beside it.
 *
 *     base                                    base + bytes
 *      | user addresses: chunks (see chunk.h)      |
 *      | block_at    4 bytes a KiB   piece of the block or window that starts in / covers it
 *      | run_at      4 bytes a page  piece of the run that covers it, and
 *      | run_at_huge 4 bytes a 2 MiB for the whole 2 MiB inside a run, so that naming a run of
 *      |                             gigabytes is short
 *      | starts      start maps of windows, cut into units (see starts.h)
 *      | sites       8 bytes a granule: who allocated it (only regions with `sites`); of blocks in
 *      |             shared memory that other threads released, the next one (region/remote.c)
 *      | notes       4 bytes a granule: number of a small block in the record of a step
 *      | block_notes 4 bytes a KiB: the same of a large block that starts there
 *      | pieces | region slots | pools                 records, never unmapped
 *
 * Everything is reserved at once, is opened from its start as far as it is ever used, and costs
 * memory where it is touched. One comparison tells whether a pointer may be looked up, one look-up
 * what it is. Entries are hints, verified against the piece they name: closing a region need not
 * clear them.
 *
 * Invariant: two blocks of at least 1 KiB never start in the same KiB, and windows cover whole
 * KiB, so block_at has one entry for each.
 */
#ifndef EBB_POOL_RANGE_H
#define EBB_POOL_RANGE_H

#include "base/hidden.h"
#include "base/reserved.h"
#include "base/size.h"
#include "pool/piece.h"

#include <stdatomic.h>

#define RANGE_MOST ((size_t)1 << 40) /* of user addresses */
#define RANGE_SLOT ((size_t)1024)
#define RANGE_HUGE ((size_t)2 << 20)
#define RANGE_GRANULE ((size_t)16)
#define RANGE_STARTS_UNIT ((size_t)512) /* of start maps; unit 0 is the name of nothing */
#define RANGE_REGION_BYTES ((size_t)4608) /* stride of region slots */
#define RANGE_POOL_BYTES ((size_t)8192)   /* stride of pools */

struct range {
    uintptr_t base;
    size_t bytes;
    struct reserved user;    /* open up to the end of all chunks so far, with what describes it */
    struct reserved regions; /* open up to the last slot that was used, and a little more */
    uint32_t *block_at;
    uint32_t *run_at;
    uint32_t *run_at_huge;
    char *starts;
    uintptr_t *sites;
    uint32_t *notes;
    uint32_t *block_notes;
    char *pieces;
    size_t pieces_bytes, region_count, pool_count;
};

extern HIDDEN struct range range;

/* Reserves the range on first use. 0 or EBB_E_MEMORY. Any thread. */
int range_prepare(void);

/* Takes the lock of all that is opened before a fork, and gives it back after. */
void range_fork(bool before);

/* Next never used record of each kind; NULL when used up, or the system has no memory for it. Any
 * thread. */
struct ebb_piece *range_carve_pieces(void);
void *range_carve_region(void);
uint32_t range_carve_starts(uint32_t units); /* name of the first unit; 0 when used up */
void *range_carve_pool(void);

/* How many records of the kind can still be carved. Any thread. */
size_t range_regions_left(void);
size_t range_pools_left(void);

/* Opens the addresses below `end` (an offset) and what describes them. False: no memory, nothing
 * has changed. Any thread. */
bool range_open(size_t end);

/* True if the address may be looked up, as all that ebb hands out may. relaxed: whoever has a block
 * of ebb's got it from a thread that saw its chunk opened. */
static inline bool range_holds(uintptr_t addr) {
    return addr - range.base < atomic_load_explicit(&range.user.open, memory_order_relaxed);
}

/* True if the address is of the range, open or not: nobody else's. */
static inline bool range_reserves(uintptr_t addr) {
    return addr - range.base < range.bytes;
}

static inline uint32_t range_piece_name(const struct ebb_piece *piece) {
    return (uint32_t)((size_t)((const char *)piece - range.pieces) / 16);
}

static inline struct ebb_piece *range_piece(uint32_t name) {
    return (struct ebb_piece *)(void *)(range.pieces + (size_t)name * 16);
}

/* The piece of a name, or NULL for the name of nothing. */
static inline struct ebb_piece *range_piece_or_null(uint32_t name) {
    return name ? range_piece(name) : NULL;
}

static inline struct ebb_piece *range_block_at(uintptr_t addr) {
    return range_piece(range.block_at[(addr - range.base) / RANGE_SLOT]);
}

/* Any thread, see piece_put_addr(). */
static inline bool range_covers(const struct ebb_piece *run, uintptr_t addr) {
    /* acquire: whoever sees the run begin earlier than before also sees its new length */
    uintptr_t from = __atomic_load_n(&run->addr, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&run->state, __ATOMIC_RELAXED) == PIECE_RUN &&
           addr - from < __atomic_load_n(&run->bytes, __ATOMIC_RELAXED);
}

/* The name in a table of runs; the run that was written before it is seen. */
static inline uint32_t range_name_at(const uint32_t *entry) {
    return __atomic_load_n(entry, __ATOMIC_ACQUIRE); /* pairs with range_name_pages() */
}

/* The run around an address of the range, or NULL. If its region's thread cuts it, or joins it with
 * another, meanwhile, the entries have changed and are followed again. */
static inline struct ebb_piece *range_run_at(uintptr_t addr) {
    const uint32_t *in_huge = &range.run_at_huge[(addr - range.base) / RANGE_HUGE];
    const uint32_t *in_page = &range.run_at[(addr - range.base) / EBB_PAGE];
    uint32_t huge, page;
    do {
        huge = range_name_at(in_huge), page = range_name_at(in_page);
        struct ebb_piece *of_huge = range_piece(huge), *of_page = range_piece(page);
        if (range_covers(of_huge, addr))
            return of_huge;
        if (range_covers(of_page, addr))
            return of_page;
        atomic_thread_fence(memory_order_acquire); /* pairs with those of pages.c */
    } while (huge != range_name_at(in_huge) || page != range_name_at(in_page));
    return NULL;
}

static inline uintptr_t *range_site(uintptr_t addr) {
    return &range.sites[(addr - range.base) / RANGE_GRANULE];
}

static inline uint32_t *range_note(uintptr_t addr) {
    return &range.notes[(addr - range.base) / RANGE_GRANULE];
}

static inline uint32_t *range_block_note(uintptr_t addr) {
    return &range.block_notes[(addr - range.base) / RANGE_SLOT];
}

static inline void range_name_block(const struct ebb_piece *piece) {
    range.block_at[(piece->addr - range.base) / RANGE_SLOT] = range_piece_name(piece);
}

void range_name_window(const struct ebb_piece *piece);
/*
 * Gives back the pages of tables that describe [addr, addr + bytes); also those that describe more,
 * if all of it lies in [free_from, free_to), which is free.
 */
void range_forget(uintptr_t addr, size_t bytes, uintptr_t free_from, uintptr_t free_to);

/* The same for the notes alone, in pages that describe nothing else. */
void range_forget_notes(uintptr_t addr, size_t bytes);

void range_name_pages(const struct ebb_piece *run, uintptr_t addr, size_t bytes);

#endif
