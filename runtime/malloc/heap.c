// SPDX-License-Identifier: Apache-2.0
/*
 * heap.c - heaps of threads (see heap.h).
 *
 * Invariant: a heap is on the list for ever; `is_taken` says, under the lock, that a thread has it.
 * Fails without effect where there is no memory for one.
 */
#include "malloc/heap.h"
#include "malloc/general.h"
#include "malloc/served.h"
#include "malloc/tender.h"

#include "base/error.h"
#include "base/os.h"
#include "region/region.h"
#include "step/site.h"

#include <pthread.h>
#include <string.h>

__thread struct here here;
struct heap_span heap_span;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ending;
static bool has_key;
static struct heap *heaps;
static ebb_pool *_Atomic(pool);
static _Atomic(uint64_t) cooled_bytes;

/* A server's memory is to follow its load: it keeps less than usual, and gives back faster. */
#define POOL_MARGIN 10   /* percent */
#define TRIM_NS 300000u  /* at the end of a scope */

/* ---- threads and forks ---- */

void heap_lock(bool take) {
    (take ? pthread_mutex_lock : pthread_mutex_unlock)(&lock);
}

/* A thread ends: its scopes end, its heap is for the next one. */
static void leave(void *own) {
    struct heap *heap = own;
    scope_forget_steps(heap->open);
    while (heap->open)
        scope_end(heap->open);
    heap_drain(heap);
    heap_settle(heap);
    heap_drop_stash(heap);
    here = (struct here){.scope = NULL};
    pthread_mutex_lock(&lock);
    heap->is_taken = false;
    pthread_mutex_unlock(&lock);
}

/*
 * Locks of this layer come after those of sites and pools (step/sites.c, pool/fork.c), but for that
 * of served sites, and all before jemalloc's. Handlers that were registered last run first.
 */
static void before_fork_outside(void) {
    served_fork(true);
    here.aside = here.scope; /* no handler of the program's is to need one of these locks */
    here.scope = NULL;
}

static void after_fork_outside(void) {
    here.scope = here.aside;
    served_fork(false);
}

/* Nobody looks at what is parked just then. */
static void lock_parked(bool take) {
    for (struct heap *heap = heaps; heap; heap = heap->next)
        (take ? pthread_mutex_lock : pthread_mutex_unlock)(&heap->parked_lock);
}

static void before_fork(void) {
    tender_fork(true, false);
    if (GUARDED)
        guard_fork(true);
    pthread_mutex_lock(&lock);
    lock_parked(true);
    tray_fork(true);
}

static void after_fork(bool in_child) {
    tray_fork(false);
    lock_parked(false);
    pthread_mutex_unlock(&lock);
    if (GUARDED)
        guard_fork(false);
    tender_fork(false, in_child);
}

static void after_fork_in_parent(void) {
    after_fork(false);
}

static void after_fork_in_child(void) {
    for (struct heap *heap = heaps; heap; heap = heap->next)
        heap->is_lost = heap->is_lost || (heap->is_taken && heap != here.heap);
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
    uintptr_t base = UINTPTR_MAX, end = 0;
    if (tray_prepare()) {
        base = tray_zone.base;
        end = base + tray_zone.bytes;
    }
    ebb_pool *made = ebb_pool_create(
        EBB_POOL_OPTIONS(.name = "malloc", .keep_margin_percent = POOL_MARGIN));
    if (made) {
        made->trim_ns = TRIM_NS;
        atomic_store_explicit(&pool, made, memory_order_release);
        base = size_smaller(base, range.base);
        end = size_larger(end, range.base + range.bytes);
    }
    if (base >= end)
        return;
    atomic_store_explicit(&heap_span.base, base, memory_order_relaxed);
    atomic_store_explicit(&heap_span.bytes, end - base, memory_order_release);
}

static void prepare(void) {
    heap_watch_forks();
    error_mute();
    span_all();
    error_unmute();
    has_key = pthread_key_create(&ending, leave) == 0;
}

