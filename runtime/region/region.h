// SPDX-License-Identifier: Apache-2.0
/*
 * region.h - the private body of a region, and what its parts offer each other.
 *
 *     slots.c     the slots that regions live in
 *     tree.c      open, close, parents and children        lifetimes
 *     small.c     the small lane: windows and bumping      where small blocks go
 *     holes.h     room between its live blocks
 *     large.c     the large lane: best fit in runs         where large blocks go
 *     runs.c      the runs of pages under both lanes
 *     block.c     the public functions on blocks           which lane, which error
 *     count.c     counters and budgets                     what it costs
 *     mark.c      mark, rewind, reset
 *     cleanup.c   callbacks when it ends
 *     kinds.h     objects that it owns, counted by kind
 *     promote.c   what leaves: copy, relink
 *     survivor.h  what is known of a block that leaves
 *     plan.h      where the blocks of a step go, known in advance
 *     track.h     a region that follows a plan, or is recorded
 *     due.c       a step that repeats to the letter
 *     remote.c    releases by other threads
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

/* Objects of one kind that a region has to do with: see kind_live(). */
struct kind_counts {
    uint64_t created, ended, received, given;
    uint64_t attached, detached, moved, copied, relinked, joined;
};

/* What `state` of an object consists of: the owner number of its host, and these (object.h). */
#define OBJECT_LIVE ((uint64_t)0xEB << 48)
#define OBJECT_GATHERED ((uint64_t)1 << 56) /* part of what happens to many */
#define OBJECT_ALONE ((uint64_t)1 << 57)    /* a tensor that nobody else has to do with */
#define OBJECT_TOLD ((uint64_t)1 << 58)     /* a member: the report of its composite has it */
#define OBJECT_WHOLE ((uint64_t)1 << 59)    /* it has had members since it was made */

/* What the layer of objects, if it is in use, wants to be asked. */
struct object_hooks {
    /* Ends the objects that came after the mark `serial`: their blocks are about to go. */
    void (*rewind)(struct region *region, uint64_t serial);
    /* All objects of the block end, which outlives their region: it is held by exports. */
    void (*leave)(void *block);
    /* True if a live block of the region is an object, or the storage of one that has ended; what
     * they need besides is claimed (survivor.h). */
    bool (*needs)(const struct region *region, const void *block);
    /* Walks the objects that the region owns and checks their laws. */
    void (*check)(struct region *region);
    /* The region ends, its contents do not: what one of its cleanups shares with another region
     * goes back; so do leases, which are counted for each process. True: the cleanup is gone. */
    bool (*part)(struct ebb_cleanup *cleanup);
};

/* What the layer of steps, if this is the region of a step, wants to hear. */
struct step_hook {
    void (*closed)(struct step_hook *hook); /* the region is being closed; its blocks still count */
};

