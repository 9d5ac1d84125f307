// SPDX-License-Identifier: Apache-2.0
/*
 * cool.c - what threads that rest have no use for (see heap.h).
 *
 * Large blocks that others have freed of a thread, what is free between those of its parked scopes
 * and between those that outlived scopes, and its empty trays. A look is a walk around all heaps,
 * in parts: a MiB of pages, or some pieces of a region. The clock is read after each part. When it
 * is late the look ends, and the next one goes on behind the heap, and in that heap behind the
 * scope, where this one ended, so that each has its turn. Each trim goes its own way around, and
 * looks in idle time theirs: what one passes as too new the other has yet to see. A scope remembers
 * how far in its region a look came. Nothing is left when that was so of each heap when it last had
 * its turn, in as many looks as that took: where heaps are very many none reaches all of them. What
 * comes after a heap's turn waits for its next one.
 *
 * Invariants: a heap whose turn comes in time has at least one part of each kind done, unless its
 * own thread wants what it has parked; so looks end what there is, however slow the clock makes
 * them. That thread waits for one part.
 */
#include "malloc/heap.h"
#include "malloc/tender.h"

#include "base/os.h"
#include "pool/kind.h"
#include "region/region.h"

#include <pthread.h>

#define COOL_PART ((size_t)1 << 20)

static _Atomic(uint64_t) cooled_bytes;
static _Atomic(uint64_t) trims;

uint64_t heap_cooled_bytes(void) {
    return atomic_load_explicit(&cooled_bytes, memory_order_relaxed);
}

void heap_forget_cooled(size_t bytes) {
    if (bytes)
        atomic_fetch_sub_explicit(&cooled_bytes, bytes, memory_order_relaxed);
}

/* relaxed: who parked a scope before a trim, as far as anyone can tell, has read less */
uint64_t heap_begin_trim(void) {
    return atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed) + 1;
}

static bool is_late(uint64_t deadline_ns) {
    return deadline_ns && os.now_ns() >= deadline_ns;
}

/* One part of these pages goes; how much. 0: they are to stay as they are. Those that are swapped
 * out are not resident, and go all the same; so do all where the system does not say which are. */
static size_t cool_part(uintptr_t from, uintptr_t to, struct heap_cooling *cooling) {
    size_t bytes = size_smaller(to - from, COOL_PART);
    size_t resident = os.resident((void *)from, bytes);
    cooling->parts++;
    if (os.give_back((void *)from, bytes) != 0)
        return 0;
    cooling->given += resident;
    atomic_fetch_add_explicit(&cooled_bytes, bytes, memory_order_relaxed);
    return bytes;
}

/* A child's time begins anew. */
static bool has_waited(uint64_t *seen_ms, const struct heap_cooling *cooling) {
    if (!*seen_ms || *seen_ms > cooling->now_ms)
        *seen_ms = cooling->now_ms;
    return cooling->now_ms - *seen_ms >= cooling->least_ms;
}

/* ---- what others have freed ---- */

/* The pages of the block, but for those that it shares. False: it is late. */
static bool cool_large(struct large *large, struct heap_cooling *cooling, uint64_t deadline_ns) {
    uintptr_t from = size_align(large->block, EBB_PAGE) + large->gone;
    uintptr_t end = size_align_down(large->block + large->bytes, EBB_PAGE);
    while (from < end) {
        size_t bytes = cool_part(from, end, cooling);
        large->gone += bytes;
        from += bytes;
        if (!bytes) /* they stay till the owner comes */
            return true;
        if (is_late(deadline_ns))
            break;
    }
    return from >= end;
}

/* The owner, if it comes just now, finds these blocks the next time. True: some are left. What it
 * is too late for, of a list that may be long, is not walked through either. */
static bool cool_list(struct heap *heap, large_list *list, struct heap_cooling *cooling,
                      uint64_t deadline_ns) {
    bool is_left = false, in_time = true;
    struct large *large = large_none(list) ? NULL : large_take_all(list);
    for (struct large *next; large && in_time; large = next) {
        next = large->handed_next;
        bool is_done =
            has_waited(&large->seen_ms, cooling) && cool_large(large, cooling, deadline_ns);
        cooling->parts += is_done;
        large_push(is_done ? &heap->cooled : &heap->handed_in, large);
        is_left |= !is_done;
        in_time = !is_late(deadline_ns);
    }
    if (large) /* release: as in large_push() */
        atomic_store_explicit(&heap->postponed, large, memory_order_release);
    return is_left || large;
}

