// SPDX-License-Identifier: Apache-2.0
/*
 * region.h - the private body of a region, its handle and its life; what it consists of is beside:
 *
 *     slots.c     the slots that regions live in
 *     tree.c      open, close, parents and children        lifetimes
 *     small.h     the small lane: blocks are bumped        where small blocks go
 *     windows.h   where its room is
 *     holes.h     room between its live blocks
 *     large.h     the large lane: best fit in runs         where large blocks go
 *     runs.h      the runs of pages under both lanes
 *     cut.c       free pages inside of runs go back
 *     gaps.h      pages that nothing lies in
 *     keeper.h    what a root that stays open gives back
 *     block.h     blocks are made and resized              which lane, which error
 *     lookup.h    the block at an address, or why none is there
 *     release.c   blocks are released
 *     count.h     counters and budgets                     what it costs
 *     mark.c      mark, rewind, reset
 *     cleanup.h   callbacks when it ends
 *     kinds.h     objects that it owns, counted by kind
 *     promote.h   what leaves: copies, and blocks that
 *     relink.h    change hands where they lie
 *     weigh.h     which of the two, where that is ebb's choice
 *     survivor.h  what is known of a block that leaves
 *     plan.h      where the blocks of a step go, known in advance
 *     track.h     a region that follows a plan, or is recorded
 *     serve.c     slots are served, where the inline paths do not suffice
 *     takeover.c  a step has outgrown its plan
 *     dissolve.c  blocks of an arena outlive the step where they are
 *     tide.h      the most that it served at once
 *     record.h    what comes and goes in a step, and what of it is born above
 *     due.h       a step that repeats to the letter
 *     remote.h    releases by other threads
 *     safe.h      what a region must not keep in memory that others can write to
 *     hold.h      bytes that are needed outside
 *     undo.h      failed calls leave no trace
 *     scratch.h   bytes that come and go within a call
 *     depart.c    what becomes of relinked blocks' and held bytes' pages at close
 *     relinked.h  runs of relinked survivors
 *     device.c    memory of a device: addresses, copies
 *     exhausted.h the report when nothing is left
 *     stats.c     what users read of all this
 *     check.c     the walker that counts it again
 *
 * Bodies live in slots that are never unmapped. A slot's generation is odd while a region is
 * open in it and grows with every open and close, so a stale handle never matches again.
 *
 * Laws (region_check() walks them):
 *     used now         = large_used + live bytes of all windows - padding
 *     reserved.current = bytes of all runs
 *     waste            = reserved - lent - (used now - guests)
 */
#ifndef EBB_REGION_REGION_H
#define EBB_REGION_REGION_H

#include "base/poison.h"
#include "pool/pool.h"
#include "pool/starts.h"

#include <ebb/cleanup.h>
#include <ebb/promote.h>

#define REGION_NAME_BYTES 32

/* What became of a region's objects of one kind: see kind_live(). */
struct kind_counts {
    uint64_t created, ended, received, given;
    uint64_t attached, detached, moved, copied, relinked, joined;
};

/* An object's `state`: the owner number of its host, and these bits (object.h). */
#define OBJECT_LIVE ((uint64_t)0xEB << 48)
#define OBJECT_GATHERED ((uint64_t)1 << 56) /* among the objects of the call at work */
#define OBJECT_ALONE ((uint64_t)1 << 57)    /* a tensor that nothing else refers to */
#define OBJECT_TOLD ((uint64_t)1 << 58)     /* a member that the report has printed */
#define OBJECT_WHOLE ((uint64_t)1 << 59)    /* it has had members since it was made */

/* Callbacks into the layer of objects, once a region has had one. */
struct object_hooks {
    /* Ends the objects that came after the mark `serial`: their blocks are about to go. */
    void (*rewind)(struct region *region, uint64_t serial);
    /* Ends all objects in the block, which outlives their region: exports hold it. */
    void (*leave)(void *block);
    /* True if a live block of the region is an object, or the storage of one that has ended; other
     * blocks that objects need are claimed (survivor.h). */
    bool (*needs)(const struct region *region, const void *block);
    /* Walks the objects that the region owns and checks their laws. */
    void (*check)(struct region *region);
    /* The region ends but its contents are sent on: gives back what the cleanup shares with another
     * region, or its lease, which each process counts for itself. True: the cleanup is gone. */
    bool (*part)(struct ebb_cleanup *cleanup);
};