/* Blocks that left, and their bytes: those that came since the tally was folded, or all that other
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
    uint16_t calm_blocks;      /* with so many blocks in the tally no count of them can */
    uint32_t rooms;            /* which room that is: an address may begin several, in turn */
    struct popped popped;      /* since then */
    struct ebb_piece *window;  /* the one that is bumped in, or NULL */
    struct ebb_piece *windows; /* all, newest first */
    struct ebb_piece *holes;   /* those with room between live blocks */
    struct ebb_piece *spare;   /* an empty one that waits to be bumped in again, or NULL */

    /* large lane */
    struct ebb_piece *blocks;   /* live large blocks and marks, newest first */
    struct ebb_piece *top;      /* free end of the main run, or NULL */
    struct ebb_piece *main_run; /* the run that grows */
    uintptr_t highest;          /* where the top of the main run began at its highest */
    size_t measured;            /* what runs_measured() said before it last had less */
    struct ebb_piece *runs;     /* all runs, linked by next */
    struct ebb_piece *departed; /* entries of blocks that were relinked and still sit here */
    struct region *heir;        /* where departed blocks go when this region closes */
    struct ebb_piece *holds;    /* bytes of its blocks that are needed outside, see hold.h */
    size_t hold_count, hold_limit; /* how many; when to look for dropped ones */
    struct piece_store store;
    struct starts_store starts; /* maps of the windows */

    /* tree */
    struct ebb_pool *pool;
    struct region *parent, *children;
    struct region *sibling_next, *sibling_prev;
    struct region *free_next; /* closed slots of the pool */
    unsigned depth;
    unsigned closing; /* callbacks at work, here and below */

    /* steps */
    struct step_hook *step;   /* of the step that this is the region of, or NULL */
    atomic_uint_fast64_t *given_back; /* adds what the pool gives back as it closes, or NULL */
    struct growth growth;     /* the last of the main run */
    struct track *track;      /* tied to it, or NULL */
    struct track *bearers;    /* of steps below it that have blocks here, see record.c */
    _Atomic(void *) remote;   /* blocks that other threads released, linked by their first word */
    uint64_t strays;          /* of these: were none */
    struct popped drained;    /* of these: what has left */
    size_t drained_large;     /* of their used bytes: in the large lane */

    /* budget: the nearest region on the way up that has a limit, itself included */
    struct region *budget;
    size_t limit_bytes;
    size_t charged;

    /* ends */
    struct ebb_cleanup *cleanups;     /* newest first */
    struct ebb_object *objects;       /* that it owns, newest first */
    struct ebb_object *came_back;     /* last, of what is older than a mark; may have ended */
    const struct object_hooks *hooks; /* NULL: never had an object */
    struct region *safe;              /* of a shared one that has private things; or NULL */
    struct region *safe_of;           /* this is the safe of that region; or NULL */
    uint64_t ending;                  /* while a rewind is at work: to this mark; else 0 */

    bool sealed, metered, measuring, sites;
    bool shared; /* its pages are a slot's: other processes can write there, see safe.h */
    bool mixed;  /* blocks in its pages may be another region's: block_owner() knows */
    bool hollow; /* its addresses have no memory behind them on the host: measuring, or a device */
    bool keeper; /* a root that has had children: what it allocates outlives steps */
    uint64_t owner; /* of its pieces: slot and epoch */
    uint64_t block_key, window_key, arena_key; /* what pieces of it say; closed: none */
    uint64_t quick_key; /* the window_key, or none while every release must be seen */
    uint32_t epoch;
    unsigned marks;
    uint64_t alone; /* `state` of the objects in it that nobody else has to do with; of a shared
                       one a state that no object has */
    uint64_t mark_serial; /* of the newest mark in the slot, see REGION_MARK_BITS */

    struct flow counted, requested, used; /* blocks, and their bytes */
    size_t large_used;                    /* of used: large blocks, here or in other's runs */
    struct ebb_meter reserved;
    uint64_t large_blocks; /* of counted.in: came as large blocks */
    uint32_t run_count, child_count; /* a range has 2^28 pages, and fewer regions */
    size_t lent;   /* used bytes of ancestors in these runs */
    size_t guests; /* used bytes of this region in runs of descendants */
    size_t pinned; /* bytes of relinked runs under no live block */
    size_t pinned_by_ends; /* of these, when they came: with regions that ended; it only grows */
    size_t padding; /* of a metered region: in windows, counted there only, not used */
    uint64_t promoted; /* bytes that left for a region above, copied or relinked */
    struct ebb_piece *loose; /* the block released last, if it waits for another of its size */

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
 * A mark's serial: the slot, and with so many bits how many marks came there. What describes a mark
 * may come to a region of another slot when its own is closed, so one number is not used twice.
 */
#define REGION_MARK_BITS (64 - PIECE_SLOT_BITS)

/* What users are told of a mark: which one of its slot it was. */
static inline unsigned long long region_mark_number(uint64_t serial) {
    return serial & (((uint64_t)1 << REGION_MARK_BITS) - 1);
}

static inline size_t region_slot(const struct region *region) {
    return (size_t)((const char *)region - range.regions.at) / RANGE_REGION_BYTES;
}

/* What it came to so far, as the site of a step counts it. */
struct region_cost {
    uint64_t blocks, bytes; /* that were allocated, and what was asked for */
    size_t bytes_peak, used_peak, reserved_peak;
};

/* ---- stats.c ---- */

/* Of an open region; its own thread. */
struct region_cost region_read_cost(struct region *region);

/* ---- slots.c ---- */

struct region *slot_take(struct ebb_pool *pool);
void slot_give(struct ebb_pool *pool, struct region *region);

/* What was set up there is open from here on, and never was in the counts of the pool. */
void slot_begin_uncounted(struct region *region);

/* Regions that the program has opened since the pool was made. */
uint64_t slot_count_opened(const struct ebb_pool *pool);