/* True: some are left. The first list ends before the second begins, or is all that is looked at:
 * so nothing is postponed where something is. */
static bool cool_lists(struct heap *heap, struct heap_cooling *cooling, uint64_t deadline_ns) {
    bool is_left = cool_list(heap, &heap->postponed, cooling, deadline_ns);
    return large_none(&heap->postponed)
               ? cool_list(heap, &heap->handed_in, cooling, deadline_ns)
               : is_left;
}

/* ---- parked scopes ---- */

/* Who cools sees that the owner waits, and leaves the heap alone until it was there: a lock that is
 * taken again at once might never be the other's. */
static void lock_own(struct heap *heap) {
    if (pthread_mutex_trylock(&heap->parked_lock) == 0)
        return;
    /* relaxed: a hint */
    atomic_store_explicit(&heap->is_wanted, true, memory_order_relaxed);
    pthread_mutex_lock(&heap->parked_lock);
    atomic_store_explicit(&heap->is_wanted, false, memory_order_relaxed);
}

static bool is_wanted(struct heap *heap) {
    return atomic_load_explicit(&heap->is_wanted, memory_order_relaxed);
}

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
    struct heap *heap = scope->heap;
    scope->is_warm = false;
    if (heap->turn_of == scope)
        heap->turn_of = scope->warm_next;
    if (scope->warm_prev)
        scope->warm_prev->warm_next = scope->warm_next;
    else
        heap->warm = scope->warm_next;
    if (scope->warm_next)
        scope->warm_next->warm_prev = scope->warm_prev;
}

/* While some pages of its arena are gone no others are to be joined to huge ones: the kernel would
 * bring those back, in its own time. So it would those that went when it was parked before. */
static void keep_small(struct scope *scope, uintptr_t gap) {
    uintptr_t addr;
    size_t bytes;
    if (scope->is_small ||
        !region_find_arena((const struct region *)scope->step.region.lane, &addr, &bytes) ||
        gap < addr || gap - addr >= bytes)
        return;
    kind_welcome_huge(addr, bytes, false);
    scope->is_small = true;
}

static void welcome_huge(struct scope *scope) {
    uintptr_t addr;
    size_t bytes;
    if (scope->is_small &&
        region_find_arena((const struct region *)scope->step.region.lane, &addr, &bytes))
        kind_welcome_huge(addr, bytes, true);
    scope->is_small = false;
}

/* What has gone may come back from here on, and gaps change. */
static void forget_cooled(struct scope *scope) {
    welcome_huge(scope);
    scope->seen_ms = 0;
    heap_forget_cooled(scope->cooled);
    scope->cooled = 0;
    scope->gap = (struct region_gap){0};
}

void heap_park(struct scope *scope) {
    if (scope->is_parked || !scope->step.lane)
        return;
    scope->is_parked = true;
    lock_own(scope->heap);
    scope->trims = atomic_load_explicit(&trims, memory_order_relaxed); /* see heap_begin_trim() */
    warm(scope);
    pthread_mutex_unlock(&scope->heap->parked_lock);
    tender_notice_change();
}

void heap_unpark(struct scope *scope) {
    if (!scope->is_parked)
        return;
    scope->is_parked = false;
    lock_own(scope->heap);
    forget_cooled(scope);
    if (scope->is_warm)
        chill(scope);
    pthread_mutex_unlock(&scope->heap->parked_lock);
}

/* A trim is not for what is parked while it is at work, or it might have no end. */
static bool is_for_later(const struct scope *scope, const struct heap_cooling *cooling) {
    return cooling->trim && scope->trims >= cooling->trim;
}

/* A part of the gap that the walk is at goes; or it goes on. Pages that the system does not take
 * are passed, as they are. False: it has seen all. */
static bool cool_gap(struct scope *scope, struct heap_cooling *cooling) {
    struct region_gap *gap = &scope->gap;
    if (gap->from == gap->to) {
        cooling->parts++;
        return region_next_gap((struct region *)scope->step.region.lane, gap);
    }
    size_t bytes = cool_part(gap->from, gap->to, cooling);
    if (bytes)
        keep_small(scope, gap->from);
    gap->from = bytes ? gap->from + bytes : gap->to;
    scope->cooled += bytes;
    return true;
}

/* The heap's turn is over. */
static bool is_over(struct heap *heap, uint64_t deadline_ns) {
    return is_late(deadline_ns) || is_wanted(heap);
}

