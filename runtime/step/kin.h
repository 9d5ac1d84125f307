// SPDX-License-Identifier: Apache-2.0
/* kin.h - records that are not alike, but of loops that turned another number of times. */
#ifndef EBB_STEP_KIN_H
#define EBB_STEP_KIN_H

#include <stdbool.h>
#include <stdint.h>

/* They have most of their keys in common. __builtin_popcountll() may be a call, far off. */
static inline bool are_kin(uint64_t keys, uint64_t others) {
    int margin = 0;
    for (uint64_t common = keys & others; common; common &= common - 1)
        margin++;
    for (uint64_t apart = keys ^ others; apart; apart &= apart - 1)
        margin--;
    return margin > 0;
}

#endif
