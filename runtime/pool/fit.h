// SPDX-License-Identifier: Apache-2.0
/*
 * fit.h - best fit: the free pieces of one owner, found by size.
 *
 * Pieces are binned by size, eight bins a doubling, and sorted inside a bin by size, then
 * address. A bit for each finds the next bin that is not empty. Finding is exact (smallest
 * size that fits, lowest address among equals) as long as a bin holds few pieces; beyond
 * FIT_LOOK entries the look-up and the sorting give up, so that no operation depends on the
 * number of free pieces. Below 1 KiB a bin has pieces of one size: gaps that alignments left, often
 * a row of them, which would be walked for each new one. They lie as they came, the newest first.
 * docs/design.md has the measurements that chose this.
 */
#ifndef EBB_POOL_FIT_H
#define EBB_POOL_FIT_H

#include "pool/piece.h"

#include <string.h>

#define FIT_SUBS 8
#define FIT_BINS (36 * FIT_SUBS) /* up to 64 B << 36: more than addresses are reserved */
#define FIT_WORDS ((FIT_BINS + 63) / 64)
#define FIT_ALIKE (4 * FIT_SUBS) /* bins before this one: a size each, up to 15 * 64 B */
#ifndef FIT_LOOK
#define FIT_LOOK 48
#endif

struct fit {
    uint64_t filled[8]; /* bit b: bins[b] is valid. What is asked for has any size */
    size_t count;       /* of pieces */
    struct ebb_piece *bins[FIT_BINS];
};

/* Forgets all pieces. Constant time: bins are read only behind their bit. */
static inline void fit_clear(struct fit *fit) {
    memset(fit->filled, 0, sizeof fit->filled);
    fit->count = 0;
}

static inline bool fit_is_empty(const struct fit *fit) {
    return !fit->count;
}

void fit_insert(struct fit *fit, struct ebb_piece *piece);
void fit_remove(struct fit *fit, struct ebb_piece *piece);

/* The smallest piece of at least `bytes`, or NULL. Does not remove it. */
struct ebb_piece *fit_find(const struct fit *fit, size_t bytes);

/* A piece from the bin of largest sizes, or NULL. */
struct ebb_piece *fit_largest(const struct fit *fit);

/* Calls back for every piece until the callback, which changes none, returns false. */
typedef bool fit_visit(void *context, struct ebb_piece *piece);
void fit_each(const struct fit *fit, fit_visit *visit, void *context);

#endif
