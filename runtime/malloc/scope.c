// SPDX-License-Identifier: Apache-2.0
/*
 * scope.c - scopes begin, serve and end (see heap.h).
 *
 *     small blocks   bumped in trays; what is freed serves the next request of its size
 *     large blocks   in the region of a step of the hidden site, planned, begun when it is needed
 *
 * At the end trays with live blocks are sealed and stay until these are freed; large blocks that
 * are alive are promoted, by relinking, to the keeper of the heap; the step ends.
 *
 * What survivors pin is bounded: keys of those that stay are learnt (suspects.h), a scope whose
 * trays are mostly dead puts no more small blocks there, and while all pinned trays together are
 * mostly dead no scope does.
 *
 * Invariant: a block's address never changes. Fails towards the general heap where there is no
 * memory. A scope whose survivors cannot be promoted for want of memory waits, stuck, with all its
 * large blocks, and is tried again at each end of another one.
 */
#include "malloc/heap.h"
#include "malloc/general.h"
#include "malloc/guard.h"
#include "malloc/served.h"
#include "malloc/tender.h"
#include "malloc/trim.h"
#include "malloc/turn.h"

#include "base/check.h"
#include "base/error.h"
#include "region/track.h"
#include "step/scope.h"

#include <string.h>

#define DENSE 4u             /* trays have at most so many times the bytes of their live blocks */
#define TRAYS_LOOKED_AT 64u  /* after so many more, and an eighth, the density is looked at */
#define PINNED_SLACK ((size_t)4 << 20)
#define PINNED_LOOK 64u /* after so many more pinned trays, or ends, all of them are looked at */
#define SPARES 16u

struct scope_free scope_free_none;

static _Atomic(bool) pins_too_much;
static _Atomic(uint64_t) pins, look_at; /* so far; at so many */

/* ---- the chain of entered scopes ---- */

/* The one that stands for a scope to come is the last, and nobody's. */
static void link_scopes(struct scope *inner, struct scope *outer) {
    if (outer && outer != &scope_awaited)
        outer->inner = inner;
    if (inner)
        inner->outer = outer;
}

