// SPDX-License-Identifier: Apache-2.0
/*
 * os.h - the table of everything that ebb acquires from outside, and of internal acquisitions.
 *
 * All calls go through `os`, so that a test can count them, make the n-th fail, or refuse an
 * acquisition that has no system call of its own. Nothing else includes sys/mman.h.
 */
#ifndef EBB_BASE_OS_H
#define EBB_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Internal acquisitions that `os.allow` is asked about. */
enum os_acquisition {
    OS_RANGE,  /* the address range, once per process */
    OS_POOL,   /* a pool's own record */
    OS_SLOT,   /* a region's slot */
    OS_SLAB,   /* a chunk of addresses from jemalloc */
    OS_RUN,    /* a run of pages for a region */
    OS_PIECES, /* a batch of bookkeeping entries */
    OS_EXPORT, /* the struct of an exported tensor, from the C library */
    OS_ACQUISITIONS
};

struct os_table {
    void *(*reserve)(size_t bytes);             /* addresses without memory; NULL on failure */
    int (*give_back)(void *addr, size_t bytes); /* contents are lost, pages are zero; 0 or -1 */
    int (*forbid)(void *addr, size_t bytes);    /* touching becomes a fault; 0 or -1 */
    size_t (*resident)(void *addr, size_t bytes); /* bytes of the range in memory now */
    uint64_t (*now_ns)(void);                   /* monotonic clock */
    bool (*allow)(enum os_acquisition what);    /* tests: false makes the acquisition fail */
};

extern struct os_table os;

#endif
