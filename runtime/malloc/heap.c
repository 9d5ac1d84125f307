// SPDX-License-Identifier: Apache-2.0
/*
 * heap.c - heaps of threads (see heap.h).
 *
 * Invariant: a heap is on the list of all for ever, and on that of those left while no thread has
 * it; both under the lock. In a child of a fork none that a thread had is left, and so none is ever
 * had again. Fails without effect where there is no memory for one.
 */
#include "malloc/heap.h"
#include "malloc/closed.h"
#include "malloc/general.h"
#include "malloc/quarantine.h"
#include "malloc/served.h"
#include "malloc/tender.h"

#include "base/error.h"
#include "base/os.h"
#include "region/keeper.h"
#include "step/site.h"

#include <pthread.h>
#include <string.h>

__thread struct here here;
uintptr_t heap_end;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ending;
static bool has_key;
static _Atomic(unsigned) awaited; /* the lock is, by so many */
static struct heap *heaps, *left;
static pthread_mutex_t settling = PTHREAD_MUTEX_INITIALIZER; /* of threads that rest */
static ebb_pool *_Atomic(pool);

/* A server's memory is to follow its load: it keeps less than usual, and gives back faster. */
#define POOL_MARGIN 10   /* percent */
#define TRIM_NS 300000u  /* at the end of a scope */

/* ---- threads and forks ---- */

/* Who comes again at once sees that others wait (trim.c). */
static void lock_all(void) {
    if (pthread_mutex_trylock(&lock) == 0)
        return;
    /* relaxed: a hint */
    atomic_fetch_add_explicit(&awaited, 1, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    atomic_fetch_sub_explicit(&awaited, 1, memory_order_relaxed);
}

static void unlock_all(void) {
    pthread_mutex_unlock(&lock);
}

void heap_lock(bool take) {
    (take ? lock_all : unlock_all)();
}

bool heap_is_awaited(void) {
    return atomic_load_explicit(&awaited, memory_order_relaxed);
}

/* For whoever begins one next. */
static void give(struct heap *heap) {
    lock_all();
    heap->next_left = left;
    heap->left_at = &left;
    if (left)
        left->left_at = &heap->next_left;
    left = heap;
    unlock_all();
}

static void unlink_left(struct heap *heap) {
    *heap->left_at = heap->next_left;
    if (heap->next_left)
        heap->next_left->left_at = heap->left_at;
    heap->left_at = NULL;
}

/* A thread ends: its scopes end, its heap is for the next one. */
static void leave(void *own) {
    struct heap *heap = own;
    scope_forget_steps(heap->open);
    while (heap->open)
        scope_end(heap->open);
    scope_end_late(heap);
    heap_drain(heap);
    heap_settle(heap);
    heap_drop_stash(heap);
    here = (struct here){.scope = NULL};
    give(heap);
}

/*
 * Locks of this layer come after those of sites and pools (step/sites.c, pool/fork.c), but for that
 * of served sites and that of keepers which others settle, and all before jemalloc's. Handlers that
 * were registered last run first.
 */
static void before_fork_outside(void) {
    pthread_mutex_lock(&settling);
    served_fork(true);
    here.aside = here.scope; /* no handler of the program's is to need one of these locks */
    here.scope = NULL;
}

static void after_fork_outside(void) {
    here.scope = here.aside;
    served_fork(false);
    pthread_mutex_unlock(&settling);
}

/* Nobody looks at what is parked just then. */
static void lock_parked(bool take) {
    for (struct heap *heap = heaps; heap; heap = heap->next)
        (take ? pthread_mutex_lock : pthread_mutex_unlock)(&heap->parked_lock);
}

static void before_fork(void) {
    tender_fork(true, false);
    if (GUARDED)
        quarantine_fork(true);
    lock_all();
    lock_parked(true);
    tray_fork(true);
}

static void after_fork(bool in_child) {
    tray_fork(false);
    lock_parked(false);
    unlock_all();
    if (GUARDED)
        quarantine_fork(false);
    tender_fork(false, in_child);
}

static void after_fork_in_parent(void) {
    after_fork(false);
}

static void after_fork_in_child(void) {
    /* relaxed: this thread is the only one */
    atomic_store_explicit(&awaited, 0, memory_order_relaxed);
    for (struct heap *heap = heaps; heap; heap = heap->next)
        atomic_store_explicit(&heap->is_wanted, false, memory_order_relaxed);
    after_fork(true);
}

static void watch_forks(void) {
    je_free(je_malloc(1)); /* so that jemalloc's handlers are there before */
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    sites_prepare();
    (void)pthread_atfork(before_fork_outside, after_fork_outside, after_fork_outside);
}

void heap_watch_forks(void) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    (void)pthread_once(&watched, watch_forks);
}

