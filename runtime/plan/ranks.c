// SPDX-License-Identifier: Apache-2.0
/*
 * ranks.c - a set of numbers in levels of bits (see ranks.h).
 *
 * Invariant: a bit above level 0 is set exactly if the word below it is not 0. So each operation
 * looks at no more than two words a level. Numbers are below the count that the set was made for.
 */
#include "plan/ranks.h"

#include <string.h>

static uint32_t words_of(uint32_t count) {
    return count / 64 + 1;
}

uint32_t ranks_words(uint32_t count) {
    uint32_t words = words_of(count), sum = words;
    while (words > 1) {
        words = words_of(words);
        sum += words;
    }
    return sum;
}

void ranks_clear(struct rank_set *ranks, uint64_t *words, uint32_t count) {
    memset(words, 0, ranks_words(count) * sizeof *words);
    ranks->levels = 0;
    do {
        count = words_of(count);
        ranks->level[ranks->levels++] = words;
        words += count;
    } while (count > 1);
}

void ranks_add(struct rank_set *ranks, uint32_t rank) {
    for (unsigned level = 0; level < ranks->levels; level++, rank /= 64)
        ranks->level[level][rank / 64] |= UINT64_C(1) << rank % 64;
}

void ranks_drop(struct rank_set *ranks, uint32_t rank) {
    for (unsigned level = 0; level < ranks->levels; level++, rank /= 64)
        if ((ranks->level[level][rank / 64] &= ~(UINT64_C(1) << rank % 64)) != 0)
            return;
}

uint32_t ranks_below(const struct rank_set *ranks, uint32_t rank) {
    for (unsigned level = 0; level < ranks->levels; level++, rank /= 64) {
        uint64_t below = ranks->level[level][rank / 64] & ((UINT64_C(1) << rank % 64) - 1);
        if (!below)
            continue;
        rank = rank / 64 * 64 + 63 - (uint32_t)__builtin_clzll(below);
        for (; level > 0; level--)
            rank = rank * 64 + 63 - (uint32_t)__builtin_clzll(ranks->level[level - 1][rank]);
        return rank;
    }
    return RANK_NONE;
}

uint32_t ranks_above(const struct rank_set *ranks, uint32_t rank) {
    for (unsigned level = 0; level < ranks->levels; level++, rank /= 64) {
        uint64_t above = ranks->level[level][rank / 64] & ~(UINT64_MAX >> (63 - rank % 64));
        if (!above)
            continue;
        rank = rank / 64 * 64 + (uint32_t)__builtin_ctzll(above);
        for (; level > 0; level--)
            rank = rank * 64 + (uint32_t)__builtin_ctzll(ranks->level[level - 1][rank]);
        return rank;
    }
    return RANK_NONE;
}
