// SPDX-License-Identifier: Apache-2.0
/*
 * kind.h - kinds of memory: what a page heap does to get pages, and to give them back.
 *
 * A page heap cuts slabs of addresses into runs and never asks what lies behind them; where that
 * matters it calls the table of its kind. Nothing here is on the way of an allocation: slabs are
 * taken once in a GiB, cold pages become resident when a region grows, hot ones become cold when
 * a pool shrinks.
 *
 *     slab     take ------------------------------------------------> give
 *     pages           cold -- warm --> run, hot, run ... -- cool --> cold
 *
 * The pool's lock is held in all of them. To add a kind: a table in a file of its own, declared
 * below and named in kind.c.
 */
#ifndef EBB_POOL_KIND_H
#define EBB_POOL_KIND_H

#include "base/hidden.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pages;
struct ebb_pool_options;

struct kind {
    const char *name; /* as in texts of errors */
    bool phantom;     /* the processor cannot touch its bytes */
    bool whole;       /* slabs have memory as a whole, or are none: see whole.c */
    bool huge;        /* a touched page makes all of its 2 MiB resident, as far as the slab goes */
    bool dense;       /* cold pages become resident from the lowest of a slab on, without gaps */

    /* Before a pool of the kind is made; NULL: nothing to do. 0, or an error that is set. */
    int (*begin)(struct pages *pages, const struct ebb_pool_options *options);

    /*
     * Addresses of the range for a slab of at least `least` bytes (whole pages), the length that
     * the kind likes in *bytes, a multiple of CHUNK_ALIGN. 0: error set.
     */
    uintptr_t (*take)(struct pages *pages, size_t least, size_t *bytes);

    /*
     * Makes cold pages resident before they become part of a run; NULL: touching them does. 0, or
     * an error that is set. Pages that became resident but were not needed in the end still count
     * as cold, so they may come here again.
     */
    int (*warm)(struct pages *pages, uintptr_t addr, size_t bytes);

    /* A run was taken that will be filled, as a whole, again and again; NULL: nothing to do. */
    void (*settle)(struct pages *pages, uintptr_t addr, size_t bytes);

    /* Gives hot pages back, adds to *given what was resident; false: they stay hot. */
    bool (*cool)(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given);

    /* Gives back what is left of failed attempts at slabs; NULL: nothing ever is. False: it stays.
     * */
    bool (*clear)(struct pages *pages);

    /* Returns a slab as it was taken, with all of its pages. Cannot fail. */
    void (*give)(struct pages *pages, uintptr_t addr, size_t bytes);
};

#define PHANTOM_BYTES ((size_t)4 << 30) /* a measuring region is exact up to this size */

extern HIDDEN const struct kind kind_host;    /* pages of the range itself */
extern HIDDEN const struct kind kind_short;   /* the same, for a pool with little in it */
extern HIDDEN const struct kind kind_phantom; /* for measuring: addresses only */
extern HIDDEN const struct kind kind_pinned, kind_pinned_huge; /* see pinned.c */
extern HIDDEN const struct kind kind_device;                   /* see device.c */

/*
 * The table for a set of EBB_KIND_ flags that pools of this process can have; NULL: the error
 * EBB_E_KIND says why not. Shared pools have tables for each of their slots, see shared.h.
 */
const struct kind *kind_find(unsigned flags);

/* `take` and `give` of kinds whose slabs are chunks of the range, of just `least` bytes. */
uintptr_t kind_take_exactly(struct pages *pages, size_t least, size_t *bytes);
void kind_give_chunk(struct pages *pages, uintptr_t addr, size_t bytes);

/* Huge pages are welcome in a run of the host's that was settled; or, while some of its pages are
 * given back, they are not: the kernel would fill these again. Any thread, with no lock. */
void kind_welcome_huge(uintptr_t addr, size_t bytes, bool are_welcome);

/* `give` for chunks that the system was advised of: replaces them by fresh addresses. If the system
 * refuses to open these they are lost. */
void kind_give_anew(struct pages *pages, uintptr_t addr, size_t bytes);

/* A closed chunk of `usual` bytes, or fewer: no memory is counted for it. */
uintptr_t kind_take_closed(size_t usual, size_t least, size_t *bytes);

/* `give` for that: opens it again. If the system refuses, it is lost. */
void kind_give_closed(struct pages *pages, uintptr_t addr, size_t bytes);

#endif
