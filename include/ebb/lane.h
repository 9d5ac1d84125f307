// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/lane.h - the public head of a region: what the inline functions of ebb/region.h touch, and
 * nothing else does outside of the library.
 *
 * Small blocks are bumped:
 *
 *     start map  ... |65| 0| 0| 0|17| 0|   one entry per granule: requested bytes + 1 where a
 *                                          block starts, 0 elsewhere
 *     memory     ... |  block    | blk |  free ...      |
 *                                      ^cursor          ^limit   (multiple of the page size)
 *
 * A step that does to the letter what it did last time goes from one block that is due to the
 * next, and from one release to the next:
 *
 *     blocks     | A | B | C | D | ...     in the order in which they came
 *                          ^due_block      not before B is released
 *     releases   | B | A | D | ...         in the order in which they went
 *                  ^due_release            B.before is C: due while C is the next block
 *
 * While a way is shut (closed, sealed, metered, checked; not to the letter) limit is 0, or what is
 * due is nothing: then the slow path is taken, which is the only branch for all rare states.
 */
#ifndef EBB_LANE_H
#define EBB_LANE_H

#include <ebb/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block of a plan, as the last step had it. */
struct ebb_due_block {
    uintptr_t addr;
    uint32_t bytes; /* exactly */
    uint32_t align; /* 0: none is due here, it is a rare one or the end */
};

/* And its release. */
struct ebb_due_release {
    uintptr_t addr;
    const struct ebb_due_block *before; /* NULL: at the end, which is never due */
};

struct ebb_lane {
    uintptr_t cursor;
    uintptr_t limit;
    uint64_t generation; /* of the region that is open here now */
    uintptr_t start_map; /* of the present window: entry of p at start_map + p / 8, two bytes */
    uint64_t tally;      /* since the window was opened: requested bytes << 16 | blocks */
    const struct ebb_due_block *due_block;
    const struct ebb_due_release *due_release;
};

/*
 * A region's handle; copy it freely. Test it with ebb_region_is_open(). A handle that is all zero
 * means "none" in options; it was never a region's, and allocating with it is a fault at NULL. So
 * is allocating, or releasing, with a made-up one.
 */
typedef struct ebb_region {
    struct ebb_lane *lane;
    uint64_t generation;
} ebb_region;

#ifdef __cplusplus
}
#endif

#endif
