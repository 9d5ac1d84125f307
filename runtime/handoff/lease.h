// SPDX-License-Identifier: Apache-2.0
/*
 * lease.h - what was sent and is held by this process.
 *
 *     table of a pool    | lease of slot 0 | lease of slot 1 | ...     in this process's memory
 *
 * There is one lease for each slot, found without a search and never moved. Its count says how many
 * hold it; whoever takes the last one away ends it alone, and asks the check, if there is one,
 * whether a device is done. If it is not the lease is pending, until somebody asks again.
 *
 *     count   0 --open--> 1 .. --last drop--> ENDING --> 0, slot FREE
 *                                               ^   `--> PENDING
 *                                               `---settle---'
 *
 * Where very many references are had at once the count stays at MOST, far below what has another
 * meaning: which drop is the last one is not known any more, so the lease never ends.
 *
 * A forked child gets a table of its own when it needs one; leases of older tables are its parent's
 * and change nothing but their count. What nobody held at the fork is not among them. Invariant: a
 * lease whose count is not 0 belongs to a slot that this process holds (or held, if another process
 * damaged the word: then nothing is freed).
 */
#ifndef EBB_HANDOFF_LEASE_H
#define EBB_HANDOFF_LEASE_H

#include "object/exchange.h"
#include "pool/shared.h"

#include <ebb/device.h>
#include <ebb/handoff.h>

#define LEASE_ENDING ((uint32_t)1 << 31)
#define LEASE_PENDING ((uint32_t)1 << 30)
#define LEASE_MOST ((uint32_t)1 << 29) /* and a few above it, for a moment */

#define LEASE_GUARDS 4 /* streams that read one lease at once */

struct lease_table;

struct ebb_lease {
    _Atomic uint32_t count;
    uint32_t slot;
    struct lease_table *table;
    uint64_t word; /* HELD, by this process */
    char *start;   /* of the slot */
    size_t bytes;  /* that were sent */
    size_t root, root_bytes; /* SIZE_MAX: none */
    uint32_t guarded;        /* guards of this lease: the first ones */
    struct lease_guard {
        struct ebb_fence fence; /* kept when the lease ends, for the next one */
        int device;
        void *stream;
        pthread_t thread; /* that guarded: some streams are its own */
    } guards[LEASE_GUARDS];
};

struct lease_table {
    struct lease_table *older; /* of processes that this one was forked from */
    struct shared *shared;
    unsigned forks; /* when it was made: another number by now: it is a parent's */
    size_t bytes;
    ebb_release_check *check;
    void *context;
    _Atomic uint32_t pending;
    struct ebb_lease leases[];
};

/* ---- describe.c ---- */

/* Bytes from the first element to behind the last; 0, or what is wrong. Strides may be NULL. */
int lease_measure(struct ebb_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                  size_t *bytes);

/* 0, or EBB_E_EXCHANGE: elements there are not aligned. */
int lease_check_align(struct ebb_dtype dtype, size_t offset);

/* A loan that is one of the exports of a lease. */
bool lease_is_lent(struct loan loan);

/* An export that nobody wants. */
void lease_export_end(struct DLManagedTensor *managed);

#endif