static void enter(struct scope *scope) {
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

/* A turn may begin with this block, or have to end before it. NULL: no scope serves it. */
static struct scope *serving(struct scope *scope) {
    if (scope == &scope_awaited)
        return turn_begin();
    if (!scope->over)
        return scope;
    turn_end();
    return NULL;
}

/* ---- what its site holds ---- */

static struct holding *holding_of(const struct scope *scope) {
    return scope->served ? scope->served->holding : NULL;
}

static void add(_Atomic(uint64_t) *count, uint64_t more) {
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

static void take(_Atomic(uint64_t) *count, uint64_t less) {
    /* release: pairs with served_sum(), after which a site may go */
    atomic_fetch_sub_explicit(count, less, memory_order_release);
}

static void hold(struct scope *scope, uint64_t bytes) {
    uint64_t before = scope->open_bytes;
    scope->open_bytes = bytes;
    if (!scope->counts)
        return;
    if (before < bytes)
        add(&scope->counts[SERVED_OPEN_BYTES], bytes - before);
    else if (before > bytes)
        take(&scope->counts[SERVED_OPEN_BYTES], before - bytes);
}

/* Its trays, and the pages of its large blocks. */
static void hold_pages(struct scope *scope) {
    const struct region *region = (const struct region *)scope->step.region.lane;
    uint64_t pages = scope->step.lane ? region->reserved.current : 0;
    hold(scope, scope->trays * TRAY_BYTES + pages + scope->tenured_bytes);
}

/* ---- small blocks ---- */

/* Bytes that other threads have freed, but for the tray in use. */
static uint64_t freed_by_others(const struct scope *scope) {
    uint64_t bytes = 0;
    for (const struct tray *tray = scope->full; tray; tray = tray->next)
        bytes += tray_balance_bytes(-atomic_load_explicit(&tray->balance, memory_order_relaxed));
    return bytes;
}

/* Too much of the scope's trays is dead. */
static bool is_sparse(const struct scope *scope) {
    uint64_t freed = scope->freed_bytes + freed_by_others(scope);
    return scope->bytes - freed < scope->trays * TRAY_BYTES / DENSE;
}

static void use_tray(struct scope *scope, struct tray *tray) {
    scope->tray = tray;
    scope->cursor = tray_first(tray);
    scope->limit = tray_end(tray);
}

static void put_aside(struct scope *scope) {
    struct tray *tray = scope->tray;
    if (!tray)
        return;
    tray->used_to = scope->cursor;
    tray->next = scope->full;
    scope->full = tray;
    scope->tray = NULL;
    scope->cursor = scope->limit = 0;
}

/* A scope's own lists, kept with its record. */
static bool has_lists(struct scope *scope) {
    if (scope->free != &scope_free_none)
        return true;
    struct scope_free *lists = je_calloc(1, sizeof *lists);
    if (lists)
        scope->free = lists;
    return lists != NULL;
}

static bool next_tray(struct scope *scope) {
    if (!scope->plain && scope->trays >= scope->look_at) {
        scope->plain = is_sparse(scope);
        scope->look_at = scope->trays + TRAYS_LOOKED_AT + scope->trays / 8;
    }
    bool serves = !scope->plain && has_lists(scope);
    struct tray *tray = serves ? heap_take_tray(scope->heap) : NULL;
    if (!tray)
        return false;
    put_aside(scope);
    tray->scope = scope;
    scope->trays++;
    hold_pages(scope);
    use_tray(scope, tray);
    return true;
}

void *scope_alloc_small(struct scope *scope, size_t bytes, size_t align, uint16_t key) {
    size_t step = tray_step(bytes);
    if (!(scope = serving(scope)))
        return NULL;
    struct tray_head *head = scope_bump(scope, step, align);
    if (!head && next_tray(scope))
        head = scope_bump(scope, step, align);
    return head ? scope_place(scope, head, step, key) : NULL;
}

/* ---- large blocks ---- */

static bool begin_step(struct scope *scope) {
    if (!scope->served || !ebb_region_is_open(heap_keeper(scope->heap)))
        return false;
    error_mute();
    scope->step = ebb_step_begin_under(scope->served->hidden, heap_keeper(scope->heap), scope->tag);
    error_unmute();
    return scope->step.lane != NULL;
}

static ebb_region region_of(const struct large *large) {
    return large->scope ? large->scope->step.region : large->heap->keeper;
}

static bool is_tenured(const struct scope *scope, const void *block) {
    const struct track *track = ((const struct region *)scope->step.region.lane)->track;
    return track && track_home(track, (uintptr_t)block);
}

static struct large **list_of(struct large *large) {
    return large->scope ? &large->scope->larges : &large->heap->kept;
}

/* Without a step, where that is not worth its cost: its site is modest, and so is this scope so
 * far. */
static bool is_for_general(struct scope *scope, size_t bytes) {
    scope->asked_bytes += bytes;
    return scope->is_modest && scope->asked_bytes <= SERVED_MODEST_BYTES && !scope->step.lane;
}

void scope_note_growth(struct scope *scope, size_t bytes_before, size_t bytes) {
    if (scope != &scope_awaited && bytes > bytes_before)
        scope->asked_bytes += bytes - bytes_before;
}

void *scope_alloc_large(struct scope *scope, size_t bytes, size_t align) {
    if (!(scope = serving(scope)) || is_for_general(scope, bytes))
        return NULL;
    struct heap *heap = scope->heap;
    heap_drain(heap);
    if (!scope->step.lane && !begin_step(scope))
        return NULL;
    error_mute();
    void *block = ebb_region_alloc(scope->step.region, bytes, align);
    struct large *large = block ? large_add(&heap->unused, block, bytes) : NULL;
    if (block && !large)
        ebb_region_release(scope->step.region, block);
    error_unmute();
    if (!large)
        return NULL;
    large->heap = heap;
    large->scope = scope;
    large->is_tenured = is_tenured(scope, block);
    large_link(&scope->larges, large);
    scope->large_blocks++;
    scope->large_bytes += bytes;
    scope->tenured_bytes += large->is_tenured ? bytes : 0;
    hold_pages(scope);
    return block;
}

void scope_release_large(struct large *large) {
    error_mute();
    int result = ebb_region_release(region_of(large), (void *)large->block);
    error_unmute();
    CHECK(result == 0);
    if (!large->scope)
        holding_unpin(large->holding, large->bytes);
    else if (large->is_tenured)
        large->scope->tenured_bytes -= large->bytes;
    struct heap *heap = large->heap;
    size_t kept_bytes = large->scope ? 0 : large->bytes;
    large_unlink(list_of(large), large);
    large_remove(&heap->unused, large);
    if (kept_bytes)
        heap_settle_now_and_then(heap, kept_bytes);
}

bool scope_resize_large(struct large *large, size_t bytes) {
    error_mute();
    int result = ebb_region_resize(large->scope->step.region, (void *)large->block, bytes);
    error_unmute();
    if (result)
        return false;
    size_t more = bytes - size_smaller(bytes, large->bytes);
    large->scope->asked_bytes += more;
    large->scope->large_bytes += more;
    if (large->is_tenured) {
        large->scope->tenured_bytes -= large->bytes;
        large->scope->tenured_bytes += bytes;
        hold_pages(large->scope);
    }
    large->bytes = bytes;
    return true;
}

/* ---- the end ---- */

/* A scope has ended that pinned so many trays, or none and is plain, which counts as one. The more
 * are pinned, the longer a look takes, and the later it comes. */
static void note_pinned(uint64_t trays) {
    uint64_t more = trays ? trays : 1;
    uint64_t now = atomic_fetch_add_explicit(&pins, more, memory_order_relaxed) + more;
    if (now < atomic_load_explicit(&look_at, memory_order_relaxed))
        return;
    struct tray_pinned pinned = tray_read_pinned();
    atomic_store_explicit(&look_at, now + PINNED_LOOK + pinned.trays / PINNED_LOOK,
                          memory_order_relaxed);
    atomic_store_explicit(&pins_too_much, pinned.bytes > DENSE * pinned.live + PINNED_SLACK,
                          memory_order_relaxed);
}

static void end_trays(struct scope *scope) {
    struct suspects *suspects = &scope->heap->suspects;
    uint64_t pinned = 0;
    if (GUARDED)
        guard_release_scoped(scope);
    put_aside(scope);
    suspects_judge(suspects); /* those of the scope before */
    if (scope->has_free)
        memset(scope->free, 0, sizeof *scope->free);
    uint64_t left_bytes = scope->bytes - scope->freed_bytes; /* in the trays to come */
    if (GUARDED && left_bytes)
        suspects_convict(scope->full);
    for (struct tray *tray = scope->full, *next; tray; tray = next) {
        next = tray->next;
        int64_t left = left_bytes ? tray_count(tray) : 0;
        left_bytes -= tray_balance_bytes(left);
        uint64_t seal = tray_seal(tray, left, holding_of(scope));
        pinned += seal != 0;
        if (!seal)
            heap_give_tray(scope->heap, tray);
        else if (!GUARDED)
            suspects_add(suspects, tray, seal);
    }
    if (!pinned && !scope->plain)
        return;
    if (scope->counts)
        add(&scope->counts[SERVED_SURVIVED_TRAYS], pinned);
    note_pinned(pinned);
}

/* What a plan served can be relinked from here on. False: no memory for it. */
static bool loosen(const struct scope *scope) {
    struct track *track = ((struct region *)scope->step.region.lane)->track;
    return !track || track_dissolve(track);
}

/* Promotes what is alive of large blocks; false: no memory for it. */
static bool keep_larges(struct scope *scope) {
    size_t count = 0, bytes = 0, i = 0;
    for (const struct large *large = scope->larges; large; large = large->next) {
        count++;
        bytes += large->bytes;
    }
    struct ebb_survivor *list = loosen(scope) ? je_calloc(count, sizeof *list) : NULL;
    if (!list)
        return false;
    for (const struct large *large = scope->larges; large; large = large->next)
        list[i++] = (struct ebb_survivor){.block = (void *)large->block,
                                          .mode = EBB_PROMOTE_RELINK};
    int result = ebb_step_end_keeping(scope->step, scope->heap->keeper, list, count, NULL, NULL);
    i = 0;
    for (struct large *large = scope->larges, *next; large && result == 0; large = next) {
        next = large->next;
        CHECK((uintptr_t)list[i++].block == large->block);
        large->scope = NULL;
        large->holding = holding_of(scope);
        holding_pin(large->holding, large->bytes);
        large_link(&scope->heap->kept, large);
    }
    je_free(list);
    if (result != 0)
        return false;
    scope->larges = NULL;
    add(&scope->counts[SERVED_SURVIVED_BLOCKS], count);
    add(&scope->counts[SERVED_SURVIVED_BYTES], bytes);
    return true;
}

static bool end_step(struct scope *scope) {
    bool done = true;
    if (!scope->step.lane)
        return true;
    error_mute();
    if (scope->larges)
        done = keep_larges(scope);
    else
        (void)ebb_step_end(scope->step);
    error_unmute();
    return done;
}

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
        if (end_step(scope)) {
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
    add(&scope->counts[SERVED_SCOPES], 1);
    add(&scope->counts[SERVED_BLOCKS], scope->blocks + scope->large_blocks);
    add(&scope->counts[SERVED_BYTES], scope->bytes + scope->large_bytes);
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
    end_trays(scope);
    count(scope);
    heap_drain(heap);
    heap_settle_now_and_then(heap, 0);
    retry_stuck(heap);
    if (scope->asked_bytes)
        cool(scope);
    if (end_step(scope)) {
        give_record(scope);
    } else {
        scope->trays = 0; /* they have gone, or are pinned */
        hold_pages(scope);
        scope->next = heap->stuck;
        heap->stuck = scope;
    }
}

/* ---- for steps ---- */

static void end_abandoned(struct heap *heap) {
    /* relaxed: what is marked a moment later is found at the next begin */
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
    end_abandoned(heap);
    heap_drain(heap);
    struct scope_free *lists = scope->free;
    *scope = (struct scope){.heap = heap, .tag = tag, .place = place, .next = heap->open};
    scope->free = lists;
    scope->plain = atomic_load_explicit(&pins_too_much, memory_order_relaxed);
    scope->served = find_served(site);
    if (scope->served) {
        scope->counts = scope->served->shares[heap->number % SERVED_SHARES].counts;
        scope->is_modest = served_is_modest(scope->served);
        add(&scope->counts[SERVED_OPEN], 1);
    }
    if (heap->open)
        heap->open->prev = scope;
    heap->open = scope;
    heap->opens++;
    enter(scope);
    return scope;
}

static bool is_own(const void *place) {
    const struct scope *scope = place;
    if (scope->heap == here.heap)
        return true;
    error_set(EBB_E_THREAD, "the scope of a step of site '%s' belongs to another thread",
              scope->served ? scope->served->name : "?");
    return false;
}

static void end(void *scope) {
    scope_end(scope);
}

static void mark_abandoned(struct scope *scope) {
    struct heap *heap = scope->heap;
    atomic_store_explicit(&scope->abandoned, true, memory_order_release); /* it may be gone now */
    /* release, and an exchange: its thread sees the marks of all who came before it looks */
    (void)atomic_exchange_explicit(&heap->has_abandoned, true, memory_order_release);
}

/* The scope ends here or, if another thread began it, when that thread next begins one; or it ends
 * with that thread just now. */
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
}

static void enter_again(void *scope) {
    leave(scope);
    enter(scope);
}

static const struct scope_server server = {
    .begin = begin,
    .is_own = is_own,
    .end = end,
    .abandon = abandon,
    .leave = leave_once,
    .enter = enter_again,
    .forget = served_forget,
};

void scope_serve(void) {
    scope_server = &server;
}