/* Callback into the layer of steps, for the region of a step. */
struct step_hook {
    void (*closed)(struct step_hook *hook); /* the region is being closed; its blocks still count */
};

/* Blocks that left, and their bytes: either of those bumped since the last fold, or all that other
 * threads released. */
struct popped {
    uint64_t blocks, requested, used;
};

struct region {
    struct ebb_lane lane; /* first: a handle points here */

    /* small lane */
    uintptr_t limit;           /* true end of the room at lane.cursor; lane.limit may be shut */
    uintptr_t room;            /* where the room at the cursor begins, or the newest mark */
    uintptr_t folded;          /* cursor when the tally was last folded */
    uintptr_t calm;            /* below this cursor no count of bytes can have passed its peak */
    uint16_t calm_blocks;      /* up to so many blocks in the tally, nor can the count of blocks */
    uint32_t rooms;            /* number of the room: one address may begin several in turn */
    struct popped popped;      /* bumped since the last fold, and released */
    struct ebb_piece *window;  /* the one that is bumped in, or NULL */
    struct ebb_piece *windows; /* all, newest first */
    struct ebb_piece *holes;   /* those with room between live blocks */
    struct ebb_piece *spare;   /* an empty one that waits to be bumped in again, or NULL */

    /* large lane */
    struct ebb_piece *blocks;   /* live large blocks and marks, newest first */
    struct ebb_piece *top;      /* free end of the main run, or NULL */
    struct ebb_piece *main_run; /* the run that grows */
    uintptr_t highest;          /* where the top of the main run began at its highest */
    size_t measured;            /* what runs_measured() was before runs were last given back */
    struct ebb_piece *runs;     /* all runs, linked by next */
    struct ebb_piece *departed; /* entries of blocks that were relinked and still sit here */
    struct region *heir;        /* where departed blocks go when this region closes */
    struct ebb_piece *holds;    /* bytes of its blocks that are needed outside, see hold.h */
    size_t hold_count, hold_limit; /* how many; from so many on, look for dropped ones */
    struct piece_store store;
    struct starts_store starts; /* maps of the windows */

    /* tree */
    struct ebb_pool *pool;
    struct region *parent, *children;
    struct region *sibling_next, *sibling_prev;
    struct region *free_next; /* closed slots of the pool */
    unsigned depth;
    unsigned closing; /* callbacks that are running, here and below */

    /* steps */
    struct step_hook *step;   /* of the step that this is the region of, or NULL */
    atomic_uint_fast64_t *given_back; /* receives what the pool gives back at its close, or NULL */
    struct growth growth;     /* the last of the main run */
    struct track *track;      /* tied to it, or NULL */
    struct track *bearers;    /* tracks of steps below that have blocks here, see record.c */
    _Atomic(void *) remote;   /* what other threads released, linked by first words */
    uint64_t strays;          /* of that: what was no block */
    struct popped drained;    /* of that: blocks that have left */
    size_t drained_large;     /* their used bytes in the large lane */

    /* budget: the nearest region on the way up that has a limit, itself included */
    struct region *budget;
    size_t limit_bytes;
    size_t charged;

    /* ends */
    struct ebb_cleanup *cleanups;     /* newest first */
    struct ebb_object *objects;       /* that it owns, newest first */
    struct ebb_object *came_back;     /* the last to return that is older than a mark; it may have
                                         ended */
    const struct object_hooks *hooks; /* NULL: never had an object */
    struct region *safe;              /* of a shared one that has private things; or NULL */
    struct region *safe_of;           /* this is the safe of that region; or NULL */
    uint64_t ending;                  /* the mark that a rewind at work goes back to; else 0 */

