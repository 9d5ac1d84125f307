// SPDX-License-Identifier: Apache-2.0
//
// simulate.h - the footprint of one step under one design of the two lanes.

#ifndef EBB_BENCH_LANES_SIMULATE_H
#define EBB_BENCH_LANES_SIMULATE_H

#include "large_lane.h"
#include "pages.h"
#include "small_lane.h"
#include "steps.h"

struct variant {
    uint64_t limit; // blocks of at most this many bytes go to the small lane; 0: none
    enum placement placement;
    uint64_t granule; // of the large lane
    struct small_options small;
};

// What a block of the step lies in.
struct placed {
    bool is_small;
    int32_t large;
    struct small_block small;
};

struct simulator {
    struct large_lane large;
    struct small_lane small;
    struct pages pages, separate_pages;
    struct placed *placed; // by object
    size_t placed_capacity;
};

// Bytes of the 4 KiB pages that the step's blocks touch in the end. The simulator, zeroed before
// its first use, only keeps memory from run to run.
uint64_t simulate_step(struct simulator *simulator, const struct variant *variant,
                       const struct step *step);
void simulator_free(struct simulator *simulator);

#endif