/* Both are reserved once; where one cannot be, its blocks are the general heap's. */
static void span_all(void) {
    uintptr_t end = 0;
    if (tray_prepare())
        end = tray_zone.base + tray_zone.bytes;
    ebb_pool *made = ebb_pool_create(
        EBB_POOL_OPTIONS(.name = "malloc", .keep_margin_percent = POOL_MARGIN));
    if (made) {
        made->trim_ns = TRIM_NS;
        made->inner = true;
        atomic_store_explicit(&pool, made, memory_order_release);
        end = size_larger(end, range.base + range.bytes);
    }
    __atomic_store_n(&heap_end, end, __ATOMIC_RELEASE);
}

static void make_key(void) {
    has_key = pthread_key_create(&ending, leave) == 0;
}

void heap_make_key(void) {
    static pthread_once_t made = PTHREAD_ONCE_INIT;
    (void)pthread_once(&made, make_key);
}

static void prepare(void) {
    heap_watch_forks();
    error_mute();
    span_all();
    error_unmute();
    heap_make_key();
}

/* ---- heaps ---- */

/* With the lock of all held; so are these. */
static struct heap *make(void) {
    struct heap *heap = je_calloc(1, sizeof *heap);
    if (heap) {
        pthread_mutex_init(&heap->parked_lock, NULL);
        heap->number = heaps ? heaps->number + 1 : 0;
        heap->next = heaps;
        heaps = heap;
    }
    return heap;
}

/* That was left last. While scopes of it wait for memory it is left to whoever looks at those: with
 * a thread that rests they would wait as long as it does. */
static struct heap *find_left(void) {
    struct heap *heap = left;
    while (heap && heap->stuck)
        heap = heap->next_left;
    return heap;
}

static struct heap *take(bool *passes) {
    lock_all();
    struct heap *heap = find_left(), *made = heap ? NULL : make();
    *passes = left != heap;
    if (!heap && !made)
        heap = left; /* there is no memory for another one */
    if (heap)
        unlink_left(heap);
    unlock_all();
    return heap ? heap : made;
}

struct heap *heap_newest(void) {
    return heaps;
}

struct heap_ended heap_read_ended(void) {
    struct heap_ended sum = {0};
    lock_all();
    for (const struct heap *heap = heaps; heap; heap = heap->next) {
        sum.scopes += atomic_load_explicit(&heap->ended, memory_order_relaxed);
        sum.large_scopes += atomic_load_explicit(&heap->ended_large, memory_order_relaxed);
    }
    unlock_all();
    return sum;
}

struct heap *heap_own(void) {
    if (here.heap)
        return here.heap;
    pthread_once(&once, prepare);
    bool passes = false;
    struct heap *heap = has_key ? take(&passes) : NULL;
    if (!heap)
        return NULL;
    if (pthread_setspecific(ending, heap) != 0) {
        give(heap);
        return NULL;
    }
    here.heap = heap;
    tender_begin();
    if (passes)
        heap_tidy_left(); /* there may be memory by now, and nobody else who looks */
    return heap;
}

static void release_all(large_list *list) {
    if (large_none(list))
        return;
    for (struct large *large = large_take_all(list), *next; large; large = next) {
        next = large->handed_next;
        heap_forget_cooled(large->gone); /* before its pages can be counted as anything else */
        scope_release_large(large);
    }
}

void heap_drain(struct heap *heap) {
    release_all(&heap->handed_in);
    release_all(&heap->postponed);
    release_all(&heap->cooled);
}

/* Nothing that others have freed waits for its thread, and no scope for memory. */
static bool is_tidy(const struct heap *heap) {
    return large_none(&heap->handed_in) && large_none(&heap->postponed) &&
           large_none(&heap->cooled) && !heap->stuck;
}

void heap_hand_in(struct large *large) {
    large_push(&large->heap->handed_in, large);
}

/* ---- empty trays ---- */

struct tray *heap_take_place(struct heap *heap, unsigned place) {
    /* acquire: pairs with heap_give_tray(), where another thread takes it */
    return atomic_exchange_explicit(&heap->stash[place], NULL, memory_order_acquire);
}

/* NULL: there is none, or what there was has been taken. */
static struct tray *take_stashed(struct heap *heap) {
    struct tray *tray = NULL;
    while (!tray && heap->stashed)
        tray = heap_take_place(heap, --heap->stashed);
    return tray;
}

/* One that has been in use; guarded, as late as may be. */
static struct tray *take_used(struct heap *heap) {
    return GUARDED ? closed_take(CLOSED_MOST) : take_stashed(heap);
}

struct tray *heap_take_tray(struct heap *heap) {
    struct tray *tray = take_used(heap);
    if (!tray)
        tray = tray_take(heap);
    if (GUARDED && !tray)
        tray = closed_take(1); /* the zone is full of them */
    if (tray)
        tray_begin(tray, heap);
    return tray;
}