/* ---- heaps ---- */

static struct heap *find_left(void) {
    for (struct heap *heap = heaps; heap; heap = heap->next)
        if (!heap->is_taken && !heap->is_lost)
            return heap;
    return NULL;
}

static struct heap *take(void) {
    pthread_mutex_lock(&lock);
    struct heap *heap = find_left();
    if (!heap && (heap = je_calloc(1, sizeof *heap))) {
        pthread_mutex_init(&heap->parked_lock, NULL);
        heap->number = heaps ? heaps->number + 1 : 0;
        heap->next = heaps;
        heaps = heap;
    }
    if (heap)
        heap->is_taken = true;
    pthread_mutex_unlock(&lock);
    return heap;
}

struct heap_ended heap_read_ended(void) {
    struct heap_ended sum = {0};
    pthread_mutex_lock(&lock);
    for (const struct heap *heap = heaps; heap; heap = heap->next) {
        sum.scopes += atomic_load_explicit(&heap->ended, memory_order_relaxed);
        sum.large_scopes += atomic_load_explicit(&heap->ended_large, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    return sum;
}

struct heap *heap_own(void) {
    if (here.heap)
        return here.heap;
    pthread_once(&once, prepare);
    struct heap *heap = has_key ? take() : NULL;
    if (!heap)
        return NULL;
    if (pthread_setspecific(ending, heap) != 0) {
        pthread_mutex_lock(&lock);
        heap->is_taken = false;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    here.heap = heap;
    tender_begin();
    return heap;
}

typedef _Atomic(struct large *) handed;

static bool is_empty(const handed *list) {
    /* relaxed: who takes the list acquires it */
    return !atomic_load_explicit(list, memory_order_relaxed);
}

static struct large *take_all(handed *list) {
    /* acquire: pairs with push(), so with all who pushed before */
    return atomic_exchange_explicit(list, NULL, memory_order_acquire);
}

static void push(handed *list, struct large *large) {
    struct large *first = atomic_load_explicit(list, memory_order_relaxed);
    do
        large->handed_next = first;
    /* release: what this thread did with the block comes before the owner's use of its place */
    while (!atomic_compare_exchange_weak_explicit(list, &first, large, memory_order_release,
                                                  memory_order_relaxed));
}

static void release_all(handed *list) {
    if (is_empty(list))
        return;
    for (struct large *large = take_all(list), *next; large; large = next) {
        next = large->handed_next;
        if (large->gone) /* before its pages can be counted as anything else */
            atomic_fetch_sub_explicit(&cooled_bytes, large->gone, memory_order_relaxed);
        scope_release_large(large);
    }
}

void heap_drain(struct heap *heap) {
    release_all(&heap->handed_in);
    release_all(&heap->postponed);
    release_all(&heap->cooled);
}

/* Nothing that others have freed waits for its thread. */
static bool is_drained(const struct heap *heap) {
    return is_empty(&heap->handed_in) && is_empty(&heap->postponed) && is_empty(&heap->cooled);
}

void heap_hand_in(struct large *large) {
    push(&large->heap->handed_in, large);
}

/* ---- empty trays ---- */

/* Guarded, an empty tray is forbidden until it is used again, and the oldest is used first. */
static bool open_tray(struct tray *tray) {
    return !GUARDED || os.cover(tray, TRAY_BYTES) == 0;
}

static struct tray *take_place(struct heap *heap, unsigned place) {
    /* acquire: pairs with heap_give_tray(), where another thread takes it */
    return atomic_exchange_explicit(&heap->stash[place], NULL, memory_order_acquire);
}

static struct tray *take_oldest(struct heap *heap) {
    struct tray *tray = take_place(heap, 0);
    heap->stashed--;
    for (unsigned i = 0; i < heap->stashed; i++) /* relaxed: nobody else takes guarded ones */
        atomic_store_explicit(
            &heap->stash[i],
            atomic_load_explicit(&heap->stash[i + 1], memory_order_relaxed),
            memory_order_relaxed);
    return open_tray(tray) ? tray : NULL; /* else it is lost */
}

/* NULL: there is none, or what there was has been taken. */
static struct tray *take_stashed(struct heap *heap) {
    struct tray *tray = NULL;
    if (GUARDED)
        return heap->stashed ? take_oldest(heap) : NULL;
    while (!tray && heap->stashed)
        tray = take_place(heap, --heap->stashed);
    return tray;
}

struct tray *heap_take_tray(struct heap *heap) {
    struct tray *tray = NULL;
    if (!GUARDED || heap->stashed == HEAP_STASH)
        tray = take_stashed(heap);
    if (!tray)
        return tray_take(heap);
    tray_begin(tray, heap);
    return tray;
}

void heap_give_tray(struct heap *heap, struct tray *tray) {
    if (GUARDED && heap->stashed == HEAP_STASH) {
        struct tray *oldest = take_stashed(heap);
        if (oldest)
            tray_give(oldest);
    }
    if (heap->stashed == HEAP_STASH) {
        tray_give(tray);
        return;
    }
    if (GUARDED)
        (void)os.forbid(tray, TRAY_BYTES);
    /* release: what this thread did with it comes before what whoever takes it does */
    atomic_store_explicit(&heap->stash[heap->stashed++], tray, memory_order_release);
}

void heap_give_any_tray(struct tray *tray) {
    if (here.heap)
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

void heap_settle(struct heap *heap) {
    if (ebb_region_is_open(heap->keeper))
        keeper_settle((struct region *)heap->keeper.lane, true);
}

/* So much was freed that the thread may have no more to do for ever; not again where scopes come
 * meanwhile, which may want it each time. */
static bool is_freed(const struct heap *heap) {
    return (heap->settle_in == 0 || heap->settle_in == SETTLE_IN) &&
           heap->freed_since >= SETTLE_LEAST && ebb_region_is_open(heap->keeper) &&
           heap->freed_since >= ((struct region *)heap->keeper.lane)->reserved.current / 2;
}

/* Steps of the keeper's look, too, but a thread may have none for ever that has much to give. */
void heap_settle_now_and_then(struct heap *heap, size_t freed_bytes) {
    heap->freed_since += freed_bytes;
    heap->settle_in -= !freed_bytes && heap->settle_in;
    bool freed = is_freed(heap);
    if (++heap->since_settled < SETTLE_EACH && !freed)
        return;
    heap->settle_in = freed ? SETTLE_IN : heap->settle_in;
    heap->since_settled = 0;
    heap->freed_since = 0;
    if (ebb_region_is_open(heap->keeper))
        keeper_settle((struct region *)heap->keeper.lane, false);
}

void heap_tidy_left(void) {
    for (;;) {
        pthread_mutex_lock(&lock);
        struct heap *heap = heaps;
        while (heap && (heap->is_taken || heap->is_lost || is_drained(heap)))
            heap = heap->next;
        if (heap)
            heap->is_taken = true;
        pthread_mutex_unlock(&lock);
        if (!heap)
            return;
        heap_drain(heap);
        heap_settle(heap);
        pthread_mutex_lock(&lock);
        heap->is_taken = false;
        pthread_mutex_unlock(&lock);
    }
}

/* ---- what waits for a thread that rests ---- */

#define COOL_PART ((size_t)1 << 20)

uint64_t heap_cooled_bytes(void) {
    return atomic_load_explicit(&cooled_bytes, memory_order_relaxed);
}

static bool is_late(uint64_t deadline_ns) {
    return deadline_ns && os.now_ns() >= deadline_ns;
}

/* The pages from `first` on go; `gone` says how many bytes have. False: it is late. */
static bool cool_pages(uintptr_t first, uintptr_t end, size_t *gone, uint64_t deadline_ns,
                       size_t *given) {
    while (first + *gone < end) {
        if (is_late(deadline_ns))
            return false;
        void *part = (void *)(first + *gone);
        size_t bytes = size_smaller(end - first - *gone, COOL_PART);
        size_t resident = os.resident(part, bytes);
        if (resident && os.give_back(part, bytes) != 0)
            return true; /* they stay till the owner comes */
        *gone += bytes;
        *given += resident;
        atomic_fetch_add_explicit(&cooled_bytes, bytes, memory_order_relaxed);
    }
    return true;
}

/* Those of the block, but for what it shares. */
static bool cool_large(struct large *large, uint64_t deadline_ns, size_t *given) {
    uintptr_t first = size_align(large->block, EBB_PAGE);
    uintptr_t end = size_align_down(large->block + large->bytes, EBB_PAGE);
    return cool_pages(first, end, &large->gone, deadline_ns, given);
}

/* A child's time begins anew. */
static bool has_waited(uint64_t *seen_ms, const struct heap_cooling *cooling) {
    if (!*seen_ms || *seen_ms > cooling->now_ms)
        *seen_ms = cooling->now_ms;
    return cooling->now_ms - *seen_ms >= cooling->least_ms;
}

/* The owner, if it comes just now, finds these blocks the next time. True: some are left. What it
 * is too late for, of a list that may be long, is not walked through either. */
static bool cool_list(struct heap *heap, handed *list, struct heap_cooling *cooling,
                      uint64_t deadline_ns) {
    bool is_left = false;
    struct large *large = is_empty(list) ? NULL : take_all(list);
    for (struct large *next; large && !is_late(deadline_ns); large = next) {
        next = large->handed_next;
        bool is_done =
            has_waited(&large->seen_ms, cooling) &&
            cool_large(large, deadline_ns, &cooling->given);
        push(is_done ? &heap->cooled : &heap->handed_in, large);
        is_left |= !is_done;
    }
    if (large) /* release: as in push() */
        atomic_store_explicit(&heap->postponed, large, memory_order_release);
    return is_left || large;
}

/* True: some are left. The first list ends before the second begins, or is all that is looked at:
 * so nothing is postponed where something is. */
static bool cool_heap(struct heap *heap, struct heap_cooling *cooling, uint64_t deadline_ns) {
    bool is_left = cool_list(heap, &heap->postponed, cooling, deadline_ns);
    return is_empty(&heap->postponed) ? cool_list(heap, &heap->handed_in, cooling, deadline_ns)
                                      : is_left;
}

/* ---- parked scopes ---- */

static void warm(struct scope *scope) {
    struct scope *first = scope->heap->warm;
    scope->is_warm = true;
    scope->warm_prev = NULL;
    scope->warm_next = first;
    if (first)
        first->warm_prev = scope;
    scope->heap->warm = scope;
}

/* Nothing is left to go, or it is not to. */
static void chill(struct scope *scope) {
    scope->is_warm = false;
    if (scope->warm_prev)
        scope->warm_prev->warm_next = scope->warm_next;
    else
        scope->heap->warm = scope->warm_next;
    if (scope->warm_next)
        scope->warm_next->warm_prev = scope->warm_prev;
}

/* What has gone may come back from here on. */
static void forget_cooled(struct scope *scope) {
    scope->seen_ms = 0;
    if (scope->cooled)
        atomic_fetch_sub_explicit(&cooled_bytes, scope->cooled, memory_order_relaxed);
    scope->cooled = 0;
}

void heap_park(struct scope *scope) {
    if (scope->is_parked || !scope->step.lane)
        return;
    scope->is_parked = true;
    pthread_mutex_lock(&scope->heap->parked_lock);
    warm(scope);
    pthread_mutex_unlock(&scope->heap->parked_lock);
    tender_notice_change();
}

void heap_unpark(struct scope *scope) {
    if (!scope->is_parked)
        return;
    scope->is_parked = false;
    pthread_mutex_lock(&scope->heap->parked_lock);
    forget_cooled(scope);
    if (scope->is_warm)
        chill(scope);
    pthread_mutex_unlock(&scope->heap->parked_lock);
}

/* Gaps of a scope: what was passed is what has gone, and the rest goes. */
struct gaps {
    struct scope *scope;
    uint64_t deadline_ns;
    size_t passed, given; /* bytes */
};

static bool cool_gap(void *context, uintptr_t from, uintptr_t to) {
    struct gaps *gaps = context;
    size_t before = size_smaller(gaps->scope->cooled - gaps->passed, to - from), gone = before;
    bool is_done = cool_pages(from, to, &gone, gaps->deadline_ns, &gaps->given);
    gaps->scope->cooled += gone - before;
    gaps->passed += gone;
    return is_done;
}

/* False: it is late, or too early for them. */
static bool cool_scope(struct scope *scope, struct heap_cooling *cooling, uint64_t deadline_ns) {
    struct gaps gaps = {.scope = scope, .deadline_ns = deadline_ns};
    if (!has_waited(&scope->seen_ms, cooling))
        return false;
    const struct region *region = (const struct region *)scope->step.region.lane;
    bool is_done = region_each_gap(region, cool_gap, &gaps);
    cooling->given += gaps.given;
    return is_done;
}

/* What is free between large blocks of scopes that have been parked for long enough goes. */
static bool cool_scopes(struct heap *heap, struct heap_cooling *cooling, uint64_t deadline_ns) {
    bool is_left = false;
    pthread_mutex_lock(&heap->parked_lock);
    struct scope *scope = heap->warm;
    for (struct scope *next; scope && !is_late(deadline_ns); scope = next) {
        next = scope->warm_next;
        if (cool_scope(scope, cooling, deadline_ns))
            chill(scope);
        else
            is_left = true;
    }
    pthread_mutex_unlock(&heap->parked_lock);
    return is_left || scope;
}

/* ---- all of these ---- */

/* The same of its empty trays, if it has begun no scope for long enough. They are guarded where
 * they are. */
static bool cool_stash(struct heap *heap, const struct heap_cooling *cooling,
                       uint64_t deadline_ns) {
    /* relaxed: it says how long ago only */
    uint64_t begun = atomic_load_explicit(&heap->begun, memory_order_relaxed);
    if (begun != heap->seen_begun)
        heap->rests_ms = 0;
    heap->seen_begun = begun;
    bool is_due = heap->rests_ms >= cooling->least_ms, is_left = false;
    heap->rests_ms = is_due ? heap->rests_ms : heap->rests_ms + cooling->passed_ms;
    for (unsigned i = 0; i < HEAP_STASH && !GUARDED && !is_left; i++) {
        /* relaxed: take_place() acquires */
        if (!atomic_load_explicit(&heap->stash[i], memory_order_relaxed))
            continue;
        is_left = !is_due || is_late(deadline_ns);
        struct tray *tray = is_left ? NULL : take_place(heap, i);
        if (tray)
            tray_give(tray);
    }
    return is_left;
}

/* With the lock held, so that no fork comes while a block is in no list. Heaps that a fork has lost
 * too: what is freed in the child need not stay. */
bool heap_cool(struct heap_cooling *cooling) {
    bool is_left = false;
    pthread_mutex_lock(&lock);
    uint64_t deadline = cooling->limit_ns ? os.now_ns() + cooling->limit_ns : 0;
    for (struct heap *heap = heaps; heap; heap = heap->next) {
        is_left |= cool_heap(heap, cooling, deadline);
        is_left |= cool_scopes(heap, cooling, deadline);
        is_left |= cool_stash(heap, cooling, deadline);
    }
    pthread_mutex_unlock(&lock);
    return is_left;
}
