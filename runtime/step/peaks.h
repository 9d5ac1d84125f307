// SPDX-License-Identifier: Apache-2.0
/*
 * peaks.h - the most that recent steps had: in this stretch of LEARN_RECENT steps, and in the one
 * before, so that what is recent is no less than a stretch and no more than two.
 */
#ifndef EBB_STEP_PEAKS_H
#define EBB_STEP_PEAKS_H

#include "base/size.h"
#include "step/numbers.h"
#include "step/ppm.h"

struct peaks {
    uint64_t used_now, used_before; /* bytes that were in use */
    uint64_t live_now, live_before; /* of these, as requested */
    uint32_t steps; /* of this stretch so far */
    bool rose;      /* the last step had more live than all recent ones before it */
};

/* The most that a recent step used. */
static inline uint64_t peaks_used(const struct peaks *peaks) {
    return size_larger(peaks->used_now, peaks->used_before);
}

/* The most that was alive in one. */
static inline uint64_t peaks_live(const struct peaks *peaks) {
    return size_larger(peaks->live_now, peaks->live_before);
}

/* The greatest height that a larger plan may have. */
static inline uint64_t peaks_height_most(const struct peaks *peaks) {
    return ppm_of(peaks_used(peaks), LEARN_HEIGHT_PPM) + LEARN_SLACK_BYTES;
}

/* A step has ended that used so much at its peak, and had so much alive. */
static inline void peaks_note(struct peaks *peaks, uint64_t used, uint64_t live) {
    peaks->rose = live > peaks_live(peaks);
    if (peaks->steps++ >= LEARN_RECENT) {
        peaks->used_before = peaks->used_now;
        peaks->live_before = peaks->live_now;
        peaks->used_now = peaks->live_now = 0;
        peaks->steps = 1;
    }
    peaks->used_now = size_larger(peaks->used_now, used);
    peaks->live_now = size_larger(peaks->live_now, live);
}

#endif
