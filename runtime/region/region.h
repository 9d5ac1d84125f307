// SPDX-License-Identifier: Apache-2.0
/*
 * region.h - the private body of a region, and what its parts offer each other.
 *
 *     slots.c     the slots that regions live in
 *     tree.c      open, close, parents and children        lifetimes
 *     small.c     the small lane: windows, bumping, holes  where small blocks go
 *     large.c     the large lane: best fit in runs         where large blocks go
 *     runs.c      the runs of pages under both lanes
 *     block.c     the public functions on blocks           which lane, which error
 *     count.c     counters and budgets                     what it costs
 *     mark.c      mark, rewind, reset
 *     promote.c   what leaves: copy, relink
 *     depart.c    what becomes of relinked blocks' pages at close
 *
 * Bodies live in slots that are never unmapped. A slot's generation is odd while a region is
 * open in it and grows with every open and close, so a stale handle never matches again.
 *
 * Laws (region_check() walks them):
 *     used now         = large_used + live bytes of all windows
 *     reserved.current = bytes of all runs
 *     waste            = reserved - lent - (used now - guests)
 */
#ifndef EBB_REGION_REGION_H
#define EBB_REGION_REGION_H

#include "base/poison.h"
#include "pool/pool.h"
#include "pool/starts.h"

#include <ebb/region.h>

#define REGION_NAME_BYTES 32

struct region {
    struct ebb_lane lane; /* first: a handle points here */

    /* small lane */
    uintptr_t limit;           /* true end of the room at lane.cursor; lane.limit may be shut */
    uintptr_t room;            /* where the room at the cursor begins, or the newest mark */
    uintptr_t folded;          /* cursor when the tally was last folded */
    uintptr_t calm;            /* up to this cursor no counter can pass its peak */
    struct ebb_piece *window;  /* the one that is bumped in, or NULL */
    struct ebb_piece *windows; /* all, newest first */
    struct ebb_piece *holes;   /* those with room between live blocks */
    struct ebb_piece *spare;   /* an empty one that waits to be bumped in again, or NULL */

    /* large lane */
    struct ebb_piece *blocks;   /* live large blocks and marks, newest first */
    struct ebb_piece *top;      /* free end of the main run, or NULL */
    struct ebb_piece *main_run; /* the run that grows */
    uintptr_t highest;          /* where the top of the main run began at its highest */
    size_t measured;            /* what runs_measured() said before the last reset */
    struct ebb_piece *runs;     /* all runs, linked by next */
    struct ebb_piece *departed; /* entries of blocks that were relinked and still sit here */
    struct region *heir;        /* where departed blocks go when this region closes */
    struct piece_store store;
    struct starts_store starts; /* maps of the windows */

    /* tree */
    struct ebb_pool *pool;
    struct region *parent, *children;
    struct region *sibling_next, *sibling_prev;
    struct region *list_next; /* all slots of the pool */
    struct region *free_next; /* closed slots of the pool */
    unsigned depth;

    /* budget: the nearest region on the way up that has a limit, itself included */
    struct region *budget;
    size_t limit_bytes;
    size_t charged;

    bool sealed, metered, measuring, sites;
    bool keeper; /* a root that has had children: what it allocates outlives steps */
    uint64_t owner; /* of its pieces: slot and epoch */
    uint32_t epoch;
    unsigned marks;
    uint64_t mark_serial;

    struct flow counted, requested, used; /* blocks, and their bytes */
    size_t large_used;                    /* of used: large blocks, here or in other's runs */
    struct ebb_meter reserved;
    uint64_t large_blocks; /* of counted.in: came as large blocks */
    uint64_t run_count, child_count;
    size_t lent;   /* used bytes of ancestors in these runs */
    size_t guests; /* used bytes of this region in runs of descendants */
    size_t pinned; /* bytes of relinked runs under no live block */
    char name[REGION_NAME_BYTES];

    struct fit fit; /* free pieces of all runs but the top */
};

/* ---- slots.c ---- */

struct region *slot_take(struct ebb_pool *pool);
void slot_give(struct ebb_pool *pool, struct region *region);
uint64_t slot_count_open(const struct ebb_pool *pool);
uint64_t slot_count_opened(const struct ebb_pool *pool);

/* True if a region is open in the slot. */
static inline bool region_is_live(const struct region *region) {
    return region->lane.generation & 1;
}

/* ---- tree.c ---- */

/* Says that a handle is of no open region: sets the error, returns NULL. */
struct region *region_not_found(ebb_region handle);

