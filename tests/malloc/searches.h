// SPDX-License-Identifier: Apache-2.0
/* searches.h - steps of a site that searches for plans, and how many threads there are. */
#ifndef MALLOC_SEARCHES_H
#define MALLOC_SEARCHES_H

#include "malloc/acts.h"

#include <ebb/ebb.h>

#include <sys/stat.h>

/* Blocks for which a good plan is hard to find. */
static inline void churn_in_a_step(ebb_site *searches) {
    ebb_step step = ebb_step_begin(searches, 0);
    void *live[64] = {NULL};
    uint32_t chance = 3;
    for (unsigned k = 0; k < 400; k++) {
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        void **at = &live[chance >> 26];
        EXPECT(ebb_region_release(step.region, *at) == 0);
        chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
        *at = ebb_region_alloc(step.region, 4096 + (chance >> 14), 64);
        EXPECT(*at);
    }
    EXPECT(ebb_step_end(step) == 0);
}

static inline nlink_t count_threads(void) {
    struct stat threads;
    EXPECT(stat("/proc/self/task", &threads) == 0);
    return threads.st_nlink - 2;
}

#endif