/* True: it has no more to give. */
static bool cool_scope(struct scope *scope, struct heap_cooling *cooling, uint64_t deadline_ns) {
    bool is_left = !is_for_later(scope, cooling) && has_waited(&scope->seen_ms, cooling);
    if (!is_left)
        return false;
    do
        is_left = cool_gap(scope, cooling);
    while (is_left && !is_over(scope->heap, deadline_ns));
    return !is_left;
}

/* What is free between large blocks of scopes that have been parked for long enough goes. True:
 * some are left. */
static bool cool_scopes(struct heap *heap, struct heap_cooling *cooling, uint64_t deadline_ns) {
    bool in_time = true;
    if (is_wanted(heap)) {
        cooling->parts++; /* the owner's */
        return true;
    }
    pthread_mutex_lock(&heap->parked_lock);
    struct scope *scope = heap->turn_of ? heap->turn_of : heap->warm;
    bool is_left = scope != heap->warm; /* those before it */
    for (struct scope *next; scope && in_time; scope = next) {
        next = scope->warm_next;
        if (cool_scope(scope, cooling, deadline_ns))
            chill(scope);
        else
            is_left |= !is_for_later(scope, cooling);
        in_time = !is_over(heap, deadline_ns);
    }
    heap->turn_of = scope;
    pthread_mutex_unlock(&heap->parked_lock);
    return is_left || scope;
}

/* ---- empty trays ---- */

/* Its thread has begun no scope for long enough. */
static bool has_rested(struct heap *heap, const struct heap_cooling *cooling) {
    /* relaxed: it says how long ago only */
    uint64_t begun = atomic_load_explicit(&heap->begun, memory_order_relaxed);
    if (begun != heap->seen_begun)
        heap->rests_since_ms = 0;
    heap->seen_begun = begun;
    return has_waited(&heap->rests_since_ms, cooling);
}

/* True: some are left. */
static bool cool_stash(struct heap *heap, bool is_due) {
    bool is_left = false;
    for (unsigned i = 0; i < HEAP_STASH && !is_left; i++) {
        /* relaxed: heap_take_place() acquires */
        if (!atomic_load_explicit(&heap->stash[i], memory_order_relaxed))
            continue;
        is_left = !is_due;
        struct tray *tray = is_left ? NULL : heap_take_place(heap, i);
        if (tray)
            tray_give(tray);
    }
    return is_left;
}

/* ---- all of these ---- */

static void cool_heap(struct heap *heap, struct heap_cooling *cooling, uint64_t deadline_ns) {
    uint64_t before = cooling->parts;
    cooling->turns++;
    bool is_left = cool_lists(heap, cooling, deadline_ns);
    is_left |= cool_scopes(heap, cooling, deadline_ns);
    bool is_due = has_rested(heap, cooling);
    is_left |= cool_stash(heap, is_due);
    is_left |= heap_settle_resting(heap, is_due);
    cooling->fruitless = cooling->parts != before ? 0 : cooling->fruitless + 1;
    cooling->exhausted = is_left ? 0 : cooling->exhausted + 1;
}

static bool is_around(const struct heap_cooling *cooling) {
    const struct heap *newest = heap_newest();
    return !newest || cooling->turns > newest->number;
}

/* All heaps were looked at since one had anything left; or, in a trim, since there was anything to
 * do. */
static bool is_done(const struct heap_cooling *cooling) {
    const struct heap *newest = heap_newest();
    return !newest || cooling->exhausted > newest->number ||
           (cooling->trim && cooling->fruitless > newest->number);
}

/* With the lock held, so that no fork comes while a block is in no list; it is given back while a
 * keeper is settled. Heaps that a fork has lost too: what is freed in the child need not stay. */
bool heap_cool(struct heap_cooling *cooling) {
    heap_lock(true);
    uint64_t deadline = cooling->limit_ns ? os.now_ns() + cooling->limit_ns : 0;
    struct heap *first = cooling->turn_of ? cooling->turn_of : heap_newest(), *heap = first;
    for (bool stops = !heap; !stops; stops = heap == first || is_late(deadline)) {
        cool_heap(heap, cooling, deadline);
        heap = heap->next ? heap->next : heap_newest();
    }
    cooling->turn_of = heap;
    cooling->is_around = is_around(cooling);
    bool is_left = !is_done(cooling);
    heap_lock(false);
    return is_left;
}
