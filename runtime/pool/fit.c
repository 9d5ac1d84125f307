// SPDX-License-Identifier: Apache-2.0
/*
 * fit.c - best fit over bins (see fit.h).
 *
 * Invariant: a bit is set exactly if the bin behind it holds a piece. Sizes are multiples of
 * EBB_UNIT and not zero. Nothing here can fail.
 */
#include "pool/fit.h"
#include "base/check.h"
#include "base/size.h"
#include "pool/range.h"

_Static_assert(RANGE_MOST <= (size_t)EBB_UNIT << (FIT_BINS / FIT_SUBS - 1), "any has a bin");

/* Sizes 64 << n up to (64 << n) * 15/8 fall into bins 8 * n to 8 * n + 7. */
static inline unsigned bin_of(size_t bytes) {
    size_t units = bytes / EBB_UNIT;
    unsigned log2 = 63 - (unsigned)__builtin_clzll(units);
    return log2 * FIT_SUBS + ((unsigned)(units * FIT_SUBS >> log2) & (FIT_SUBS - 1));
}

static bool comes_before(const struct ebb_piece *a, const struct ebb_piece *b) {
    return a->bytes < b->bytes || (a->bytes == b->bytes && a->addr < b->addr);
}

/* Into a bin that holds others. */
static void insert_sorted(struct ebb_piece **head, struct ebb_piece *piece) {
    struct ebb_piece *last = NULL, *next = *head;
    for (unsigned look = 0; next && look < FIT_LOOK && comes_before(next, piece); look++) {
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

void fit_insert(struct fit *fit, struct ebb_piece *piece) {
    unsigned bin = bin_of(piece->bytes);
    uint64_t filled = fit->filled[bin / 64], bit = (uint64_t)1 << bin % 64;
    struct ebb_piece **head = &fit->bins[bin];
    CHECK(bin < FIT_BINS);
    piece->free.bin = bin;
    fit->count++;
    struct ebb_piece *first = filled & bit ? *head : NULL;
    if (first && bin >= FIT_ALIKE) {
        insert_sorted(head, piece);
        return;
    }
    piece->prev = NULL;
    piece->next = first;
    if (first)
        first->prev = piece;
    fit->filled[bin / 64] = filled | bit;
    *head = piece;
}

void fit_remove(struct fit *fit, struct ebb_piece *piece) {
    struct ebb_piece *before = piece->prev, *after = piece->next;
    unsigned bin = piece->free.bin;
    fit->count--;
    if (after)
        after->prev = before;
    if (before)
        before->next = after;
    else if (after)
        fit->bins[bin] = after;
    else
        fit->filled[bin / 64] &= ~((uint64_t)1 << bin % 64);
}

static struct ebb_piece *find_in_bin(struct ebb_piece *piece, size_t bytes) {
    for (unsigned look = 0; piece && look < FIT_LOOK; look++, piece = piece->next)
        if (piece->bytes >= bytes)
            return piece;
    return NULL;
}

struct ebb_piece *fit_find(const struct fit *fit, size_t bytes) {
    unsigned bin = bin_of(bytes), word = bin / 64;
    uint64_t filled = fit->filled[word] >> bin % 64; /* this bin and those behind */
    if (filled & 1) {
        struct ebb_piece *found = find_in_bin(fit->bins[bin], bytes);
        if (found)
            return found;
    }
    filled &= ~(uint64_t)1;
    if (filled)
        return fit->bins[bin + (unsigned)__builtin_ctzll(filled)];
    while (++word < FIT_WORDS)
        if (fit->filled[word])
            return fit->bins[word * 64 + (unsigned)__builtin_ctzll(fit->filled[word])];
    return NULL;
}

struct ebb_piece *fit_largest(const struct fit *fit) {
    unsigned word = FIT_WORDS - 1;
    if (fit_is_empty(fit))
        return NULL;
    while (!fit->filled[word])
        word--;
    unsigned bit = 63 - (unsigned)__builtin_clzll(fit->filled[word]);
    struct ebb_piece *largest = fit->bins[word * 64 + bit];
    struct ebb_piece *piece = largest;
    for (unsigned look = 0; piece && look < FIT_LOOK; look++, piece = piece->next)
        if (piece->bytes > largest->bytes)
            largest = piece;
    return largest;
}

void fit_each(const struct fit *fit, fit_visit *visit, void *context) {
    for (unsigned word = 0; word < FIT_WORDS; word++)
        for (uint64_t left = fit->filled[word]; left; left &= left - 1) {
            unsigned bin = word * 64 + (unsigned)__builtin_ctzll(left);
            for (struct ebb_piece *piece = fit->bins[bin]; piece; piece = piece->next)
                if (!visit(context, piece))
                    return;
        }
}
