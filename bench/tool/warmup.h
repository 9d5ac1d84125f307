// SPDX-License-Identifier: Apache-2.0
/* warmup.h - the header line #warmup of the traces that are written here. */
#ifndef EBB_BENCH_TOOL_WARMUP_H
#define EBB_BENCH_TOOL_WARMUP_H

#include <stdint.h>

/* Three of each kind, but no more than a quarter of all regions: what is left is measured. */
static inline uint64_t warmup_of(uint64_t regions) {
    return regions / 4 < 3 ? regions / 4 : 3;
}

#endif
