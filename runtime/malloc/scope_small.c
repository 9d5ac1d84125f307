// SPDX-License-Identifier: Apache-2.0
/*
 * scope_small.c - small blocks of scopes: bumped in trays; what is freed serves the next request of
 * its size.
 *
 * Trays in which nothing is alive any more go while the scope is open: when it has many that are
 * mostly dead, when it stops serving malloc() and hardly anything in it is alive, and at
 * malloc_trim(). Only its own thread can see which these are, by the heads of all their blocks.
 *
 * At the end trays with live blocks are sealed and stay until these are freed. What survivors pin
 * is bounded: keys of those that stay are learnt (suspects.h), a scope whose trays are mostly dead,
 * but for the empty ones, puts no more small blocks there, and while all pinned trays together are
 * mostly dead no scope does, and their pages go that no block needs (trim.h).
 *
 * Invariant: a block's address never changes. Fails towards the general heap where there is no
 * memory.
 */
#include "malloc/general.h"
#include "malloc/guard.h"
#include "malloc/misuse.h"
#include "malloc/quarantine.h"
#include "malloc/scope.h"

#include <string.h>

#define DENSE 4u             /* trays have at most so many times the bytes of their live blocks */
#define TRAYS_LOOKED_AT 64u  /* after so many more, and an eighth, the density is looked at */
#define LITTLE ((size_t)16 << 10) /* of a tray */
#define HARDLY ((size_t)256) /* bytes alive for each tray: most of them are empty then */
#define VAIN_MOST 16u        /* doublings */
#define PINNED_SLACK ((size_t)4 << 20)
#define PINNED_LOOK 64u /* after so many more pinned trays, or ends, all of them are looked at */

struct scope_free scope_free_none;

static _Atomic(bool) pins_too_much;
static _Atomic(uint64_t) pins, look_at; /* so far; at so many */

static uint64_t freed_by_others(const struct tray *tray) {
    return tray_balance_bytes(-atomic_load_explicit(&tray->balance, memory_order_relaxed));
}

/* Bytes of its blocks that nobody has freed. */
static uint64_t alive_bytes(const struct scope *scope) {
    uint64_t freed = scope->freed_bytes + (scope->tray ? freed_by_others(scope->tray) : 0);
    for (const struct tray *tray = scope->full; tray; tray = tray->next)
        freed += freed_by_others(tray);
    return scope->bytes - freed;
}

/* Too much of the scope's trays is dead. */
static bool is_sparse(const struct scope *scope) {
    return alive_bytes(scope) < scope->trays * TRAY_BYTES / DENSE;
}

/* Only those that may have a block: all of them are four KiB. */
static void clear_lists(struct scope *scope) {
    size_t most = size_smaller(scope->freed_steps, TRAY_MOST) / TRAY_GRANULE;
    if (most)
        memset(scope->free->newest, 0, (most + 1) * sizeof scope->free->newest[0]);
    scope->freed_steps = 0;
}

static void use_tray(struct scope *scope, struct tray *tray) {
    scope->tray = tray;
    scope->cursor = tray_first(tray) + sizeof(struct tray_head);
    scope->limit = (uintptr_t)tray + TRAY_BYTES;
}

static void put_aside(struct scope *scope) {
    struct tray *tray = scope->tray;
    if (!tray)
        return;
    tray->used_to = scope->cursor - sizeof(struct tray_head);
    tray->next = scope->full;
    scope->full = tray;
    scope->tray = NULL;
    scope->cursor = scope->limit = 0;
}

/* ---- trays in which nothing is alive ---- */

/* What its owner has freed there is to be had again. A step may have been overwritten. */
static void list_freed(struct scope *scope, const struct tray *tray) {
    for (const struct tray_head *head = NULL; (head = tray_next(tray, head));) {
        uint32_t step = tray_step_of(head);
        if (tray_state(head) == TRAY_FREED && step <= TRAY_MOST)
            scope_list(scope, (void *)(uintptr_t)(head + 1), step);
    }
}

/* What the heads say that others have freed. */
static int64_t passed(const struct tray *tray) {
    int64_t sum = 0;
    for (const struct tray_head *head = NULL; (head = tray_next(tray, head));)
        if (tray_state(head) == TRAY_PASSED)
            sum += tray_weight(tray_step_of(head));
    return sum;
}

/* What its owner has not freed of a tray that is not in use; if `is_any` is false it has freed all.
 * It frees without a look at what others do just then, so where it has freed a block that they had
 * taken off the balance, that shows here: no head says so any more. */
static int64_t count_left(const struct tray *tray, bool is_any) {
    /* acquire: who takes a block off the balance has marked it before */
    int64_t balance = atomic_load_explicit(&tray->balance, memory_order_acquire);
    int64_t left = is_any ? tray_count(tray) : 0;
    if (balance != 0 && balance + (is_any ? passed(tray) : 0) < 0)
        misuse_of_tray(tray);
    return left;
}

/* What others have freed in it was not counted. */
static void give_empty(struct scope *scope, struct tray *tray, int64_t left) {
    scope->freed_bytes += tray_balance_bytes(left);
    scope->trays--;
    heap_give_tray(scope->heap, tray);
}