/* The open region behind a handle, or NULL with EBB_E_STALE. */
static inline struct region *region_find(ebb_region handle) {
    size_t offset = (size_t)((char *)handle.lane - range.regions);
    if (offset < range.region_count * RANGE_REGION_BYTES &&
        handle.lane->generation == handle.generation) /* handles are odd, closed slots even */
        return (struct region *)handle.lane;
    return region_not_found(handle);
}

ebb_region region_handle(struct region *region);

/* The region that owns a piece, or owned it when the piece was made. */
struct region *region_of_piece(const struct ebb_piece *piece);

/* From here on nothing that the slot's region owned before is taken for its own. */
void region_new_epoch(struct region *region);


/* True if `ancestor` is on the way up from `region`, excluding itself. */
bool region_is_above(const struct region *ancestor, const struct region *region);

/* Counts again everything that the region counts; aborts if a law does not hold (check.c). */
void region_check(struct region *region);

/* The next region of a walk over `root` and all below it, without recursion; NULL at the end. */
struct region *region_next_below(struct region *at, const struct region *root);

void region_close(struct region *region);
void region_close_children(struct region *region);

/* ---- large.c ---- */

void *large_alloc(struct region *region, size_t bytes, size_t align);
void large_release(struct region *region, struct ebb_piece *block);
int large_resize(struct region *region, struct ebb_piece *block, size_t bytes);

/* A place of `bytes` (multiple of EBB_UNIT) outside of all lists, or NULL with an error. */
struct ebb_piece *large_place(struct region *region, size_t bytes, size_t align);

/* The place is free again, merged with its neighbours. */
void large_free(struct region *region, struct ebb_piece *piece);

/* ---- runs.c ---- */

/* A run becomes the main run, wholly free. Two entries are prepared. */
void runs_add(struct region *region, struct ebb_piece *run);

/* A run goes back to the pool: any one, or the one that `piece`, which is free, fills. */
void runs_give(struct region *region, struct ebb_piece *run);
void runs_give_empty(struct region *region, struct ebb_piece *piece);

/* The region's own run around `addr`, found without a look at what other threads may change. */
struct ebb_piece *runs_around(const struct region *region, uintptr_t addr);

/* Takes in the hot pages behind all runs and joins runs that touch; true if either
 * happened, so that there may be room now. */
bool runs_claim(struct region *region);

/* Makes the top long enough for `bytes` at `align`. */
int runs_grow(struct region *region, size_t bytes, size_t align);

/* Reserves exactly `bytes`, rounded to pages, as the region's first run. */
int runs_reserve(struct region *region, size_t bytes);

/* Forgets all blocks, keeps at most `keep` bytes of runs and lists the others in *given. */
void runs_forget(struct region *region, size_t keep, struct ebb_piece **given);

/* Bytes of pages that were needed so far, without what the main run never used. */
size_t runs_measured(const struct region *region);

/* ---- block.c ---- */

/* A block of the region, with the errors of ebb_region_alloc(); `site` is noted if asked for. */
void *block_allocate(struct region *region, size_t bytes, size_t align, const void *site);

/* The live block at `address`: its piece (block or window) and the bytes asked for it. */
int block_find(struct region *region, const void *address, struct ebb_piece **piece,
               size_t *requested);

/* ---- count.c ---- */

/* Counts `bytes` against all budgets on the way up; EBB_E_REGION_LIMIT or _POOL_LIMIT. */
int count_charge(struct region *region, size_t bytes);
void count_give_back(struct region *region, size_t bytes);

static inline void count_uncharge(struct region *region, size_t bytes) {
    if (region->metered)
        count_give_back(region, bytes);
}

/* Budgets strictly below `until` on the way up. */
void count_uncharge_below(struct region *region, const struct region *until, size_t bytes);

static inline void count_block(struct region *region, size_t requested, size_t used) {
    region->calm = 0;
    flow_enter(&region->counted, 1);
    flow_enter(&region->requested, requested);
    flow_enter(&region->used, used);
}

static inline void count_block_gone(struct region *region, size_t requested, size_t used) {
    flow_leave(&region->counted, 1);
    flow_leave(&region->requested, requested);
    flow_leave(&region->used, used);
}

size_t count_waste(const struct region *region);

/* ---- depart.c ---- */

/* Hands the pages under departed blocks to the heir. Called by close and reset, lock held. */
void depart_locked(struct region *region);

/* ---- promote.c ---- */

/* A departed block is released before its host closed: it becomes an entry of the host again. */
void promote_return(struct region *owner, struct ebb_piece *block);

#endif
