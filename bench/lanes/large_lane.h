// SPDX-License-Identifier: Apache-2.0
//
// large_lane.h - one address space of blocks that split and merge, under several placements.

#ifndef EBB_BENCH_LANES_LARGE_LANE_H
#define EBB_BENCH_LANES_LARGE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum placement {
    PLACE_BEST,   // smallest hole that fits, lowest address on ties
    PLACE_FIRST,  // lowest hole that fits
    PLACE_TLSF16, // two-level bins, 16 in each power of two: any hole of the next bin
    PLACE_TLSF32, // the same with 32
};

enum { NO_BLOCK = -1, TLSF_BINS = 2048 };

// Blocks cover the space without gaps; `before` and `behind` are its neighbours in it. In a list of
// unused records `behind` is the next one.
struct large_block {
    uint64_t address, bytes;
    int32_t before, behind;
    int32_t bin_before, bin_behind; // neighbours in the bin of a hole, TLSF only
    bool is_hole;
};

//     0 |  block  |   hole   |  block  | block |  hole  | top
//                                                 `last`
// The space is closed with a block or a hole, `last`, that ends at `top`; no two holes touch.
// Addresses and bytes are multiples of `granule`.
struct large_lane {
    enum placement placement;
    uint64_t granule;
    uint64_t top;
    int32_t last;

    struct large_block *blocks;
    size_t block_count, block_capacity;
    int32_t unused;

    int32_t *sorted; // holes, by (bytes, address) or by address; best and first fit
    size_t hole_count, sorted_capacity;
    int32_t bins[TLSF_BINS]; // newest hole first; TLSF
    uint64_t bin_map[TLSF_BINS / 64];
};

// Empties the lane for a new run; the first call needs zeroed memory. `granule` is a power of two,
// and for the TLSF placements a multiple of 64.
void large_lane_reset(struct large_lane *lane, enum placement placement, uint64_t granule);
void large_lane_free(struct large_lane *lane);

// Places `bytes` (0: as 1) at a multiple of `align`, a power of two; in a hole where one fits, else
// at the top, which then grows. Returns the block's number, valid until it is released.
int32_t large_lane_allocate(struct large_lane *lane, uint64_t bytes, uint64_t align);

// Makes the block a hole and merges it with the holes beside it.
void large_lane_release(struct large_lane *lane, int32_t block);

uint64_t large_lane_address(const struct large_lane *lane, int32_t block);

// Walks the lane and says whether every invariant above holds. O(blocks).
bool large_lane_check(const struct large_lane *lane);

#endif