    bool sealed, metered, measuring, sites;
    bool shared; /* its pages are a slot's: other processes can write there, see safe.h */
    bool mixed;  /* blocks in its pages may be another region's: ask block_owner() */
    bool hollow; /* no memory of the host behind its addresses: it measures, or is a device's */
    bool keeper; /* a root that has had children: what it allocates outlives steps */
    uint64_t owner; /* of its pieces: slot and epoch */
    uint64_t block_key, window_key, arena_key; /* piece_key() of its pieces; closed: no piece's */
    uint64_t quick_key; /* window_key, or no piece's while every release must be seen */
    uint32_t epoch;
    unsigned marks;
    uint64_t alone; /* `state` of objects in it that are OBJECT_ALONE; if it is shared, a state that
                       no object has */
    uint64_t mark_serial; /* of the newest mark in the slot, see REGION_MARK_BITS */

    struct flow counted, requested, used; /* blocks, and their bytes */
    size_t large_used;                    /* of used: large blocks, in its own or others' runs */
    struct ebb_meter reserved;
    uint64_t large_blocks; /* of counted.in: those that came as large blocks */
    uint32_t run_count, child_count; /* a range has 2^28 pages, and fewer regions */
    size_t lent;   /* used bytes of ancestors in its runs */
    size_t guests; /* its used bytes in runs of descendants */
    size_t pinned; /* bytes of relinked runs under no live block */
    size_t pinned_by_ends; /* sum of what was pinned when regions below ended; only grows */
    size_t padding; /* metered regions: padding in windows, which is not used there */
    uint64_t promoted; /* bytes that left for a region above, copied or relinked */
    struct ebb_piece *loose; /* the block released last, kept for another of its size */

    uintptr_t needed; /* what lies before it in the main run was used before a reset or in another
                       * run, or was asked for: no less is needed, whatever is placed */

    /* keeper.c */
    uintptr_t idle_at, idle_end; /* its largest free piece at the last look, less what was used */
    uint8_t steps_below; /* that ended since that look */
    bool hinted;         /* it keeps the pages that it has asked for */

    bool uncounted; /* ebb's own work, see region_open_uncounted() */
    bool settling;  /* what others let go of is being ended: remote.c */
    bool inner;     /* its pool is: ebb_region_of() does not name it, and who asks about an address
                     * in it, on whatever thread, changes nothing */

    char name[REGION_NAME_BYTES];

    struct ebb_cleanup door;  /* while it has a safe: closes that */
    struct region *list_next; /* all slots of the pool: walked while regions open and close */
    struct ebb_pool *home;    /* on whose list it is; NULL: it is about to leave that */
    uint32_t place; /* of the pool's spare slots: where it was opened from */
    uint32_t kinds; /* bit k: kind_counts[k] is valid; none in a closed slot */
    struct kind_counts kind_counts[POOL_KINDS];
    struct fit fit; /* free pieces of all runs but the top and the loose one */
};

/*
 * A mark's serial: the slot, and in these low bits the number of the mark there. The entry of a
 * closed region's mark may serve a region of another slot, so no serial is used twice.
 */
#define REGION_MARK_BITS (64 - PIECE_SLOT_BITS)

/* The number of a mark in its slot, for texts. */
static inline unsigned long long region_mark_number(uint64_t serial) {
    return serial & (((uint64_t)1 << REGION_MARK_BITS) - 1);
}

static inline size_t region_slot(const struct region *region) {
    return (size_t)((const char *)region - range.regions.at) / RANGE_REGION_BYTES;
}

/* What a region has cost so far, for the site of a step. */
struct region_cost {
    uint64_t blocks, bytes; /* allocated, and as requested */
    size_t bytes_peak, used_peak, reserved_peak;
};

/* ---- stats.c ---- */

/* Of an open region; its own thread. */
struct region_cost region_read_cost(struct region *region);

/* ---- slots.c ---- */

struct region *slot_take(struct ebb_pool *pool);
void slot_give(struct ebb_pool *pool, struct region *region);

/* Opens the region that was set up in the slot; the pool does not count it. */
void slot_begin_uncounted(struct region *region);

/* Regions that the program has opened since the pool was made. */
uint64_t slot_count_opened(const struct ebb_pool *pool);

/* True if a region is open in the slot. */
static inline bool region_is_live(const struct region *region) {
    return region->lane.generation & 1;
}

/* ---- tree.c ---- */

/* Sets the error EBB_E_STALE, for a handle of no open region; returns NULL. */
struct region *region_not_found(ebb_region handle);

