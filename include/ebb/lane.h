// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/lane.h - the public head of a region, for the inline functions of ebb/region.h only.
 *
 * Small blocks are bumped:
 *
 *     start map  ... |65| 0| 0| 0|17| 0|   one entry per granule: requested bytes + 1 where a
 *                                          block starts, 0 elsewhere
 *     memory     ... |  block    | blk |  free ...      |
 *                                      ^cursor          ^limit   (multiple of the page size)
 *
 * A step that repeats the last one to the letter goes from one of its allocations and releases to
 * the next:
 *
 *     events     | A comes | B comes | A goes | C comes | B goes | ...
 *                                      ^due
 *
 * While a path is shut (the region is closed, sealed, metered or checked; the step differs) limit
 * is 0, or nothing is due: the one branch to the slow path covers all rare states.
 */
#ifndef EBB_LANE_H
#define EBB_LANE_H

#include <ebb/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a step does next, if it does what the last one did. */
struct ebb_due {
    uintptr_t addr;
    uint64_t request; /* alignment << 32 | bytes; 0: a release; less than 1 << 32: nothing is due */
};

struct ebb_lane {
    uintptr_t cursor;
    uintptr_t limit;
    uint64_t generation; /* of the region that is open here now */
    uintptr_t start_map; /* of the present window: entry of p at start_map + p / 8, two bytes */
    uint64_t tally;      /* since the window was opened: requested bytes << 16 | blocks */
    const struct ebb_due *due;
};

/*
 * A region's handle; copy it freely. Test it with ebb_region_is_open(). All zero means "none" in
 * options; allocating with such a handle is a fault at NULL. To allocate or release with a made-up
 * one is a fault, too.
 */
typedef struct ebb_region {
    struct ebb_lane *lane;
    uint64_t generation;
} ebb_region;

#ifdef __cplusplus
}
#endif

#endif
