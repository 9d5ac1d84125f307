// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/region.h - regions: memory that lives as long as one step.
 *
 * A region is opened, blocks are allocated in it, and closing frees them all at once. Two lanes:
 *
 *   small lane   blocks up to EBB_SMALL_MAX_BYTES, aligned to at most EBB_SMALL_MAX_ALIGN:
 *                a bump of a pointer, inline in this header, no call
 *   large lane   everything else: best fit with split and merge; a released block's place is
 *                reused at once, while it is hot
 *
 * Releasing a block early is optional. It never touches the block's bytes, so a released block
 * keeps its contents until its place is reused (do not rely on it: checked builds poison it).
 *
 * Handles carry a generation: a handle of a closed region stays recognisable for ever, whatever was
 * opened since, and every call with it fails with EBB_E_STALE.
 *
 * Threads: a region belongs to one thread at a time; its children belong to the same thread.
 * Unrelated regions may be used by different threads at once, also on one pool. A stale handle is
 * refused on any thread, but using one while another thread works in the region that was opened in
 * its place is a data race like any other.
 */
#ifndef EBB_REGION_H
#define EBB_REGION_H

#include <ebb/lane.h>
#include <ebb/pool.h>

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* in C there is no other */
extern "C" {
#endif

#define EBB_SMALL_MAX_BYTES 1024ul /* larger blocks go to the large lane */
#define EBB_SMALL_MAX_ALIGN 64ul   /* larger alignments go to the large lane */
#define EBB_ALIGN_MAX (2ul << 20)  /* largest alignment that can be asked for, 2 MiB */
#define EBB_GRANULE 16ul           /* small blocks start and end at multiples of this */

struct ebb_region_options {
    size_t size;        /* sizeof(struct ebb_region_options); set by EBB_REGION_OPTIONS */
    const char *name;   /* copied, at most 31 bytes; NULL: "region" */
    ebb_pool *pool;     /* NULL: the parent's pool, or the default pool */
    ebb_region parent;  /* all zero: none, the region is a root */
    size_t hint_bytes;  /* reserve this much at once; see ebb_region_measured(); 0: grow */
    size_t limit_bytes; /* most bytes in live blocks, as rounded, of it and all below; 0: none */
    bool sealed;        /* refuses blocks of its own; children are allowed */
    bool measure;       /* counts only: blocks get addresses, but no memory. See below */
    bool sites;         /* remember the caller of each allocation for leak reports; slower */
};

/* Options with every field at its default: EBB_REGION_OPTIONS(.name = "step"). C, not C++. */
#define EBB_REGION_OPTIONS(...) \
    (&(struct ebb_region_options){.size = sizeof(struct ebb_region_options), __VA_ARGS__})

/*
 * Opens a region; NULL options: a root on the default pool. It costs no memory until the first
 * block, unless hinted. Valid until ebb_region_close() of it or of an ancestor. The handle is not
 * open on failure: EBB_E_ARGUMENT (size field; parent and pool disagree, or a parent that does not
 * measure), EBB_E_STALE (parent), EBB_E_MEMORY, EBB_E_SIZE and EBB_E_POOL_LIMIT (hint); shared:
 * EBB_E_SLOTS, EBB_E_NO_SPACE, EBB_E_SHARED; device: EBB_E_DEVICE (hint). Constant time.
 *
 * A measuring region places blocks as an ordinary one would, but its addresses have no memory
 * behind them (touching one is a fault), it takes nothing from any pool, even if one is named, and
 * has no limit. Its children measure, too. Each open one takes 4 GiB of addresses, or a sixteenth
 * of all if these are few (ulimit -v): up to that size its hint is exact, beyond it may be off.
 */
EBB_API EBB_NODISCARD ebb_region ebb_region_open(const struct ebb_region_options *options);

/*
 * Closes the region: open children first (the newest first), then all its blocks at once. No block
 * is visited; the time grows slowly with the runs and bookkeeping given back (2 us at 10^6 blocks).
 * Pages stay hot in the pool. EBB_E_STALE: closed already. EBB_E_BUSY: a cleanup of it or below it
 * is running. EBB_E_CLEANUP: it is closed, but a cleanup failed (ebb/cleanup.h).
 */
EBB_API int ebb_region_close(ebb_region region);

/*
 * As ebb_region_close(), but refuses if a child is open (EBB_E_CHILD_OPEN) or a block is alive
 * that was not released (EBB_E_LIVE_BLOCKS, with their number and bytes); the region then stays
 * as it was. A block that was promoted by relinking is not alive here any more; the original of
 * one that was promoted by copy is, until it is released.
 */
EBB_API int ebb_region_close_strict(ebb_region region);

/* True if the handle's region is open. Any thread that may use the region. Never fails. */
EBB_API bool ebb_region_is_open(ebb_region region);

/* Seals the region: it refuses new blocks, ebb_region_realloc() and promotions (EBB_E_SEALED) from
 * now on, but not releases, ebb_region_resize() and children. EBB_E_STALE. */
EBB_API int ebb_region_seal(ebb_region region);

/* The rare cases of the inline function below. Same contract. */
EBB_API void *ebb_region_alloc_slow(ebb_region region, size_t bytes, size_t align);

/*
 * A block of `bytes` bytes at a multiple of `align` (a power of two up to EBB_ALIGN_MAX).
 * Zero bytes are legal: the block has an address of its own. Contents are undefined.
 * Valid until: ebb_region_release() of it, a rewind or reset that covers it, or the close of the
 * region. One thread at a time. Constant time; in the large lane with a look at one short list.
 * NULL on failure: EBB_E_ALIGNMENT, EBB_E_SIZE, EBB_E_MEMORY, EBB_E_POOL_LIMIT, EBB_E_REGION_LIMIT,
 * EBB_E_SEALED, EBB_E_STALE; shared: EBB_E_NO_SPACE, EBB_E_SHARED; device: EBB_E_DEVICE.
 */
EBB_API EBB_NODISCARD EBB_INLINE void *
ebb_region_alloc(ebb_region region, size_t bytes, size_t align) {
    struct ebb_lane *lane = region.lane;
    if (bytes <= EBB_SMALL_MAX_BYTES && align != 0 && align <= EBB_SMALL_MAX_ALIGN &&
        (align & (align - 1)) == 0) {
        uintptr_t step = (bytes + (EBB_GRANULE - 1) + (bytes == 0)) & ~(EBB_GRANULE - 1);
        uintptr_t start = lane->cursor;
        if (align > EBB_GRANULE)
            start = (start + align - 1) & ~(align - 1);
        bool has_room = start + step <= lane->limit && lane->generation == region.generation;
        if (__builtin_expect(has_room, 1)) {
            lane->cursor = start + step;
            *(uint16_t *)(lane->start_map + (start >> 3)) = (uint16_t)(bytes + 1);
            lane->tally += bytes << 16 | 1;
            return (void *)start;
        }
    }
    const struct ebb_due *due = lane->due;
    bool is_due = due->request == (align << 32 | bytes) && align != 0 &&
                  (bytes >> 32 | align >> 32) == 0 && lane->generation == region.generation;
    if (__builtin_expect(is_due, 1)) {
        lane->due = due + 1;
        return (void *)due->addr;
    }
    return ebb_region_alloc_slow(region, bytes, align);
}

/* The same with all bytes zero; not of a device (EBB_E_DEVICE). */
EBB_API EBB_NODISCARD void *ebb_region_alloc_zeroed(ebb_region region, size_t bytes, size_t align);

/* Room for `count` elements of `bytes` each; EBB_E_SIZE if the product overflows. */
EBB_API EBB_NODISCARD void *ebb_region_alloc_array(ebb_region region, size_t count, size_t bytes,
                                                   size_t align);

/* All cases of the inline function below but the due one. Same contract. */
EBB_API int ebb_region_release_slow(ebb_region region, void *block);

/* Releases a block of this region early: its place is reused, its bytes are not touched. NULL: 0,
 * nothing. EBB_E_FOREIGN, EBB_E_INTERIOR, EBB_E_RELEASED, EBB_E_STALE, EBB_E_BUSY (exported). */
EBB_API EBB_INLINE int ebb_region_release(ebb_region region, void *block) {
    struct ebb_lane *lane = region.lane;
    if (lane) {
        const struct ebb_due *due = lane->due;
        bool is_due = due->addr == (uintptr_t)block && due->request == 0 &&
                      lane->generation == region.generation;
        if (__builtin_expect(is_due, 1)) {
            lane->due = due + 1;
            return 0;
        }
    }
    return ebb_region_release_slow(region, block);
}

/*
 * Grows or shrinks a block in place; its address and contents stay. Every block can shrink. A small
 * block can grow only while it is the newest one and there is room behind it, to less than 16 KiB;
 * a large one only into free space behind it. Errors as for release, and EBB_E_NO_ROOM (nothing
 * changed), EBB_E_SIZE, limits.
 */
EBB_API int ebb_region_resize(ebb_region region, void *block, size_t bytes);

/*
 * Like realloc(): resizes in place where possible, else allocates, copies the smaller of both sizes
 * and releases the old block. NULL block: allocates; zero bytes: an empty block. NULL on failure,
 * the old block unchanged: as alloc and release, EBB_E_DEVICE if a device's block would have to
 * move.
 */
EBB_API EBB_NODISCARD void *ebb_region_realloc(ebb_region region, void *block, size_t bytes,
                                               size_t align);

/* Bytes that were requested for this block; 0 with an error set (as release). */
EBB_API size_t ebb_region_block_bytes(ebb_region region, const void *block);

/* The open region whose pages hold `address`, which may be inside a block; a handle that is not
 * open if there is none, or if it is of a block of malloc(), whoever serves that. Any thread, as
 * long as that region is not being closed. */
EBB_API ebb_region ebb_region_of(const void *address);

/* True if both are open and `ancestor` is the parent of `region`, or its parent, and so on. */
EBB_API bool ebb_region_is_ancestor(ebb_region ancestor, ebb_region region);

/* Parent of the region; a handle that is not open for a root. */
EBB_API ebb_region ebb_region_parent(ebb_region region);

/* A point to come back to. Copy it freely. */
typedef struct ebb_mark {
    const void *place;
    uint64_t serial;
} ebb_mark;

/* Marks the region's present state. Valid until a rewind to it or to an older mark, a reset, or
 * the close. On failure serial is 0: EBB_E_STALE, EBB_E_MEMORY. */
EBB_API EBB_NODISCARD ebb_mark ebb_region_mark(ebb_region region);

/*
 * Ends every block that the region got since the mark, allocated here or promoted to it, and the
 * mark. Older blocks that were released or promoted elsewhere since then stay so. Linear in the
 * blocks ended. Children stay open; ebb/own.h says what becomes of objects. EBB_E_MARK,
 * EBB_E_STALE, EBB_E_BUSY (a cleanup runs; newer exports), EBB_E_CLEANUP (but it is done).
 */
EBB_API int ebb_region_rewind(ebb_region region, ebb_mark mark);

#define EBB_KEEP_ALL SIZE_MAX

/*
 * Ends all blocks, marks and children; the region stays open, and sealed if it was.
 * At most `keep_bytes` of its pages stay with the region (EBB_KEEP_ALL: all; 0: none); the rest
 * goes back to the pool, hot, and so do, in any case, runs of relinked survivors and the arena of a
 * step. Name, limit and parent stay. Errors as ebb_region_close().
 */
EBB_API int ebb_region_reset(ebb_region region, size_t keep_bytes);

/* Counters of one region; descendants are not included. Bytes unless the name says otherwise. */
struct ebb_region_stats {
    size_t size;                /* sizeof(struct ebb_region_stats), set by the caller */
    struct ebb_meter blocks;    /* count of blocks */
    struct ebb_meter requested; /* as the callers asked */
    struct ebb_meter used;      /* as rounded and placed: see ebb/pool.h */
    struct ebb_meter reserved;  /* pages that the region owns */
    uint64_t waste;             /* in its pages, under no live block of it or promoted from it */
    uint64_t pinned;            /* part of waste: relinked pages around live survivors */
    uint64_t small_blocks;      /* count ever allocated in the small lane, or placed by a plan */
    uint64_t large_blocks;      /* count ever allocated in the large lane */
    uint64_t runs;              /* count of runs of pages */
    uint64_t children;          /* count of open children */
    uint64_t limit;             /* 0: none */
    uint64_t subtree_used;      /* used by it and its descendants if it has a limit; else by it */
};

/* Fills *stats (its `size` field must be set). Errors: EBB_E_ARGUMENT, EBB_E_STALE. */
EBB_API int ebb_region_read_stats(ebb_region region, struct ebb_region_stats *stats);

/*
 * The hint with which a region serves what this one has served so far without growing: its highest
 * reserved bytes. It is exact for a measuring region that stayed within its 4 GiB, and alignments
 * up to a page: an ordinary region opened with it and used in the same way never grows, and with a
 * page less it does. (Where blocks grow, in place here, less may do.) 0 and EBB_E_STALE if closed.
 */
EBB_API size_t ebb_region_measured(ebb_region region);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
