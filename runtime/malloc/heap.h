// SPDX-License-Identifier: Apache-2.0
/*
 * heap.h - a thread's heap, the scopes in it, and how they allocate.
 *
 *     thread -> scope -> outer scope -> ...      the innermost one that was entered serves malloc()
 *           `-> heap     keeper, a region: large blocks that outlived their scopes
 *                        stash: empty trays, hot while the thread is busy; hardened: none
 *                        handed in: large blocks that other threads freed
 *                        postponed: of those, the ones that a cooling thread did not get to
 *                        cooled: of those, the ones whose pages it has given back
 *
 * A heap belongs to one thread at a time. When the thread ends its scopes end, and the heap waits
 * for the next thread that begins one: its blocks stay where they are, and what others freed is
 * taken in then. While scopes in it still wait for memory to end no thread gets it, unless there is
 * no memory for another heap. In the child of a fork the heaps of all other threads are lost, since
 * it is unknown what they were in the middle of. Their blocks stay.
 *
 * A thread may do nothing with an open scope for a long time: its connection waits, or the loop
 * whose turn it is computes. So the scope is parked where that may happen: until it allocates or
 * frees another large block, other threads may look for unneeded pages in its step's region.
 *
 * "Cooling" gives pages back that have not been used for a while; any thread may do it (cool.c).
 *
 * Invariant: only the thread that has a heap calls functions of ebb on its regions, except that a
 * cooling thread looks at parked ones, under a lock: no block comes or goes there, though it may be
 * noted which ones are alive; and that it settles the keeper between two of these calls.
 */
#ifndef EBB_MALLOC_HEAP_H
#define EBB_MALLOC_HEAP_H

#include "base/hidden.h"
#include "malloc/guard.h"
#include "malloc/large.h"
#include "malloc/leaks.h"
#include "malloc/suspects.h"
#include "malloc/tray.h"

#include "region/gaps.h"

#include <ebb/scope.h>

#include <pthread.h>

#define HEAP_STASH 18u /* trays: a MiB at most */

/* Freed small blocks of a scope, by size: linked by their first word, newest first. */
struct scope_free {
    void *newest[TRAY_MOST / TRAY_GRANULE + 1];
};

extern HIDDEN struct scope_free scope_free_none; /* of scopes without trays */

struct scope {
    uintptr_t cursor, limit; /* the unused part of the tray in use; both 0: there is none */
    struct tray *tray;
    struct scope_free *free; /* scope_free_none before it has trays */
    uint64_t blocks, bytes;  /* allocated in trays; bytes as placed */
    uint64_t freed_bytes;    /* of these, by this thread */
    struct tray *full;       /* trays before the one in use, newest first */
    struct large *larges;    /* alive */
    uint64_t large_blocks, large_bytes; /* allocated so far */
    uint64_t asked_bytes;    /* of all large requests, also those that the general heap served */
    uint64_t alive_bytes;    /* of live large blocks of its step */
    uint64_t tenured_bytes;  /* of these: not in the pages of its step */
    struct heap *heap;
    struct served *served;   /* of its site */
    _Atomic(uint64_t) *counts; /* the heap's share in `served` */
    uint64_t tag;
    uint32_t freed_steps;    /* of blocks in lists, or-ed: lists of larger ones are empty */
    unsigned trays;          /* count */
    unsigned look_at;        /* count of trays at which to look whether they are mostly dead */
    unsigned vain_sweeps;    /* in a row: sweeps for empty trays after which most were left */
    uint64_t swept_at;       /* bytes allocated and freed by the last sweep */
    uint64_t open_bytes;     /* pages that its site counts for it */
    ebb_step step;           /* has the large blocks; begun with the first one */
    bool is_parked;          /* other threads may look at the step's region */
    bool is_warm;            /* is parked, and not all of the region was looked at */
    struct scope *warm_next, *warm_prev; /* warm scopes of the heap */
    uint64_t seen_ms;        /* when a cooling thread first saw it parked; 0: not yet */
    uint64_t trims;          /* number of the last trim before it was parked */
    struct region_gap gap;   /* how far cooling has come between its large blocks */
    size_t cooled;           /* bytes given back since it was parked */
    bool is_small;           /* of its arena, too: huge pages are not welcome there meanwhile */
    struct scope *outer, *inner; /* entered before this one, and after it */
    bool entered;
    bool plain;              /* small blocks go to the general heap from now on */
    bool is_modest;          /* its site was modest when it began (served.h) */
    bool over;               /* a turn's scope that ends when it would need memory (turn.h) */
    _Atomic(bool) abandoned; /* its step was ended by another thread */
    struct scope *next, *prev; /* all open scopes of the heap */
    void **place;            /* the step's reference to this scope, to be cleared */
};

