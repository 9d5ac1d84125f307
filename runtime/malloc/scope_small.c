// SPDX-License-Identifier: Apache-2.0
/*
 * scope_small.c - small blocks of scopes: bumped in trays; what is freed serves the next request of
 * its size.
 *
 * At the end trays with live blocks are sealed and stay until these are freed. What survivors pin
 * is bounded: keys of those that stay are learnt (suspects.h), a scope whose trays are mostly dead
 * puts no more small blocks there, and while all pinned trays together are mostly dead no scope
 * does.
 *
 * Invariant: a block's address never changes. Fails towards the general heap where there is no
 * memory.
 */
#include "malloc/general.h"
#include "malloc/guard.h"
#include "malloc/scope.h"

#include <string.h>

#define DENSE 4u             /* trays have at most so many times the bytes of their live blocks */
#define TRAYS_LOOKED_AT 64u  /* after so many more, and an eighth, the density is looked at */
#define PINNED_SLACK ((size_t)4 << 20)
#define PINNED_LOOK 64u /* after so many more pinned trays, or ends, all of them are looked at */

struct scope_free scope_free_none;

static _Atomic(bool) pins_too_much;
static _Atomic(uint64_t) pins, look_at; /* so far; at so many */

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
    scope_hold_pages(scope);
    use_tray(scope, tray);
    return true;
}

void *scope_alloc_small(struct scope *scope, size_t bytes, size_t align, uint16_t key) {
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

void scope_end_trays(struct scope *scope) {
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
        uint64_t seal = tray_seal(tray, left, scope_holding(scope));
        pinned += seal != 0;
        if (!seal)
            heap_give_tray(scope->heap, tray);
        else if (!GUARDED)
            suspects_add(suspects, tray, seal);
    }
    if (!pinned && !scope->plain)
        return;
    scope_count(scope, SERVED_SURVIVED_TRAYS, pinned);
    note_pinned(pinned);
}
