// SPDX-License-Identifier: Apache-2.0
/*
 * ranks.h - a set of small numbers that knows its neighbours.
 *
 *     level 0   one bit for each number
 *     level 1   one bit for each word of level 0: is it not empty?
 *     ...       and so on, up to a level of one word
 */
#ifndef EBB_PLAN_RANKS_H
#define EBB_PLAN_RANKS_H

#include <stdint.h>

#define RANK_NONE UINT32_MAX

enum { RANK_LEVELS = 6 }; /* 64^6 > 2^32 */

struct rank_set {
    uint64_t *level[RANK_LEVELS];
    unsigned levels;
};

/* Words of memory for the numbers below `count`. */
uint32_t ranks_words(uint32_t count);

/* Empty. */
void ranks_clear(struct rank_set *ranks, uint64_t *words, uint32_t count);

void ranks_add(struct rank_set *ranks, uint32_t rank);
void ranks_drop(struct rank_set *ranks, uint32_t rank);

/* The nearest number in the set below or above, which `rank` itself is not; or RANK_NONE. */
uint32_t ranks_below(const struct rank_set *ranks, uint32_t rank);
uint32_t ranks_above(const struct rank_set *ranks, uint32_t rank);

#endif
