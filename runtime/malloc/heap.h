// SPDX-License-Identifier: Apache-2.0
/*
 * heap.h - what a thread has of scopes: its heap, the scopes in it, and how they allocate.
 *
 *     thread -> scope -> outer scope -> ...      the innermost one that was entered serves malloc()
 *           `-> heap     keeper, a region: large blocks that outlived their scopes
 *                        stash: empty trays, hot while the thread does not rest; guarded, none
 *                        handed in: large blocks that other threads freed
 *                        postponed: the same, which a look at them did not come to
 *                        cooled: the same, whose pages have gone meanwhile
 *
 * A heap belongs to one thread at a time. When the thread ends its scopes end, and the heap waits
 * for the next thread that begins one: blocks in it stay where they are, and frees of others are
 * taken from it then. No thread gets it while scopes in it still wait for memory to end, unless
 * there is none for another heap. In the child of a fork the heaps of all other threads are lost:
 * what they were in the middle of is unknown. Their blocks stay.
 *
 * An open scope's thread may have nothing to do for it for long: its connection waits, or the loop
 * whose turn it is computes. So the scope is parked where that may be: until it has another large
 * block come or go, others may look for pages in the region of its step that no block needs.
 *
 * Invariant: only the thread that has a heap calls functions of ebb on its regions, but for who
 * looks at what is parked, under a lock: no block comes or goes there, though it may be noted which
 * ones are alive.
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

#define HEAP_STASH 18u /* a MiB at most */

/* Freed small blocks of a scope, by size: linked by their first word, newest first. */
struct scope_free {
    void *newest[TRAY_MOST / TRAY_GRANULE + 1];
};

extern HIDDEN struct scope_free scope_free_none; /* of scopes without trays */

struct scope {
    /* where the next block begins in the tray in use, and where none does; no tray: both are 0 */
    uintptr_t cursor, limit;
    struct tray *tray;
    struct scope_free *free; /* its own before it has trays */
    uint64_t blocks, bytes;  /* allocated in trays; bytes as placed */
    uint64_t freed_bytes;    /* of these, by this thread */
    struct tray *full;       /* trays before it, newest first */
    struct large *larges;    /* alive */
    uint64_t large_blocks, large_bytes; /* allocated ever */
    uint64_t asked_bytes;    /* of large blocks, those included that the general heap got */
    uint64_t alive_bytes;    /* of large blocks of its step that are */
    uint64_t tenured_bytes;  /* of these; not in the pages of its step */
    struct heap *heap;
    struct served *served;   /* of its site */
    _Atomic(uint64_t) *counts; /* of that, the heap's share */
    uint64_t tag;
    uint32_t freed_steps;    /* of blocks in lists, or-ed: lists of larger ones have none */
    unsigned trays;          /* that it has */
    unsigned look_at;        /* with so many it is looked at whether they are mostly dead */
    unsigned vain_sweeps;    /* looks for empty trays in a row, after which most stayed */
    uint64_t swept_at;       /* bytes allocated and freed when empty trays were looked for */
    uint64_t open_bytes;     /* pages that its site counts for it */
    ebb_step step;           /* where large blocks are; begun when the first one is */
    bool is_parked;          /* others may look at the step's region */
    bool is_warm;            /* and have not seen all of it */
    struct scope *warm_next, *warm_prev; /* those of the heap that are */
    uint64_t seen_ms;        /* when who cools first saw it; 0: not yet */
    uint64_t trims;          /* that had begun when it was parked */
    struct region_gap gap;   /* between its large blocks, where who cools is; since it is parked */
    size_t cooled;           /* bytes of gaps that have gone since then */
    struct scope *outer, *inner; /* entered before this one, and after it */
    bool entered;
    bool plain;              /* small blocks go to the general heap from now on */
    bool is_modest;          /* its site was, when it began (served.h) */
    bool over;               /* a turn's, which ends when it would need memory (turn.h) */
    _Atomic(bool) abandoned; /* its step was ended by another thread */
    struct scope *next, *prev; /* all open scopes of the heap */
    void **place;            /* where the step has this scope noted, to be cleared */
};

/* Stands for a scope that begins with its first block, see turn.h. Nothing in it changes. */
extern HIDDEN struct scope scope_awaited;

