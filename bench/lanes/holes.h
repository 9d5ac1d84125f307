// SPDX-License-Identifier: Apache-2.0
//
// holes.h - the index over the holes of a large lane: large_lane.c only.

#ifndef EBB_BENCH_LANES_HOLES_H
#define EBB_BENCH_LANES_HOLES_H

#include "large_lane.h"

void holes_reset(struct large_lane *lane);
void holes_add(struct large_lane *lane, int32_t block);
void holes_remove(struct large_lane *lane, int32_t block);

// A hole, chosen by the lane's placement, that can hold `bytes` at a multiple of `align`; NO_BLOCK
// where there is none. It stays in the index.
int32_t holes_find(const struct large_lane *lane, uint64_t bytes, uint64_t align);

#endif