/* True if a region is open in the slot. */
static inline bool region_is_live(const struct region *region) {
    return region->lane.generation & 1;
}

/* ---- tree.c ---- */

/* Says that a handle is of no open region: sets the error, returns NULL. */
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

/* A root for ebb's own work in a pool of the program: it never is in one of its counts but those
 * of pages, no step needs those, and its close ends none. Else as ebb_region_open(). */
ebb_region region_open_uncounted(const char *name, struct ebb_pool *pool);

/* The region that owns a piece, or owned it when the piece was made. */
static inline struct region *region_of_piece(const struct ebb_piece *piece) {
    return (struct region *)(void *)(range.regions.at + piece_slot(piece) * RANGE_REGION_BYTES);
}

/* The same of what an owner number names. */
static inline struct region *region_of_owner(uint64_t owner) {
    uint64_t slot = owner & (((uint64_t)1 << PIECE_SLOT_BITS) - 1);
    return (struct region *)(void *)(range.regions.at + slot * RANGE_REGION_BYTES);
}

/* Others can write to the pages of the region, in this epoch. */
void region_be_shared(struct region *region);

/* From here on nothing that the slot's region owned before is taken for its own. */
void region_new_epoch(struct region *region);

/* A child is a root from now on, its descendants come along. What leads out of it is settled. */
void region_cut_off(struct region *region);

/* True if `ancestor` is on the way up from `region`, excluding itself. */
bool region_is_above(const struct region *ancestor, const struct region *region);

/* Counts again everything that the region counts; aborts if a law does not hold (check.c). */
void region_check(struct region *region);

/* The same without its objects, which may be on their way. */
void region_check_blocks(struct region *region);

/* The next region of a walk over `root` and all below it, without recursion; NULL at the end. */
struct region *region_next_below(struct region *at, const struct region *root);

/* Closes the region and all below it; adds the cleanups that failed. */
void region_close(struct region *region, struct ebb_closed *closed);
void region_close_children(struct region *region, struct ebb_closed *closed);

/* Says that a cleanup must not end the region: the error EBB_E_BUSY. */
int region_is_closing(const struct region *region);

/* Between the two neither the region nor one above it is closed, reset or rewound, whatever the
 * callbacks do that are called meanwhile: cleanups, deleters of producers. */
void region_begin_work(struct region *region);
void region_end_work(struct region *region);

/* 0, or EBB_E_CLEANUP with a text if a cleanup has failed. */
int region_closed(const struct ebb_closed *closed);

/* ---- due.c ---- */

extern HIDDEN const struct ebb_due due_nothing;

/* Nothing is due. */
static inline void region_shut_due(struct region *region) {
    region->lane.due = &due_nothing;
}

/* ---- cleanup.c ---- */

/* Registers a node that lies where no other process can write. */
void cleanup_enlist(struct region *region, struct ebb_cleanup *node);

/* The same as the very last one to run, whatever is registered before or after. */
void cleanup_enlist_last(struct region *region, struct ebb_cleanup *node);

/* Takes such a node out of its list, if it is in one. */
void cleanup_delist(struct ebb_cleanup *node);

/* It is in the list of a region that is open in the process that this one was forked from. */
bool cleanup_is_lost(const struct ebb_cleanup *node);

/* Runs the cleanups that were registered after the mark `serial` (0: all), newest first. */
void cleanup_run_newer(struct region *region, uint64_t serial, struct ebb_closed *closed);

/* The region closes, and its contents are sent: what its cleanups release keeps its bytes, and its
 * place, but for what a call took that fails (undo.h). By who has the region. */
static inline bool region_is_leaving(const struct region *region) {
    return region->shared && region->pool->pages.leaving && !region->pool->pages.undoing;
}

/* The bytes of a block that was released: late reads are seen in checked builds. */
static inline void region_poison(const struct region *region, uintptr_t addr, size_t bytes) {
    if (EBB_POISON && !region->hollow)
        pool_poison(region->pool, addr, bytes);
}

/* ---- large.c ---- */

/* A block, or NULL with an error; `alone`: then as block_refused() goes on. */
void *large_alloc(struct region *region, size_t bytes, size_t align, bool alone);

/* The same at the end of a free place, out of the way of what comes, for a valid request. */
void *large_alloc_behind(struct region *region, size_t bytes, size_t align);

/* As large_alloc() of a block that stands alone, of more than EBB_SMALL_MAX_BYTES, aligned as all
 * are, in a region without a track: quickly where that is simple. */
