// SPDX-License-Identifier: Apache-2.0
/* hard.h - the blocks of a step that no order packs well: 400, of which up to 64 are alive. */
#ifndef EBB_TESTS_KIT_HARD_H
#define EBB_TESTS_KIT_HARD_H

#include "kit/test.h"

/* Enough to find a better plan for them while every processor is busy with something else. */
#define HARD_SEARCH_NS UINT64_C(500000000)

/* False if one fails. */
static inline bool hard_blocks(ebb_step step) {
    void *live[64] = {NULL};
    uint32_t chance = 3;
    bool right = true;
    for (unsigned k = 0; k < 400; k++) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        void **at = &live[chance >> 26];
        right = right && (!*at || ebb_region_release(step.region, *at) == 0);
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        *at = ebb_region_alloc(step.region, 1024 + (chance >> 18), 64);
        right = right && *at;
    }
    return right;
}

#endif
