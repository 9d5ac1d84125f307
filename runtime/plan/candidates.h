// SPDX-License-Identifier: Apache-2.0
/*
 * candidates.h - the buffers that are not placed yet: which of those that fit goes first?
 *
 * A segment tree over the buffers in the order of their births. A node says the largest key and
 * the earliest end below it:
 *
 *     nodes   1 | 2 3 | 4 5 6 7 | ...  leaves: nodes[count + i] is buffer i
 *
 *     node i = {max key, min end} of nodes 2i and 2i + 1;  a placed buffer is {0, none}
 */
#ifndef EBB_PLAN_CANDIDATES_H
#define EBB_PLAN_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#define CANDIDATE_NONE UINT32_MAX

struct candidate {
    uint32_t key; /* 0: nothing here */
    uint32_t end;
};

struct candidates {
    struct candidate *nodes; /* 2 * count */
    uint32_t count;
    uint32_t removed; /* since it was built */
    uint64_t looked;  /* the same: nodes that were looked at for one better than was found */
    bool timed;       /* the caller's time is the bound of all looks together; stays as it is */
};

/* Sums up the leaves, which the caller has filled in. */
void candidates_build(struct candidates *candidates);

/*
 * Of the buffers first <= i < end with an end of at most `end`, one with the largest key; or, since
 * looks are bounded once one is found, one of the large ones. CANDIDATE_NONE: there is none. One is
 * found in O(log count); for a better one up to 200 nodes are looked at; unless `timed`, only while
 * no more than 65,536 were in all, and 32 for each buffer that was removed.
 */
uint32_t candidates_find(struct candidates *candidates, uint32_t first, uint32_t end);

void candidates_remove(struct candidates *candidates, uint32_t index);

#endif