void *large_alloc_plain(struct region *region, size_t bytes);

int large_release(struct region *region, struct ebb_piece *block);       /* 0 */
int large_release_plain(struct region *region, struct ebb_piece *block); /* quickly if it can be */
int large_resize(struct region *region, struct ebb_piece *block, size_t bytes);

/* A place of `bytes` (multiple of EBB_UNIT) outside of all lists, or NULL with an error. */
struct ebb_piece *large_place(struct region *region, size_t bytes, size_t align);

/* The place is free again, merged with its neighbours. */
void large_free(struct region *region, struct ebb_piece *piece);

/* What was released last waits no longer: it is free. */
void large_settle(struct region *region);

/* ---- runs.c ---- */

/* A run goes back to the pool: any one, or the one that `piece`, which is free, fills. */
void runs_give(struct region *region, struct ebb_piece *run);
void runs_give_empty(struct region *region, struct ebb_piece *piece);

/* The whole pages of a free piece behind `from` go back to the pool, for good: later steps are not
 * expected to need them. What lies before and behind them are two runs from now on. Nothing happens
 * if no entries are left. */
void runs_give_part(struct region *region, struct ebb_piece *piece, uintptr_t from);

/* The same of all free pieces. */
void runs_give_free(struct region *region);

/* The region's own run around `addr`, found without a look at what other threads may change. */
struct ebb_piece *runs_around(const struct region *region, uintptr_t addr);

/* It is no arena's any more: neighbours may look. */
void runs_unmark(struct region *region, struct ebb_piece *run);

/* Takes in the hot pages around all runs and joins runs that touch; true if either happened, so
 * that there may be room now. Where the pool's limit might refuse more, only what makes it. */
bool runs_claim(struct region *region, size_t bytes, size_t align);

/* Makes the top long enough for `bytes` at `align`. */
int runs_grow(struct region *region, size_t bytes, size_t align);

/* True if a new run, or the grown top, could have a block were the run `other` the pool's. */
bool runs_could_serve(const struct region *region, const struct ebb_piece *other, size_t bytes,
                      size_t align);

/* Reserves exactly `bytes`, rounded to pages, as the region's first run. */
int runs_reserve(struct region *region, size_t bytes);

/* Forgets all blocks, keeps at most `keep` bytes of runs and lists the others in *given. */
void runs_forget(struct region *region, size_t keep, struct ebb_piece **given);

/* Bytes of pages that were needed so far, without what the main run never used. */
size_t runs_measured(const struct region *region);

/* ---- keeper.c ---- */

/* A step below the root ends. */
void keeper_step_ended(struct region *keeper);

/* What is free between its blocks goes: all of it, or, if that is half of what it has, some, the
 * largest pieces first. */
void keeper_settle(struct region *keeper, bool wholly);

/* A place joins the free piece behind it, in which nothing was put since the last look. */
void keeper_joins_idle(struct region *keeper, struct ebb_piece *piece,
                       const struct ebb_piece *after);

/* ---- block.c ---- */

/* A block of the region, with the errors of ebb_region_alloc(); `site` is noted if asked for. */
void *block_allocate(struct region *region, size_t bytes, size_t align, const void *site);

/* The same, quickly where that is simple: for objects and their arrays. */
void *block_for_object(struct region *region, size_t bytes, size_t align, const void *site);

/* The same with a key of the place in the program, for regions that follow a plan. What has
 * survived earlier steps may be born in the parent. */
void *block_allocate_keyed(struct region *region, size_t bytes, size_t align, uint32_t key,
                           const void *site);

/* The same as block_allocate(), for what no other process may write to. */
void *block_allocate_private(struct region *region, size_t bytes, size_t align, const void *site);

/* The same even if the region is sealed: for bookkeeping, with nothing in hand. The sizes are
 * right. */
void *block_place_private(struct region *region, size_t bytes, size_t align);

/* The same in the region's pages, whoever can write there. */
void *block_place(struct region *region, size_t bytes, size_t align);

/* For a call of the program that no lane had a place for: once more, if others have released what
 * was in the way; else NULL, and the program's handler hears of it (exhausted.h). */
void *block_refused(struct region *region, size_t bytes, size_t align);

/* The region that has the block at `addr`, which lies in `place`: that, a step below it, or the one
 * whose safe it is. */
struct region *block_owner(struct region *place, uintptr_t addr);