/* Stands for a scope that begins with its first block, see turn.h. Never changes. */
extern HIDDEN struct scope scope_awaited;

struct heap {
    struct scope *open;   /* scopes, newest first */
    struct scope *stuck;  /* ended, but there was no memory to keep what survives */
    struct scope *spare;  /* records of ended ones */
    size_t opens, spares; /* counts of these */
    pthread_mutex_t parked_lock; /* protects all that is parked */
    _Atomic(bool) is_wanted; /* its thread waits for that lock */
    struct scope *warm;   /* warm scopes, the one parked last first */
    struct scope *turn_of; /* the one that cooling goes on with; NULL: the first */
    _Atomic(struct tray *) stash[HEAP_STASH]; /* NULL: a cooling thread took it */
    unsigned stashed;     /* places in use, from the first on; for its thread only */
    unsigned number;      /* among all heaps */
    _Atomic(uint64_t) begun; /* scopes; if it grows the thread does not rest */
    _Atomic(uint64_t) ended, ended_large; /* scopes; those that had a step for large blocks */
    uint64_t seen_begun;  /* `begun` as cooling saw it last */
    uint64_t rests_since_ms; /* since when cooling saw no change of it; 0: not yet */
    ebb_region keeper;
    _Atomic(bool) keeper_is_taken; /* with steps below it, by who calls functions of ebb there */
    bool keeper_is_used;  /* since cooling has settled it */
    unsigned since_settled; /* ends of scopes, and of kept blocks, since the keeper was settled */
    size_t freed_since;     /* bytes of these blocks */
    unsigned settle_in;     /* ends of scopes before `freed_since` alone settles the keeper again */
    struct suspects suspects;
    struct large *kept;   /* large blocks that outlived their scopes */
    struct large *unused; /* records */
    large_list handed_in; /* freed by other threads */
    large_list postponed; /* of these: cooling has put them off to its next look */
    large_list cooled;    /* of these: their pages were given back */
    _Atomic(bool) has_abandoned; /* some of its open scopes are to end (scope.c) */
    struct heap *next;    /* all heaps */
    struct heap *next_left; /* heaps without a thread */
    struct heap **left_at;  /* the link to this one among those; NULL: it has a thread */
};

/* Of each thread. */
struct here {
    struct scope *scope; /* serves malloc(); NULL: the general heap does */
    struct heap *heap;   /* NULL: no scope was begun yet */
    struct scope *aside; /* the scope, while this thread forks */
    unsigned away;       /* it stands aside (scope.c), so many times: the rest is as at first */
};

extern HIDDEN __thread struct here here __attribute__((tls_model("initial-exec")));

/* The end of the zone of trays and of the range of ebb: no block of a scope lies above. All others
 * do, where the system places reservations as it is asked to (base/os.c), so that one comparison
 * rules them out. 0 before the first scope. */
extern HIDDEN uintptr_t heap_end;

static inline bool heap_may_hold(uintptr_t addr) {
    /* acquire: pairs with span_all(); who frees another block below looks at the zone */
    return addr < __atomic_load_n(&heap_end, __ATOMIC_ACQUIRE);
}

/* ---- heap.c ---- */

/* Makes forks wait for the locks of this layer, of pools and of sites. To be called when the
 * library is loaded: the first scope may be about to begin while another thread forks. */
void heap_watch_forks(void);

/* Makes the key for ends of threads, unless it is made. heap_own() needs it. */
void heap_make_key(void);

/* The pool that the large blocks of all scopes are in; NULL: there is none (yet). */
ebb_pool *heap_pool(void);

/* This thread's heap, made or taken over if need be; NULL: no memory. */
struct heap *heap_own(void);