struct heap {
    struct scope *open;   /* scopes, newest first */
    struct scope *stuck;  /* ended, but there was no memory to keep what survives */
    struct scope *spare;  /* records of ended ones */
    size_t opens, spares; /* how many */
    pthread_mutex_t parked_lock; /* of all that is parked */
    _Atomic(bool) is_wanted; /* by its own thread */
    struct scope *warm;   /* of that: with pages that may go, the one parked last first */
    struct scope *turn_of; /* of these: who cools begins with it; NULL: with the first */
    _Atomic(struct tray *) stash[HEAP_STASH]; /* NULL: taken by who cools */
    unsigned stashed;     /* places of it, from the first on; of its thread */
    unsigned number;      /* of all heaps */
    _Atomic(uint64_t) begun; /* scopes: it does not rest */
    _Atomic(uint64_t) ended, ended_large; /* scopes; those that had a step for large blocks */
    uint64_t seen_begun;  /* of who cools */
    uint64_t rests_since_ms; /* the same; 0: not seen yet */
    ebb_region keeper;
    unsigned since_settled; /* scopes that ended, and kept blocks that went */
    size_t freed_since;     /* bytes of these */
    unsigned settle_in;     /* scopes before it is settled for what was freed, without more ado */
    struct suspects suspects;
    struct large *kept;   /* large blocks that outlived their scopes */
    struct large *unused; /* records */
    large_list handed_in; /* that other threads freed */
    large_list postponed; /* of these: for the next look; who cools puts them there */
    large_list cooled;    /* of these: their pages have gone */
    _Atomic(bool) has_abandoned; /* some of its open scopes are to end (scope.c) */
    struct heap *next;    /* all heaps */
    struct heap *next_left; /* those that no thread has */
    struct heap **left_at;  /* of these, what refers to it; NULL: it is none */
};

/* Of each thread. */
struct here {
    struct scope *scope; /* serves malloc(); NULL: the general heap does */
    struct heap *heap;   /* NULL: no scope was begun yet */
    struct scope *aside; /* the scope, while this thread forks */
};

extern HIDDEN __thread struct here here __attribute__((tls_model("initial-exec")));

/*
 * Addresses that may be those of scopes' blocks: from the zone of trays to the range of ebb, and
 * what lies between. One comparison for all others. Nothing before there was a scope.
 */
extern HIDDEN struct heap_span {
    uintptr_t base;
    size_t bytes;
} heap_span;

static inline bool heap_may_hold(uintptr_t addr) {
    /* base, relaxed: whoever has a block of a scope has it from who saw it made.
     * bytes, acquire: pairs with span_all(); who frees another block there looks at the zone */
    return addr - __atomic_load_n(&heap_span.base, __ATOMIC_RELAXED) <
           __atomic_load_n(&heap_span.bytes, __ATOMIC_ACQUIRE);
}

/* ---- heap.c ---- */

/* From the first call on a fork waits for the locks of this layer, of pools and of sites. When the
 * library is loaded: the first scope of all may be about to begin while another thread forks. */
void heap_watch_forks(void);

/* What is noted when a thread gets a heap has a key, which is made then, or before. */
void heap_make_key(void);

/* Where the large blocks of all scopes have their pages from; NULL: there is none (yet). */
ebb_pool *heap_pool(void);

/* That of this thread, made or taken over if need be; NULL: no memory. */
struct heap *heap_own(void);

/* Blocks that others have freed go. Its own thread only. */
void heap_drain(struct heap *heap);

/* A large block whose record was marked by this thread: handed in to its heap. */
void heap_hand_in(struct large *large);

/* An empty tray of the heap's own, hot if there is one; NULL: no memory. Guarded, what is given is
 * closed first (closed.h). */
struct tray *heap_take_tray(struct heap *heap);
void heap_give_tray(struct heap *heap, struct tray *tray);

/* One that is nobody's: it is the heap's of this thread, if that has one. */
void heap_give_any_tray(struct tray *tray);

/* What is in a place of the stash, which is empty then; NULL: another thread took it. */
struct tray *heap_take_place(struct heap *heap, unsigned place);

/* It keeps no empty trays. */
void heap_drop_stash(struct heap *heap);

/* The region for what outlives scopes, opened if need be. */
ebb_region heap_keeper(struct heap *heap);

/* Its pages that no block needs go to the pool: now; or what is much, now and then, where a scope
 * has ended or a block of the keeper's gone, of so many bytes. */
void heap_settle(struct heap *heap);
void heap_settle_now_and_then(struct heap *heap, size_t freed_bytes);

/* The lock of all heaps, and of what a thread shares with who closes the region of its scope. */
void heap_lock(bool take);

/* Some thread waits for it just now. */
bool heap_is_awaited(void);