/* Opens or shuts the quick ways to release, as the region's state asks. */
void block_set_quick(struct region *region);

/* A live block as it was found. */
struct block_place {
    struct region *owner;    /* of the piece: the region that was asked, its parent or its safe */
    struct ebb_piece *piece; /* its own, or the window or arena around it */
    struct track_slot *slot; /* of one in an arena */
    size_t requested;
};

/* Finds the live block at `address`, or says why there is none. */
int block_find(struct region *region, const void *address, struct block_place *place);

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
    flow_bring(&region->counted, 1);
    flow_bring(&region->requested, requested);
    flow_bring(&region->used, used);
    int64_t below = region->counted.below | region->requested.below | region->used.below;
    if (__builtin_expect(below < 0, 0)) { /* one of them is */
        flow_note_peak(&region->counted);
        flow_note_peak(&region->requested);
        flow_note_peak(&region->used);
    }
}

static inline void count_block_gone(struct region *region, size_t requested, size_t used) {
    flow_leave(&region->counted, 1);
    flow_leave(&region->requested, requested);
    flow_leave(&region->used, used);
}

size_t count_waste(const struct region *region);

/* Blocks alive in the region and all below it, and those that were born for it in its parent, but
 * none in a safe. Settle first, or what others have let go of is alive. */
uint64_t count_live_blocks(struct region *region);

/* ---- depart.c ---- */

/*
 * Hands the pages under departed blocks to the heir and those under held bytes to the pool. Called
 * by close and reset, lock held. Holds that were dropped are left: sweep without the lock.
 */
void depart_locked(struct region *region);

/* ---- remote.c ---- */

/* Releases what other threads have handed in. */
void remote_drain(struct region *region);

static inline void remote_look(struct region *region) {
    /* relaxed: who takes the list acquires it */
    if (__builtin_expect(atomic_load_explicit(&region->remote, memory_order_relaxed) != NULL, 0))
        remote_drain(region);
}

/* The same of the whole tree, for a call that was refused and has nothing in hand: true if it may
 * try again. Limits further up, and the pool's, count what is anywhere in it. */
bool remote_makes_room(struct region *region);

/* True if that may help where a block of `owner` could not be resized, and why it could not. */
bool remote_may_allow(const struct region *owner, int refusal);

/* Ends what consumers have given back: hold_sweep(), for who may be in the middle of a call that
 * undoes what it did. */
void remote_sweep(struct region *region);

/* Both, for who counts blocks or has the caller name some. */
void remote_settle(struct region *region);

/* The same of all regions below, too: what was released there may lie in one further up. */
void remote_settle_below(struct region *region);

/* ---- promote.c ---- */

/* Adds what a promotion cost; `cost` may be NULL. */
void promoted_add(struct ebb_promoted *cost, const struct ebb_promoted *more);

/* What was promoted to a region above has left the source. */
static inline void promoted_count(struct region *source, const struct ebb_promoted *cost) {
    source->promoted += cost->copied_bytes + cost->relinked_bytes;
}

/* A mode beside those of ebb/promote.h: by copy, even if the block was born in the target, since it
 * stays what it was for others. */
#define PROMOTE_APART (EBB_PROMOTE_RELINK + 1)

/*
 * Promotes blocks of objects as ebb_promote() does. `anywhere`: by copy, to any region.
 */
int promote_blocks(struct region *source, struct region *target, struct ebb_survivor *list,
                   size_t count, bool anywhere, const void *site, struct ebb_promoted *cost);

/* As ebb_promote(), from a step that ends next: few survivors are copied, if they can be, so that
 * the next steps find its pages in one piece. `site`: who promotes; *apart: how many of the copies
 * are of what lay in a safe. */
int promote_at_end_of_step(ebb_region source, ebb_region target, struct ebb_survivor *list,
                           size_t count, const void *site, struct ebb_promoted *cost,
                           uint64_t *apart);

/* A departed block is released before its host closed: it becomes an entry of the host again. */
void promote_return(struct region *owner, struct ebb_piece *block);

/* ---- device.c ---- */

/* Says why what needs memory of the host cannot be done in a hollow region; its code. */
int region_refuse_hollow(const struct region *region, const char *why) __attribute__((cold));

/* The region is memory of a device. */
static inline bool region_is_on_device(const struct region *region) {
    return region->hollow && !region->measuring;
}

#endif
