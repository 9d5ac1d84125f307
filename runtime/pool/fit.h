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
 * docs/decisions.md has the measurements that chose this.
 */
#ifndef EBB_POOL_FIT_H
#define EBB_POOL_FIT_H

#include "base/check.h"
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

/*
 * What they do, in place for large.c, where a call costs as much as what it does.
 *
 * Invariant: a bit is set exactly if the bin behind it holds a piece. Sizes are multiples of
 * EBB_UNIT and not zero. Nothing here can fail.
 */
#define FIT_HERE static inline __attribute__((always_inline))

/* Sizes 64 << n up to (64 << n) * 15/8 fall into bins 8 * n to 8 * n + 7: the highest bit of a size
 * and the three behind it. */
FIT_HERE unsigned fit_bin(size_t bytes) {
    unsigned log2 = 63 ^ (unsigned)__builtin_clzll(bytes);
    return (unsigned)(bytes >> (log2 - 3)) + log2 * FIT_SUBS - 7 * FIT_SUBS;
}

static inline bool fit_comes_before(const struct ebb_piece *a, const struct ebb_piece *b) {
    return a->bytes < b->bytes || (a->bytes == b->bytes && a->addr < b->addr);
}

/* Into a bin that holds others. */
FIT_HERE void fit_insert_sorted(struct ebb_piece **head, struct ebb_piece *piece) {
    struct ebb_piece *last = NULL, *next = *head;
    for (unsigned look = 0; next && look < FIT_LOOK && fit_comes_before(next, piece); look++) {
        last = next;
        next = next->next;
    }
    piece->prev = last;
    piece->next = next;
    if (next)
        next->prev = piece;
    if (last)
        last->next = piece;
    else
        *head = piece;
}

/* Into its bin, of a size that is its own; who counts pieces does that. */
FIT_HERE void fit_enter(struct fit *fit, struct ebb_piece *piece, size_t bytes) {
    unsigned bin = fit_bin(bytes);
    uint64_t filled = fit->filled[bin / 64], bit = (uint64_t)1 << bin % 64;
    struct ebb_piece **head = &fit->bins[bin], *first = NULL;
    CHECK(bin < FIT_BINS);
    piece->free.bin = bin;
    if (filled & bit) {
        first = *head;
        if (bin >= FIT_ALIKE) {
            fit_insert_sorted(head, piece);
            return;
        }
        first->prev = piece;
    }
    piece->prev = NULL;
    piece->next = first;
    fit->filled[bin / 64] = filled | bit;
    *head = piece;
}

/* Out of it again. */
FIT_HERE void fit_leave(struct fit *fit, struct ebb_piece *piece) {
    struct ebb_piece *before = piece->prev, *after = piece->next;
    unsigned bin = piece->free.bin;
    if (after)
        after->prev = before;
    if (before)
        before->next = after;
    else if (after)
        fit->bins[bin] = after;
    else
        fit->filled[bin / 64] ^= (uint64_t)1 << bin % 64;
}

FIT_HERE struct ebb_piece *fit_find_in_bin(struct ebb_piece *piece, size_t bytes) {
    for (unsigned look = 0; piece && look < FIT_LOOK; look++, piece = piece->next)
        if (piece->bytes >= bytes)
            return piece;
    return NULL;
}

FIT_HERE struct ebb_piece *fit_find_here(const struct fit *fit, size_t bytes) {
    unsigned bin = fit_bin(bytes), word = bin / 64;
    uint64_t filled = fit->filled[word] >> bin % 64; /* this bin and those behind */
    for (; filled; filled &= filled - 1) {
        struct ebb_piece *first = fit->bins[bin + (unsigned)__builtin_ctzll(filled)];
        if (first->bytes >= bytes) /* as all in those behind are */
            return first;
        struct ebb_piece *other = fit_find_in_bin(first, bytes);
        if (other)
            return other;
    }
    while (++word < FIT_WORDS)
        if (fit->filled[word])
            return fit->bins[word * 64 + (unsigned)__builtin_ctzll(fit->filled[word])];
    return NULL;
}

/* A piece from the bin of largest sizes, or NULL. */
struct ebb_piece *fit_largest(const struct fit *fit);

/* Calls back for every piece until the callback, which changes none, returns false. */
typedef bool fit_visit(void *context, struct ebb_piece *piece);
void fit_each(const struct fit *fit, fit_visit *visit, void *context);

#endif
