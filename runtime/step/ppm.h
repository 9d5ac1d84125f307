// SPDX-License-Identifier: Apache-2.0
/* ppm.h - parts of amounts, in millionths, and means that move. Nothing here overflows. */
#ifndef EBB_STEP_PPM_H
#define EBB_STEP_PPM_H

#include "step/numbers.h"

static inline uint64_t ppm_of(uint64_t amount, uint32_t ppm) {
    if (amount <= UINT32_MAX) /* the same with one division */
        return amount * ppm / LEARN_MILLION;
    return amount / LEARN_MILLION * ppm + amount % LEARN_MILLION * ppm / LEARN_MILLION;
}

/* The mean that keeps so much of what it was; the rest is the next one's. */
static inline uint64_t ppm_mean(uint64_t mean, uint64_t next, uint32_t keep_ppm) {
    return ppm_of(mean, keep_ppm) + ppm_of(next, LEARN_MILLION - keep_ppm);
}

#endif