/* Takes in the blocks that others have freed. Its own thread only. */
void heap_drain(struct heap *heap);

/* Hands a large block, whose record this thread has marked, in to its heap. */
void heap_hand_in(struct large *large);

/* Takes an empty tray, a hot one of the heap's if there is one; NULL: no memory. Gives one back; in
 * the hardened library it is closed first (closed.h). */
struct tray *heap_take_tray(struct heap *heap);
void heap_give_tray(struct heap *heap, struct tray *tray);

/* Gives a tray that is nobody's to this thread's heap, or back if there is none. */
void heap_give_any_tray(struct tray *tray);

/* Empties a place of the stash and returns what was in it; NULL: another thread took it. */
struct tray *heap_take_place(struct heap *heap, unsigned place);

/* Gives back all empty trays of the heap. */
void heap_drop_stash(struct heap *heap);

/* The region for what outlives scopes, opened if need be. */
ebb_region heap_keeper(struct heap *heap);

/* Not a lock: none that may be held for a whole call of ebb, which takes its own, could be taken by
 * forks in order. They need not, since in the child nobody waits for heaps that are lost. */
static inline bool heap_try_keeper(struct heap *heap) {
    /* acquire: pairs with heap_leave_keeper() */
    return !atomic_exchange_explicit(&heap->keeper_is_taken, true, memory_order_acquire);
}

/* Who settles it is soon done. */
void heap_await_keeper(struct heap *heap);

/* Its own thread, around what it does with the keeper or with steps below it. */
static inline void heap_take_keeper(struct heap *heap) {
    if (__builtin_expect(!heap_try_keeper(heap), 0))
        heap_await_keeper(heap);
    heap->keeper_is_used = true;
}

static inline void heap_leave_keeper(struct heap *heap) {
    atomic_store_explicit(&heap->keeper_is_taken, false, memory_order_release);
}

/* Gives the keeper's unneeded pages to the pool: all, at once; or, now and then and only if they
 * are many, when a scope has ended (0 bytes) or a block of the keeper's was freed. */
void heap_settle(struct heap *heap);
void heap_settle_now_and_then(struct heap *heap, size_t freed_bytes);

/* The same of a thread that rests: all, if it `is_due`. True: some may be left. Any thread, with
 * the lock of all heaps held, and no other: it is given back meanwhile. */
bool heap_settle_resting(struct heap *heap, bool is_due);

/* The lock of all heaps. It also protects what a thread shares with others that close the region of
 * its scope. */
void heap_lock(bool take);

/* True if some thread is waiting for it. */
bool heap_is_awaited(void);

/* All heaps, linked by `next`; NULL: there is none. With that lock held. */
struct heap *heap_newest(void);

/* Scopes of all threads that have ended; those of them that had a step for large blocks. */
struct heap_ended {
    uint64_t scopes, large_scopes;
};
struct heap_ended heap_read_ended(void);

/* In heaps of ended threads: drops what others freed and what is kept for later, and ends scopes
 * that could not end for want of memory. Any thread, with no lock of sites, pools or heaps held. */
void heap_tidy_left(void);

/* ---- cool.c ---- */

/* Begins a trim and returns its number. */
uint64_t heap_begin_trim(void);

/* What heap_cool() is to do, and has done. */
struct heap_cooling {
    uint64_t now_ms;     /* the time, above 0, if only what has waited is to go */
    unsigned least_ms;   /* then: how long it must have waited */
    uint64_t limit_ns;   /* how long to work, at most; a few MiB more may be done */
    uint64_t trim;       /* only scopes parked before this trim; 0: all */
    size_t given;        /* bytes that were resident and have gone */
    uint64_t parts;      /* pieces of work done, whether or not any bytes went */
    unsigned fruitless;  /* heaps in a row without work */
    unsigned turns;      /* of heaps */
    bool is_around;      /* each heap has had one */
    /* in: from the look before this one; out: for the next one */
    struct heap *turn_of; /* the heap to begin with; NULL: any */
    unsigned exhausted;   /* heaps in a row up to there that had nothing left */
};