/* The open region behind a handle, or NULL. */
static inline struct region *region_peek(ebb_region handle) {
    size_t offset = (size_t)((char *)handle.lane - range.regions.at);
    /* relaxed: who has a handle has it from who opened the region */
    if (offset < atomic_load_explicit(&range.regions.open, memory_order_relaxed) &&
        handle.lane->generation == handle.generation) /* handles are odd, closed slots even */
        return (struct region *)handle.lane;
    return NULL;
}

/* The same; if there is none, the error EBB_E_STALE is set. */
static inline struct region *region_find(ebb_region handle) {
    struct region *region = region_peek(handle);
    return region ? region : region_not_found(handle);
}

ebb_region region_handle(struct region *region);

/* As ebb_region_open(), a root for ebb's own work in a pool of the program: the pool counts its
 * pages alone, and neither those nor its close are part of any step. */
ebb_region region_open_uncounted(const char *name, struct ebb_pool *pool);

/* The region that owns a piece, or owned it when the piece was made. */
static inline struct region *region_of_piece(const struct ebb_piece *piece) {
    return (struct region *)(void *)(range.regions.at + piece_slot(piece) * RANGE_REGION_BYTES);
}

/* The region that an owner number names. */
static inline struct region *region_of_owner(uint64_t owner) {
    uint64_t slot = owner & (((uint64_t)1 << PIECE_SLOT_BITS) - 1);
    return (struct region *)(void *)(range.regions.at + slot * RANGE_REGION_BYTES);
}

/* In this epoch other processes can write to the region's pages. */
void region_be_shared(struct region *region);

/* Disowns all pieces that the slot's region has had so far. */
void region_new_epoch(struct region *region);

/* Makes a child a root, with its descendants. Nothing may refer out of it any more. */
void region_cut_off(struct region *region);

/* True if `ancestor` is on the way up from `region`, excluding itself. */
bool region_is_above(const struct region *ancestor, const struct region *region);

/* Recounts everything that the region counts; aborts if a law does not hold (check.c). */
void region_check(struct region *region);

/* The same without its objects, which may be about to move. */
void region_check_blocks(struct region *region);

/* The next region of a walk over `root` and all below it, without recursion; NULL at the end. */
struct region *region_next_below(struct region *at, const struct region *root);

/* Closes the region and all below it; adds the cleanups that failed. */
void region_close(struct region *region, struct ebb_closed *closed);
void region_close_children(struct region *region, struct ebb_closed *closed);

/* Sets and returns EBB_E_BUSY: a cleanup that is running must not end the region. */
int region_refuse_closing(const struct region *region);

/* Between these two, callbacks of the program (cleanups, producers' deleters) cannot close, reset
 * or rewind the region or one above it. */
void region_begin_work(struct region *region);
void region_end_work(struct region *region);

/* 0, or EBB_E_CLEANUP with a text if a cleanup has failed. */
int region_closed(const struct ebb_closed *closed);

/* ---- its state ---- */

/* True while the region closes because its contents are sent: blocks that cleanups release then
 * keep their bytes and place, except those that a failing call took (undo.h). Its thread. */
static inline bool region_is_leaving(const struct region *region) {
    return region->shared && region->pool->pages.leaving && !region->pool->pages.undoing;
}

/* Poisons the bytes of a released block: checked builds see late reads. */
static inline void region_poison(const struct region *region, uintptr_t addr, size_t bytes) {
    if (EBB_POISON && !region->hollow)
        pool_poison(region->pool, addr, bytes);
}

/* ---- depart.c ---- */

/*
 * Hands the pages under departed blocks to the heir and those under held bytes to the pool. Called
 * by close and reset, lock held. Leaves dropped holds alone: sweep them before, without the lock.
 */
void depart_locked(struct region *region);

/* ---- device.c ---- */

/* Sets and returns the error of a call that needs memory of the host, in a hollow region. */
int region_refuse_hollow(const struct region *region, const char *why) __attribute__((cold));

/* True if the region is memory of a device. */
static inline bool region_is_on_device(const struct region *region) {
    return region->hollow && !region->measuring;
}

#endif
