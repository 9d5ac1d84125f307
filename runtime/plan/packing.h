// SPDX-License-Identifier: Apache-2.0
/*
 * packing.h - offsets for buffers whose sizes and lifetimes are known, as low as they will go.
 *
 *     packing.c     checks, the portfolio of orders, the search     how much is tried
 *     skyline.c     one try: lays the buffers by an order           where each one goes
 *     contour.c     how high the memory is used, section by section
 *     candidates.c  which unplaced buffer fits a stretch of sections
 *     keys.c        orders: which buffer goes first
 *     live.c        how many bytes are alive
 *     warm.c        of places that are free, the one that was in use last
 *     sweep.c       proof of a result, which shares no code with the above but the sorting
 *     order.c       sorting by numbers
 *
 * A section is a stretch of time without a birth after a death; any other measure of time does as
 * well. Two buffers that are alive in a section together must not overlap:
 *
 *     offset   ^      +-----+
 *              |  +---| 4   |          height: the highest end of a buffer
 *              |  | 2 +--+--+----+     max-live: the most bytes alive at once; no plan is lower
 *              |  +------+  3    |
 *              |  |  1   |       |
 *              +--+------+-------+---> sections
 *
 * Pure functions: no memory but the workspace, no state, the same result for the same input (the
 * search in a time budget ends when the caller's clock says so). Any thread.
 */
#ifndef EBB_PLAN_PACKING_H
#define EBB_PLAN_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKING_COUNT_MAX (UINT32_C(1) << 30)
#define PACKING_ORDERS 7u

struct packing_buffer {
    uint32_t lower, upper; /* alive in the sections lower <= t < upper */
    uint32_t align;        /* a power of two; its offset is a multiple */
    uint64_t bytes;        /* 0 is legal and gets offset 0 */
};

/* More is tried while the height is above `target` and above max-live * (1 + slack / 10^6). */
struct packing_effort {
    unsigned keys;               /* at most so many orders are tried, 1 to PACKING_ORDERS */
    uint32_t slack_ppm;          /* millionths of max-live, at most 10^6; 0: none */
    uint64_t target;             /* a height that is enough, such as a capacity; or 0 */
    uint64_t height_most;        /* a plan that is higher is not wanted; 0: any is */
    uint64_t *worked;            /* by all plans of which one is wanted, which the bound is for: its
                                    own is added, failing or not; NULL: there are no others */
    uint64_t search_ns;          /* then a local search from the best order; 0: none */
    bool orders_too;             /* that time is for all orders as well, but for the first; if not,
                                    it is their work that has a bound */
    uint64_t (*clock_ns)(void);  /* looked at between tries, and during them; may be NULL if
                                    search_ns is 0. UINT64_MAX: no result is wanted any more */
};

struct packing_result {
    uint64_t height;   /* of the best try */
    uint64_t max_live; /* most bytes alive at once */
    unsigned tries;    /* that were begun */
    uint64_t work;     /* of the tries: looks at unplaced buffers, and 32 for each that is placed */
};

/* What packing_solve() and packing_is_valid() need; false above PACKING_COUNT_MAX. */
bool packing_workspace_bytes(size_t count, size_t *bytes);

/*
 * Another order is begun only if all should have done no more than that at its end. One order does
 * no more than 64 a buffer, and 65,536; where time bounds it, 232 a buffer. Of several plans that
 * have one bound each may begin an order, and goes on, while all are too high, for half of what was
 * left to it.
 */
uint64_t packing_work_most(uint32_t count);

/*
 * Writes an offset for each buffer; about 0.3 us a buffer and try, up to 2.5 where lives are
 * random, and 0.1 us once. The workspace is aligned to 8 and has packing_workspace_bytes(count).
 * EBB_E_ARGUMENT: no order to try, too much slack, no clock, no time, too many buffers, or one that
 * dies before it is born; EBB_E_ALIGNMENT; EBB_E_SIZE: the height would be above EBB_SIZE_MAX or
 * `height_most`; nothing is tried if max-live is. A search begins with higher ones, and may end so.
 * Failing leaves offsets and result as they were.
 */
int packing_solve(const struct packing_buffer *buffers, uint32_t count,
                  const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                  struct packing_result *result);

/*
 * True if every buffer is aligned and ends at or below `height`, and no two that are alive
 * together overlap. Whatever stands in the arguments, it only looks. Same workspace.
 */
bool packing_is_valid(const struct packing_buffer *buffers, const uint64_t *offsets,
                      uint32_t count, uint64_t height, void *workspace);

#endif