/*
 * Gives pages back to the system that have not been used for `least_ms`: of blocks handed in to a
 * thread that rests (the blocks stay its own); and between the large blocks of parked scopes. Of a
 * thread that has begun no scope for so long empty trays go to jemalloc, and to the pool what is
 * free between blocks that outlived scopes. Holds a lock that forks and new threads wait for. True:
 * something is left; a trim calls it until nothing is. Any thread.
 */
bool heap_cool(struct heap_cooling *cooling);

/* Bytes of pages that regions of heaps own but that were given back in this way. */
uint64_t heap_cooled_bytes(void);

/* So many of these bytes are resident again, or no longer a heap's. */
void heap_forget_cooled(size_t bytes);

/* Lets other threads look at the step's region, if there is one; or no longer, before it changes.
 * Its own thread. */
void heap_park(struct scope *scope);
void heap_unpark(struct scope *scope);

/* ---- scope.c, scope_small.c, scope_large.c ---- */

/* The next place in the tray in use; NULL: no room. */
static inline struct tray_head *scope_bump(struct scope *scope, size_t step, size_t align) {
    uintptr_t start = scope->cursor;
    uintptr_t block = align > TRAY_GRANULE ? (start + align - 1) & ~(align - 1) : start;
    if (!__builtin_expect(block + step <= scope->limit, 1))
        return NULL;
    if (block > start)
        *tray_head_of((void *)start) =
            (struct tray_head){.mark = TRAY_GAP + (uint32_t)(block - start)};
    scope->cursor = block + step;
    return tray_head_of((void *)block);
}

/* Makes a live block at `head` and counts it. */
static inline void *scope_place(struct scope *scope, struct tray_head *head, size_t step,
                                uint32_t key) {
    *head = (struct tray_head){.mark = TRAY_LIVE + (uint32_t)step, .key = key};
    scope->blocks++;
    scope->bytes += step;
    return head + 1;
}

/* Puts a block that its owner has freed, and whose head says `step`, on the list of that size. */
static inline void scope_list(struct scope *scope, void *block, uint32_t step) {
    void **newest = &scope->free->newest[step / TRAY_GRANULE];
    *(void **)block = *newest;
    *newest = block;
    scope->freed_steps |= step;
}

/* A small block in the simple case: the one of its size that was freed last, or the next place in
 * the tray. NULL: ask scope_alloc_small(). `align` is a power of two, at least 16. */
static inline void *scope_alloc_quick(struct scope *scope, size_t bytes, size_t align,
                                      uint32_t key) {
    size_t step = tray_step(bytes);
    void **newest = &scope->free->newest[step / TRAY_GRANULE], *block = *newest;
    if (block && (align <= TRAY_GRANULE || ((uintptr_t)block & (align - 1)) == 0)) {
        *newest = *(void **)block;
        return scope_place(scope, tray_head_of(block), step, key);
    }
    struct tray_head *head = scope_bump(scope, step, align);
    return head ? scope_place(scope, head, step, key) : NULL;
}

/* A block of the innermost scope; NULL: the general heap is to serve it. */
void *scope_alloc_small(struct scope *scope, size_t bytes, size_t align, uint32_t key);
void *scope_alloc_large(struct scope *scope, size_t bytes, size_t align);

/* Frees a large block and its record. Only by the thread that has its heap. */
void scope_release_large(struct large *large);

/* Resizes a large block of a scope of this thread in place; false: it cannot be. */
bool scope_resize_large(struct large *large, size_t bytes);

/* Notes that a block of the general heap is to grow, in the scope of this thread. */
void scope_note_growth(struct scope *scope, size_t bytes_before, size_t bytes);

/* For malloc_trim(): drops empty trays of the heap's open scopes, and parks the scopes. Its own
 * thread. */
void scope_rest_all(struct heap *heap);

/* Makes scopes of the steps of sites with `scope`, from now on. */
void scope_serve(void);

/* Ends a scope of the calling thread, in any order. */
void scope_end(struct scope *scope);

/* Clears the references of steps to this scope and those after it, as their thread ends: another
 * thread that closes the region of such a step does not find them any more. */
void scope_forget_steps(struct scope *scope);

/* Ends scopes of the heap whose steps others closed, and those that could not end for want of
 * memory. Only by the thread that has the heap. */
void scope_end_late(struct heap *heap);

#endif
