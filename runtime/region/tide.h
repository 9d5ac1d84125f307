// SPDX-License-Identifier: Apache-2.0
/*
 * tide.h - the most that was there at once, from sums of what came and what left.
 *
 * Blocks that come are summed up and seldom looked at. A new peak is only possible once more came
 * than was there at once before, and what left since: `calm`.
 */
#ifndef EBB_REGION_TIDE_H
#define EBB_REGION_TIDE_H

#include <stdint.h>

/* Blocks, granules or bytes of slots, since the last gathering. */
struct track_tide {
    uint64_t from; /* what had come by then, and what was skipped since */
    uint64_t most; /* the most at once since, above what there was then */
    uint64_t calm; /* so much may come without a new peak: `from` + `most` + what left */
};

static inline uint64_t tide_left(const struct track_tide *tide) {
    return tide->calm - tide->from - tide->most;
}

static inline void tide_skip(struct track_tide *tide, uint64_t skipped) {
    tide->from += skipped;
    tide->calm += skipped;
}

/* Notes the peak, if `came` is one. */
static inline void tide_note(struct track_tide *tide, uint64_t came) {
    if (came > tide->calm) {
        tide->most += came - tide->calm;
        tide->calm = came;
    }
}

#endif