/* All heaps, linked by `next`; NULL: there is none. With that lock held. */
struct heap *heap_newest(void);

/* Scopes that have ended, in all threads; those of them that had a step for large blocks. */
struct heap_ended {
    uint64_t scopes, large_scopes;
};
struct heap_ended heap_read_ended(void);

/* Heaps of ended threads give up what others freed and what they keep for later, and end scopes
 * that could not end for want of memory. Any thread, without a lock of sites, pools or heaps. */
void heap_tidy_left(void);

/* ---- cool.c ---- */

/* The number of a trim that begins. */
uint64_t heap_begin_trim(void);

/* What heap_cool() has to do, and has done. */
struct heap_cooling {
    uint64_t now_ms;     /* above 0, where what has waited counts */
    unsigned least_ms;   /* what has waited so long goes */
    uint64_t limit_ns;   /* for so long at most, and a few MiB more */
    uint64_t trim;       /* what was parked before it alone; 0: whatever is */
    size_t given;        /* bytes that were resident */
    uint64_t parts;      /* done, whether any bytes went */
    unsigned fruitless;  /* heaps in a row that there was nothing to do for */
    unsigned turns;      /* of heaps */
    bool is_around;      /* each heap had one */
    /* before, those of the look before this one */
    struct heap *turn_of; /* it begins with that, and then the next one does; NULL: any */
    unsigned exhausted;   /* heaps in a row up to there that had nothing left */
};

/*
 * Pages of blocks that were handed in to a thread that rests go back to the system; the blocks stay
 * its own. So do those that lie between the large blocks of a scope that has been parked for so
 * long. Of a thread that has begun no scope for so long the empty trays go, too, to jemalloc. A
 * lock is held that forks and new threads wait for. A trim calls it until it says that nothing is
 * left. True: something is. Any thread.
 */
bool heap_cool(struct heap_cooling *cooling);

/* Bytes of pages that regions of heaps have, but that have gone so. */
uint64_t heap_cooled_bytes(void);

/* So many of them are there again, or not the heap's any more. */
void heap_forget_cooled(size_t bytes);

/* From now on others may look at the step's region, if it has one; or it is about to change. Its
 * own thread. */
void heap_park(struct scope *scope);
void heap_unpark(struct scope *scope);

/* ---- scope.c, scope_small.c, scope_large.c ---- */

/* The next place in the tray in use; NULL: there is no room for it. */
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

/* A block is there from now on. */
static inline void *scope_place(struct scope *scope, struct tray_head *head, size_t step,
                                uint32_t key) {
    *head = (struct tray_head){.mark = TRAY_LIVE + (uint32_t)step, .key = key};
    scope->blocks++;
    scope->bytes += step;
    return head + 1;
}

/* A block that its owner has freed, and whose step says what is listed, can be had again. */
static inline void scope_list(struct scope *scope, void *block, uint32_t step) {
    void **newest = &scope->free->newest[step / TRAY_GRANULE];
    *(void **)block = *newest;
    *newest = block;
    scope->freed_steps |= step;
}

/* A small block where one is to be had by looking: the last that was freed of its size, or the next
 * place in the tray. NULL: ask scope_alloc_small(). `align` is a power of two, at least 16. */
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

/* A block of the innermost scope; NULL: it is to be had from the general heap. */
void *scope_alloc_small(struct scope *scope, size_t bytes, size_t align, uint32_t key);
void *scope_alloc_large(struct scope *scope, size_t bytes, size_t align);

/* A large block's place is free again, and its record unused. Only who has its heap. */
void scope_release_large(struct large *large);

/* A large block of a scope of this thread has room for so many bytes where it is, from now on. */
bool scope_resize_large(struct large *large, size_t bytes);

/* A block of the general heap is to grow, in the scope of this thread. */
void scope_note_growth(struct scope *scope, size_t bytes_before, size_t bytes);

/* For malloc_trim(): trays of the heap's open scopes in which nothing is alive go, and these are
 * parked. Its own thread. */
void scope_rest_all(struct heap *heap);

/* From now on steps of sites with `scope` are scopes. */
void scope_serve(void);

/* Ends a scope of the calling thread, in whatever order. */
void scope_end(struct scope *scope);

/* This scope and those after it are noted in no step any more: their thread ends. From here on no
 * region that another thread closes finds them. */
void scope_forget_steps(struct scope *scope);

/* Ends scopes of the heap whose steps others closed, and those whose end wanted memory. Only who
 * has the heap. */
void scope_end_late(struct heap *heap);

#endif