void heap_give_tray(struct heap *heap, struct tray *tray) {
    if (GUARDED)
        closed_give(tray);
    else if (heap->stashed == HEAP_STASH)
        tray_give(tray);
    else /* release: what this thread did with it comes before what whoever takes it does */
        atomic_store_explicit(&heap->stash[heap->stashed++], tray, memory_order_release);
}

void heap_give_any_tray(struct tray *tray) {
    if (GUARDED || here.heap)
        heap_give_tray(here.heap, tray);
    else
        tray_give(tray);
}

void heap_drop_stash(struct heap *heap) {
    while (heap->stashed) {
        struct tray *tray = take_stashed(heap);
        if (tray)
            tray_give(tray);
    }
}

/* ---- regions ---- */

ebb_pool *heap_pool(void) {
    return atomic_load_explicit(&pool, memory_order_acquire);
}

ebb_region heap_keeper(struct heap *heap) {
    if (heap_pool() && !ebb_region_is_open(heap->keeper)) {
        error_mute();
        heap->keeper =
            ebb_region_open(EBB_REGION_OPTIONS(.name = "survivors", .pool = heap_pool()));
        error_unmute();
    }
    return heap->keeper;
}

#define SETTLE_EACH 64u /* scopes and blocks */
#define SETTLE_LEAST ((size_t)1 << 20)
#define SETTLE_IN 256u
#define PAUSE_NS 50000u

void heap_await_keeper(struct heap *heap) {
    static const uint32_t nobody;
    do
        (void)os.wait(&nobody, 0, PAUSE_NS);
    while (!heap_try_keeper(heap));
}

/* Of the keeper that it has taken. */
static void settle(struct heap *heap, bool wholly) {
    if (ebb_region_is_open(heap->keeper))
        keeper_settle((struct region *)heap->keeper.lane, wholly);
}

void heap_settle(struct heap *heap) {
    heap_take_keeper(heap);
    settle(heap, true);
    heap_leave_keeper(heap);
}

/* Where its thread is at work just now, or was in a fork and is lost, nothing is to be done. */
static bool has_unsettled(struct heap *heap) {
    if (!heap_try_keeper(heap))
        return false;
    bool is_used = heap->keeper_is_used;
    heap_leave_keeper(heap);
    return is_used;
}

static void settle_for(struct heap *heap) {
    if (!heap_try_keeper(heap))
        return;
    settle(heap, true);
    heap->keeper_is_used = false;
    heap_leave_keeper(heap);
}

/* What settles takes locks of pools, which a fork takes before that of all heaps; and no fork comes
 * meanwhile. */
bool heap_settle_resting(struct heap *heap, bool is_due) {
    bool is_left = has_unsettled(heap);
    if (!is_left || !is_due)
        return is_left;
    unlock_all();
    pthread_mutex_lock(&settling);
    settle_for(heap);
    pthread_mutex_unlock(&settling);
    lock_all();
    return false;
}

/* So much was freed that the thread may have no more to do for ever; not again where scopes come
 * meanwhile, which may want it each time. */
static bool may_be_freed(const struct heap *heap) {
    return (heap->settle_in == 0 || heap->settle_in == SETTLE_IN) &&
           heap->freed_since >= SETTLE_LEAST;
}

static bool is_freed(const struct heap *heap) {
    return may_be_freed(heap) && ebb_region_is_open(heap->keeper) &&
           heap->freed_since >= ((struct region *)heap->keeper.lane)->reserved.current / 2;
}

/* Steps of the keeper's look, too, but a thread may have none for ever that has much to give. */
void heap_settle_now_and_then(struct heap *heap, size_t freed_bytes) {
    heap->freed_since += freed_bytes;
    heap->settle_in -= !freed_bytes && heap->settle_in;
    bool is_time = ++heap->since_settled >= SETTLE_EACH;
    if (!is_time && !may_be_freed(heap))
        return;
    heap_take_keeper(heap);
    bool freed = is_freed(heap);
    if (is_time || freed) {
        heap->settle_in = freed ? SETTLE_IN : heap->settle_in;
        heap->since_settled = 0;
        heap->freed_since = 0;
        settle(heap, false);
    }
    heap_leave_keeper(heap);
}

/* From `heap` on, the first that is left and not tidy; NULL: there is none. */
static struct heap *take_untidy(struct heap *heap) {
    lock_all();
    while (heap && (!heap->left_at || is_tidy(heap)))
        heap = heap->next;
    if (heap)
        unlink_left(heap);
    unlock_all();
    return heap;
}

static struct heap *newest(void) {
    lock_all();
    struct heap *heap = heaps;
    unlock_all();
    return heap;
}

/* Along all heaps, where none goes and none comes behind the first: each is looked at once. */
void heap_tidy_left(void) {
    for (struct heap *heap = newest(); (heap = take_untidy(heap)); heap = heap->next) {
        heap_drain(heap);
        scope_end_late(heap);
        heap_settle(heap);
        give(heap);
    }
}
