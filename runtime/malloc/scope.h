// SPDX-License-Identifier: Apache-2.0
/*
 * scope.h - what scope.c, scope_small.c and scope_large.c tell each other. What others call is in
 * heap.h.
 */
#ifndef EBB_MALLOC_SCOPE_H
#define EBB_MALLOC_SCOPE_H

#include "malloc/heap.h"
#include "malloc/served.h"

/* ---- scope.c ---- */

/* A turn may begin with this block, or have to end before it. NULL: no scope serves it. */
struct scope *scope_serving(struct scope *scope);

/* Its site counts the pages that it has now: its trays, and those of its large blocks. */
void scope_hold_pages(struct scope *scope);

/* What outlives the scope counts there. */
static inline struct holding *scope_holding(const struct scope *scope) {
    return scope->served ? scope->served->holding : NULL;
}

static inline void scope_count(const struct scope *scope, enum served_count which, uint64_t more) {
    if (scope->counts)
        atomic_fetch_add_explicit(&scope->counts[which], more, memory_order_relaxed);
}

/* ---- scope_small.c ---- */

/* All pinned trays together are mostly dead: new scopes have none. */
bool scope_pins_too_much(void);

/* Those of its trays in which nothing is alive go: if hardly anything in it is alive and the look
 * is worth it, or whatever it takes. Its own thread. */
void scope_sweep(struct scope *scope);
void scope_sweep_wholly(struct scope *scope);

/* Trays in which something is alive are sealed, the others go. */
void scope_end_trays(struct scope *scope);

/* ---- scope_large.c ---- */

/* What is alive of large blocks is kept, and their step ends. False: there is no memory to keep it;
 * then it is still open. */
bool scope_end_step(struct scope *scope);

#endif
