// SPDX-License-Identifier: Apache-2.0
/*
 * fit.c - best fit over bins (see fit.h).
 */
#include "pool/fit.h"
#include "pool/range.h"

_Static_assert(RANGE_MOST <= (size_t)EBB_UNIT << (FIT_BINS / FIT_SUBS - 1), "any has a bin");

void fit_insert(struct fit *fit, struct ebb_piece *piece) {
    fit->count++;
    fit_enter(fit, piece, piece->bytes);
}

void fit_remove(struct fit *fit, struct ebb_piece *piece) {
    fit->count--;
    fit_leave(fit, piece);
}

struct ebb_piece *fit_find(const struct fit *fit, size_t bytes) {
    return fit_find_here(fit, bytes);
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
