// SPDX-License-Identifier: Apache-2.0
//
// small_lane.h - bump allocation in windows, under several ways to use released blocks again.

#ifndef EBB_BENCH_LANES_SMALL_LANE_H
#define EBB_BENCH_LANES_SMALL_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "large_lane.h"

enum reuse {
    REUSE_NONE,        // never
    REUSE_WINDOW,      // a window is bumped again once all its blocks are released
    REUSE_WINDOW_BACK, // such a window is given back to the large lane
    REUSE_HOLES,       // Immix: bump in the next hole of enough bytes, lowest window first
    REUSE_HOLES_BACK,  // the same, and empty windows are given back
    REUSE_CLASSES,     // one list of released blocks for each multiple of 16 bytes
};

enum window_source {
    WINDOWS_PACKED,   // blocks of the large lane, aligned to 64
    WINDOWS_ALIGNED,  // blocks of the large lane, aligned to their size
    WINDOWS_SEPARATE, // a space of their own, one behind the other
};

enum { SMALL_GRANULE = 16, SMALL_LIMIT_MAX = 16384, NO_WINDOW = -1 };

struct small_options {
    enum reuse reuse;
    enum window_source source;
    uint64_t window_bytes; // power of two, at least the largest block
    uint64_t hole_bytes;   // REUSE_HOLES*: smaller holes are passed over
};

// live_bytes = sum of the rounded sizes of the blocks alive in the window; in_use[] has a byte for
// each granule, REUSE_HOLES* only.
struct window {
    uint64_t base;
    uint64_t live_bytes;
    int32_t block; // of the large lane; NO_BLOCK in a separate space
    bool is_given_back;
    unsigned char *in_use;
    size_t in_use_capacity;
};

struct small_block {
    uint64_t address, bytes;
    int32_t window;
};

// Released blocks of one size, newest last.
struct size_class {
    struct small_block *blocks;
    size_t count, capacity;
};

//     window:  base | used ... | cursor ......... limit | used ... | base + window_bytes
//                                the current hole
struct small_lane {
    struct small_options options;
    struct large_lane *host;
    uint64_t separate_top;

    struct window *windows;
    size_t window_count, window_capacity;
    int32_t *spare; // window numbers: empty (REUSE_WINDOW) or given back (the others)
    size_t spare_count, spare_capacity;

    int32_t current; // the window that is bumped in
    uint64_t cursor, limit;

    bool in_pass; // REUSE_HOLES*: the pass over the windows has got to here
    size_t pass_window;
    uint64_t pass_offset;

    struct size_class classes[SMALL_LIMIT_MAX / SMALL_GRANULE + 1];
};

// Empties the lane for a new run over `host`; the first call needs zeroed memory.
void small_lane_reset(struct small_lane *lane, const struct small_options *options,
                      struct large_lane *host);
void small_lane_free(struct small_lane *lane);

// Whether every fresh window has room for such a block, wherever the window lies. The lane takes no
// other blocks.
bool small_lane_has_room(const struct small_options *options, uint64_t bytes, uint64_t align);

struct small_block small_lane_allocate(struct small_lane *lane, uint64_t bytes, uint64_t align);
void small_lane_release(struct small_lane *lane, struct small_block block);

#endif
