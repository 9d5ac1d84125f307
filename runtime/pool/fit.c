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

struct bin {
    unsigned level, sub;
};

/* Sizes 64 << level up to (64 << level) * 15/8 fall into subs 0 to 7 of the level. */
static struct bin bin_of(size_t bytes) {
    size_t units = bytes / EBB_UNIT;
    unsigned level = 63 - (unsigned)__builtin_clzll(units);
    size_t sub = units << 3 >> level;
    if (level >= FIT_LEVELS)
        return (struct bin){FIT_LEVELS - 1, FIT_SUBS - 1};
    return (struct bin){level, (unsigned)sub & (FIT_SUBS - 1)};
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
    struct bin bin = bin_of(piece->bytes);
    struct ebb_piece **head = &fit->bins[bin.level][bin.sub];
    unsigned subs = fit->levels >> bin.level & 1 ? fit->subs[bin.level] : 0;
    piece->free.level = bin.level;
    piece->free.sub = bin.sub;
    if (subs >> bin.sub & 1) {
        insert_sorted(head, piece);
        return;
    }
    fit->levels |= 1ull << bin.level;
    fit->subs[bin.level] = (uint8_t)(subs | 1u << bin.sub);
    piece->prev = piece->next = NULL;
    *head = piece;
}

void fit_remove(struct fit *fit, struct ebb_piece *piece) {
    unsigned level = piece->free.level, sub = piece->free.sub;
    struct ebb_piece *before = piece->prev, *after = piece->next;
    if (after)
        after->prev = before;
    if (before) {
        before->next = after;
    } else if (after) {
        fit->bins[level][sub] = after;
    } else {
        fit->subs[level] &= (uint8_t)~(1u << sub);
        if (!fit->subs[level])
            fit->levels &= ~(1ull << level);
    }
}

static struct ebb_piece *find_in_bin(struct ebb_piece *piece, size_t bytes) {
    for (unsigned look = 0; piece && look < FIT_LOOK; look++, piece = piece->next)
        if (piece->bytes >= bytes)
            return piece;
    return NULL;
}

struct ebb_piece *fit_find(const struct fit *fit, size_t bytes) {
    struct bin bin = bin_of(bytes);
    if (fit->levels >> bin.level & 1) {
        unsigned subs = fit->subs[bin.level];
        if (subs >> bin.sub & 1) {
            struct ebb_piece *found = find_in_bin(fit->bins[bin.level][bin.sub], bytes);
            if (found)
                return found;
        }
        subs &= ~1u << bin.sub;
        if (subs)
            return fit->bins[bin.level][__builtin_ctz(subs)];
    }
    uint64_t levels = fit->levels & ~1ull << bin.level;
    if (!levels)
        return NULL;
    unsigned level = (unsigned)__builtin_ctzll(levels);
    return fit->bins[level][__builtin_ctz(fit->subs[level])];
}

struct ebb_piece *fit_largest(const struct fit *fit) {
    if (!fit->levels)
        return NULL;
    unsigned level = 63 - (unsigned)__builtin_clzll(fit->levels);
    unsigned sub = 31 - (unsigned)__builtin_clz(fit->subs[level]);
    struct ebb_piece *largest = fit->bins[level][sub];
    struct ebb_piece *piece = largest;
    for (unsigned look = 0; piece && look < FIT_LOOK; look++, piece = piece->next)
        if (piece->bytes > largest->bytes)
            largest = piece;
    return largest;
}

void fit_each(const struct fit *fit, fit_visit *visit, void *context) {
    for (unsigned level = 0; level < FIT_LEVELS; level++)
        for (unsigned sub = 0; sub < FIT_SUBS; sub++) {
            if (!(fit->levels >> level & 1) || !(fit->subs[level] >> sub & 1))
                continue;
            for (struct ebb_piece *piece = fit->bins[level][sub], *next; piece; piece = next) {
                next = piece->next;
                if (!visit(context, piece))
                    return;
            }
        }
}
