// SPDX-License-Identifier: Apache-2.0
/*
 * candidates.c - the tree of unplaced buffers (see candidates.h).
 *
 * Invariant: a node's key is the largest and its end the earliest of its leaves, so a node with
 * too small a key or too late an end has no leaf that is wanted. The converse does not hold (key
 * and end may be of different leaves), so a search may descend in vain, but only once it has found
 * a candidate: until then any key will do, and an end that is early enough is some leaf's. From
 * then on it looks at LOOKS_MOST more nodes at most. Where lives are random many would look at as
 * many; so all together have LOOKS_EACH for each buffer that was removed, and LOOKS_AT_FIRST, where
 * no clock ends them.
 */
#include "plan/candidates.h"

#include <stddef.h>

enum { LOOKS_MOST = 200, LOOKS_EACH = 32, LOOKS_AT_FIRST = 1 << 16 };

struct look {
    const struct candidates *in;
    uint32_t end;  /* latest end that fits */
    uint32_t node; /* best so far, or 0 */
    uint32_t key;  /* its key, or 0 */
    uint64_t left; /* nodes that may still be looked at */
};

static struct candidate better_of(struct candidate a, struct candidate b) {
    return (struct candidate){a.key > b.key ? a.key : b.key, a.end < b.end ? a.end : b.end};
}

void candidates_build(struct candidates *candidates) {
    struct candidate *nodes = candidates->nodes;
    for (size_t node = candidates->count; node > 1;) {
        node--;
        nodes[node] = better_of(nodes[2 * node], nodes[2 * node + 1]);
    }
    candidates->removed = 0;
    candidates->looked = 0;
}

/* Those before it leave what they did not need. */
static uint64_t looks_left(const struct candidates *candidates) {
    if (candidates->timed)
        return LOOKS_MOST;
    uint64_t all = LOOKS_AT_FIRST + (uint64_t)LOOKS_EACH * candidates->removed;
    uint64_t left = all - candidates->looked;
    return left < LOOKS_MOST ? left : LOOKS_MOST;
}

static void descend(struct look *look, uint32_t node);

/* Most nodes are not wanted: that is seen without a call. */
static inline void look_at(struct look *look, uint32_t node) {
    const struct candidate *nodes = look->in->nodes;
    if (nodes[node].key > look->key && nodes[node].end <= look->end)
        descend(look, node);
}

static void descend(struct look *look, uint32_t node) {
    const struct candidate *nodes = look->in->nodes;
    if (look->node && look->left == 0)
        return;
    look->left -= look->node != 0;
    if (node >= look->in->count) {
        look->node = node;
        look->key = nodes[node].key;
        return;
    }
    uint32_t left = 2 * node, right = left + 1;
    bool right_first = nodes[right].key > nodes[left].key;
    look_at(look, right_first ? right : left);
    look_at(look, right_first ? left : right);
}

uint32_t candidates_find(struct candidates *candidates, uint32_t first, uint32_t end) {
    uint32_t count = candidates->count;
    uint64_t looks = looks_left(candidates);
    struct look look = {.in = candidates, .end = end, .left = looks};
    uint32_t later[32], laters = 0; /* the right flank is met from right to left */
    uint32_t a = first + count, b = end + count;
    for (; a < b; a /= 2, b /= 2) {
        if (a & 1)
            look_at(&look, a++);
        if (b & 1)
            later[laters++] = --b;
    }
    while (laters > 0)
        look_at(&look, later[--laters]);
    candidates->looked += looks - look.left;
    return look.node ? look.node - count : CANDIDATE_NONE;
}

void candidates_remove(struct candidates *candidates, uint32_t index) {
    struct candidate *nodes = candidates->nodes;
    uint32_t node = index + candidates->count;
    candidates->removed++;
    nodes[node] = (struct candidate){0, CANDIDATE_NONE};
    for (node /= 2; node > 0; node /= 2) {
        struct candidate sum = better_of(nodes[2 * node], nodes[2 * node + 1]);
        if (sum.key == nodes[node].key && sum.end == nodes[node].end)
            return;
        nodes[node] = sum;
    }
}
