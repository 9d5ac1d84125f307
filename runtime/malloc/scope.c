// SPDX-License-Identifier: Apache-2.0
/*
 * scope.c - scopes begin, serve and end (see heap.h).
 *
 * Small blocks are those of scope_small.c, large ones those of scope_large.c. A scope whose
 * survivors cannot be promoted for want of memory waits, stuck, with all its large blocks, and is
 * tried again whenever another one begins or ends; where its thread has ended, when its site is to
 * go, or what ended threads have left is looked at.
 */
#include "malloc/general.h"
#include "malloc/scope.h"
#include "malloc/tender.h"
#include "malloc/trim.h"
#include "malloc/turn.h"

#include "base/error.h"
#include "pool/cuda.h"
#include "step/scope.h"

#define SPARES 16u

/* ---- the chain of entered scopes ---- */

/* The one that stands for a scope to come is the last, and nobody's. */
static void link_scopes(struct scope *inner, struct scope *outer) {
    if (outer && outer != &scope_awaited)
        outer->inner = inner;
    if (inner)
        inner->outer = outer;
}

/* It serves no block for now, perhaps for long: its connection waits. */
static void rest(struct scope *scope) {
    scope_sweep(scope);
    heap_park(scope);
}

static void enter(struct scope *scope) {
    if (here.scope && here.scope != &scope_awaited)
        rest(here.scope);
    link_scopes(scope, here.scope);
    scope->inner = NULL;
    scope->entered = true;
    here.scope = scope;
}

static void leave(struct scope *scope) {
    if (!scope->entered)
        return;
    link_scopes(scope->inner, scope->outer);
    if (here.scope == scope)
        here.scope = scope->outer;
    else if (here.aside == scope)
        here.aside = scope->outer;
    scope->entered = false;
}

struct scope *scope_serving(struct scope *scope) {
    if (scope == &scope_awaited)
        return turn_begin();
    if (!scope->over)
        return scope;
    turn_end();
    return NULL;
}

/* ---- what its site holds ---- */

static void take(_Atomic(uint64_t) *count, uint64_t less) {
    /* release: pairs with served_sum(), after which a site may go */
    atomic_fetch_sub_explicit(count, less, memory_order_release);
}

static void hold(struct scope *scope, uint64_t bytes) {
    uint64_t before = scope->open_bytes;
    scope->open_bytes = bytes;
    if (before < bytes)
        scope_count(scope, SERVED_OPEN_BYTES, bytes - before);
    else if (before > bytes && scope->counts)
        take(&scope->counts[SERVED_OPEN_BYTES], before - bytes);
}

void scope_hold_pages(struct scope *scope) {
    const struct region *region = (const struct region *)scope->step.region.lane;
    uint64_t pages = scope->step.lane ? region->reserved.current : 0;
    hold(scope, scope->trays * TRAY_BYTES + pages + scope->tenured_bytes);
}

/* ---- the end ---- */

/* As many as scopes are open are enough, and some: each has four KiB of lists. */
static void drop_spares(struct heap *heap) {
    while (heap->spares > heap->opens + SPARES) {
        struct scope *scope = heap->spare;
        heap->spare = scope->next;
        heap->spares--;
        if (scope->free != &scope_free_none)
            je_free(scope->free);
        je_free(scope);
    }
}

/* The scope is over. From here on its site may go. */
static void give_record(struct scope *scope) {
    struct heap *heap = scope->heap;
    hold(scope, 0);
    if (scope->counts)
        take(&scope->counts[SERVED_OPEN], 1);
    scope->next = heap->spare;
    heap->spare = scope;
    heap->spares++;
    drop_spares(heap);
}

static void retry_stuck(struct heap *heap) {
    struct scope **place = &heap->stuck;
    while (*place) {
        struct scope *scope = *place;
        if (scope_end_step(scope)) {
            *place = scope->next;
            give_record(scope);
        } else {
            place = &scope->next;
        }
    }
}