/* The trays of the scope, none of which is in use, less the empty ones. */
static void give_empty_ones(struct scope *scope) {
    struct tray **place = &scope->full;
    clear_lists(scope);
    for (struct tray *tray = scope->full, *next; tray; tray = next) {
        next = tray->next;
        int64_t left = count_left(tray, scope->bytes != scope->freed_bytes);
        if (tray_is_empty(tray, left)) {
            *place = next;
            give_empty(scope, tray, left);
        } else {
            list_freed(scope, tray);
            place = &tray->next;
        }
    }
}

/* It goes on being bumped in, where it is still the scope's: then it is the newest. */
static void use_again(struct scope *scope, struct tray *tray) {
    if (!tray || scope->full != tray)
        return;
    scope->full = tray->next;
    use_tray(scope, tray);
    scope->cursor = tray->used_to + sizeof(struct tray_head);
}

static uint64_t turnover(const struct scope *scope) {
    return scope->bytes + scope->freed_bytes;
}

void scope_sweep_wholly(struct scope *scope) {
    struct tray *tray = scope->tray;
    if (GUARDED || !scope->trays)
        return; /* guarded, what is freed is held back, and its trays with it */
    put_aside(scope);
    give_empty_ones(scope);
    use_again(scope, tray);
    scope->swept_at = turnover(scope);
    scope_hold_pages(scope);
}

/* A little of one tray stays. */
static bool has_much(const struct scope *scope) {
    bool is_little = scope->tray && scope->cursor - (uintptr_t)scope->tray <= LITTLE;
    return scope->trays > 1 || (scope->trays == 1 && !is_little);
}

/* The time to look at many trays has to be paid for by what was allocated and freed there: by twice
 * as much after each look that found few of them empty. */
static bool is_due(const struct scope *scope) {
    uint64_t pays = (scope->trays * TRAY_BYTES / 2) << scope->vain_sweeps;
    return scope->trays > 1 && turnover(scope) >= scope->swept_at + pays;
}

/* True: at least half of the trays went. */
static bool sweep_helps(struct scope *scope) {
    unsigned before = scope->trays;
    scope_sweep_wholly(scope);
    return scope->trays <= before / 2;
}

/* What is alive may be a little in each. */
static void sweep_and_learn(struct scope *scope) {
    if (sweep_helps(scope))
        scope->vain_sweeps = 0;
    else if (scope->vain_sweeps < VAIN_MOST)
        scope->vain_sweeps++;
}

void scope_sweep(struct scope *scope) {
    bool is_dead = scope->bytes == scope->freed_bytes;
    if (is_dead ? !has_much(scope) : !is_due(scope))
        return;
    if (is_dead || alive_bytes(scope) <= scope->trays * HARDLY)
        sweep_and_learn(scope);
    scope->swept_at = turnover(scope);
}

/* ---- allocating ---- */

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
        /* with few trays left it may be sparse because a block or two are all that is alive now */
        scope->plain = is_sparse(scope) && !sweep_helps(scope) && is_sparse(scope);
        scope->look_at = scope->trays + TRAYS_LOOKED_AT + scope->trays / 8;
    }
    bool serves = !scope->plain && has_lists(scope);
    struct tray *tray = serves ? heap_take_tray(scope->heap) : NULL;
    if (!tray) {
        scope->plain = true; /* to ask for each block would cost ten system calls each time */
        return false;
    }
    put_aside(scope);
    tray->scope = scope;
    atomic_store_explicit(&tray->held, 0, memory_order_relaxed);
    scope->trays++;
    scope_hold_pages(scope);
    use_tray(scope, tray);
    return true;
}

void *scope_alloc_small(struct scope *scope, size_t bytes, size_t align, uint32_t key) {
    size_t step = tray_step(bytes);
    if (!(scope = scope_serving(scope)))
        return NULL;
    struct tray_head *head = scope_bump(scope, step, align);
    if (!head && next_tray(scope))
        head = scope_bump(scope, step, align);
    return head ? scope_place(scope, head, step, key) : NULL;
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

bool scope_pins_too_much(void) {
    return atomic_load_explicit(&pins_too_much, memory_order_relaxed);
}

/* Of what is alive in it, of which its owner has not freed so much, something is not just held back
 * by guards. */
static bool has_survivors(const struct tray *tray, int64_t left) {
    int64_t alive = left + atomic_load_explicit(&tray->balance, memory_order_relaxed);
    return !GUARDED || tray_balance_blocks(alive) !=
                           atomic_load_explicit(&tray->held, memory_order_relaxed);
}

void scope_end_trays(struct scope *scope) {
    struct suspects *suspects = &scope->heap->suspects;
    uint64_t pinned = 0;
    put_aside(scope);
    suspects_judge(suspects); /* those of the scope before */
    clear_lists(scope);
    uint64_t left_bytes = scope->bytes - scope->freed_bytes; /* in the trays to come */
    if (GUARDED && left_bytes)
        suspects_convict(scope->full);
    for (struct tray *tray = scope->full, *next; tray; tray = next) {
        next = tray->next;
        int64_t left = count_left(tray, left_bytes != 0);
        left_bytes -= tray_balance_bytes(left);
        bool survives = has_survivors(tray, left);
        uint64_t seal = tray_seal(tray, left, scope_holding(scope));
        pinned += seal && survives;
        if (!seal)
            heap_give_tray(scope->heap, tray);
        else if (!GUARDED)
            suspects_add(suspects, tray, seal);
    }
    if (GUARDED)
        quarantine_release_sealed();
    if (!pinned && !scope->plain)
        return;
    scope_count(scope, SERVED_SURVIVED_TRAYS, pinned);
    note_pinned(pinned);
}