/* Of a heap, whose thread alone writes it. */
static void count_own(_Atomic(uint64_t) *count) {
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void count(const struct scope *scope) {
    count_own(&scope->heap->ended);
    if (scope->step.lane)
        count_own(&scope->heap->ended_large);
    if (!scope->served)
        return;
    scope_count(scope, SERVED_SCOPES, 1);
    scope_count(scope, SERVED_BLOCKS, scope->blocks + scope->large_blocks);
    scope_count(scope, SERVED_BYTES, scope->bytes + scope->large_bytes);
    served_note_large(scope->served, scope->asked_bytes);
}

/* It had large blocks: in a step of its own, or else in the general heap. */
static void cool(const struct scope *scope) {
    size_t back = trim_after(scope->step.lane != NULL);
    if (back && scope->served) /* relaxed: a sum that nothing depends on */
        atomic_fetch_add_explicit(&scope->served->hidden->given_back, back, memory_order_relaxed);
}

void scope_end(struct scope *scope) {
    struct heap *heap = scope->heap;
    leave(scope);
    if (scope->place)
        *scope->place = NULL;
    heap->opens--;
    if (scope->prev)
        scope->prev->next = scope->next;
    else
        heap->open = scope->next;
    if (scope->next)
        scope->next->prev = scope->prev;
    scope_end_trays(scope);
    count(scope);
    heap_drain(heap);
    heap_settle_now_and_then(heap, 0);
    retry_stuck(heap);
    if (scope->asked_bytes)
        cool(scope);
    if (scope_end_step(scope)) {
        give_record(scope);
    } else {
        scope->trays = 0; /* they have gone, or are pinned */
        scope_hold_pages(scope);
        scope->next = heap->stuck;
        heap->stuck = scope;
    }
    tender_notice_change();
}

/* ---- for steps ---- */

static void end_abandoned(struct heap *heap) {
    /* relaxed: what is marked a moment later is found at the next begin or end */
    if (!atomic_load_explicit(&heap->has_abandoned, memory_order_relaxed))
        return;
    /* acquire: pairs with abandon() */
    (void)atomic_exchange_explicit(&heap->has_abandoned, false, memory_order_acquire);
    for (struct scope *scope = heap->open, *next; scope; scope = next) {
        next = scope->next;
        /* acquire: one may be marked just now */
        if (atomic_load_explicit(&scope->abandoned, memory_order_acquire))
            scope_end(scope);
    }
}

void scope_end_late(struct heap *heap) {
    end_abandoned(heap);
    retry_stuck(heap);
}

static struct scope *take_record(struct heap *heap) {
    struct scope *scope = heap->spare;
    if (scope) {
        heap->spare = scope->next;
        heap->spares--;
    } else if ((scope = je_malloc(sizeof *scope))) {
        scope->free = &scope_free_none;
    }
    return scope;
}

static struct served *find_served(ebb_site *site) {
    error_mute();
    struct served *served = served_of(site);
    error_unmute();
    return served;
}

static void *begin(ebb_site *site, uint64_t tag, void **place) {
    struct heap *heap = heap_own();
    struct scope *scope = heap ? take_record(heap) : NULL;
    if (!scope)
        return NULL;
    tender_notice();
    count_own(&heap->begun);
    scope_end_late(heap);
    heap_drain(heap);
    struct scope_free *lists = scope->free;
    *scope = (struct scope){.heap = heap, .tag = tag, .place = place, .next = heap->open};
    scope->free = lists;
    scope->plain = scope_pins_too_much();
    scope->served = find_served(site);
    if (scope->served) {
        scope->counts = scope->served->shares[heap->number % SERVED_SHARES].counts;
        scope->is_modest = served_is_modest(scope->served);
        scope_count(scope, SERVED_OPEN, 1);
    }
    if (heap->open)
        heap->open->prev = scope;
    heap->open = scope;
    heap->opens++;
    enter(scope);
    return scope;
}

static bool is_own(void *const *place) {
    heap_lock(true);
    const struct scope *scope = *place;
    bool is_own = !scope || scope->heap == here.heap;
    heap_lock(false);
    return is_own;
}

static void end(void *scope) {
    struct heap *heap = ((struct scope *)scope)->heap;
    scope_end(scope);
    end_abandoned(heap);
}

static void mark_abandoned(struct scope *scope) {
    struct heap *heap = scope->heap;
    atomic_store_explicit(&scope->abandoned, true, memory_order_release); /* it may be gone now */
    /* release, and an exchange: its thread sees the marks of all who came before it looks */
    (void)atomic_exchange_explicit(&heap->has_abandoned, true, memory_order_release);
}

/* The scope ends here or, if another thread began it, when that thread next begins or ends one; or
 * it ends with that thread just now. */
static void abandon(void **place) {
    heap_lock(true);
    struct scope *scope = *place;
    bool is_own = scope && scope->heap == here.heap;
    if (scope)
        scope->place = NULL;
    if (scope && !is_own)
        mark_abandoned(scope);
    heap_lock(false);
    if (is_own)
        scope_end(scope);
}

void scope_rest_all(struct heap *heap) {
    for (struct scope *scope = heap->open; scope; scope = scope->next) {
        scope_sweep_wholly(scope);
        heap_park(scope);
    }
}

void scope_forget_steps(struct scope *scope) {
    heap_lock(true);
    for (; scope; scope = scope->next) {
        if (scope->place)
            *scope->place = NULL;
        scope->place = NULL;
    }
    heap_lock(false);
}

static void leave_once(void *scope) {
    leave(scope);
    rest(scope);
}

static void enter_again(void *scope) {
    leave(scope);
    enter(scope);
}

static int forget(ebb_site *site) {
    if (here.heap)
        scope_end_late(here.heap);
    if (served_sum(site->served, SERVED_OPEN)) /* perhaps of a thread that has ended */
        heap_tidy_left();
    return served_forget(site);
}

static const struct scope_server server = {
    .begin = begin,
    .is_own = is_own,
    .end = end,
    .abandon = abandon,
    .leave = leave_once,
    .enter = enter_again,
    .forget = forget,
};

/* ---- while a driver is at work ---- */

static __thread struct here before_away __attribute__((tls_model("initial-exec")));

/* As a thread that never had a scope: the general heap serves it, and what it frees is handed in to
 * whoever has it, without locks of pools and sites. */
static void stand_aside(void) {
    if (here.away++)
        return;
    before_away = here;
    here = (struct here){.away = 1};
}

static void come_back(void) {
    if (--here.away)
        return;
    here = before_away;
    here.away = 0;
}

static const struct cuda_bystander bystander = {stand_aside, come_back};

void scope_serve(void) {
    scope_server = &server;
    cuda_bystander = &bystander;
}
