// SPDX-License-Identifier: Apache-2.0
/*
 * tender.h - a thread that looks after memory nobody is using just now, and tells statistics.
 *
 * It begins with the first scope, or at once where statistics are asked for. While scopes go on it
 * only writes the statistics; memory that nothing has touched for a while goes back to the system
 * in parts, so that a lock is held for a millisecond at most. With nothing to do it sleeps until
 * the next scope begins or ends, or changes, but for a look each ten seconds.
 */
#ifndef EBB_MALLOC_TENDER_H
#define EBB_MALLOC_TENDER_H

#include "base/hidden.h"

#include <stdatomic.h>
#include <stdbool.h>

extern HIDDEN _Atomic(bool) tender_sleeps;

/* Measures what its stack needs. When the library is loaded. */
void tender_prepare(void);

/* Begins it, if it has something to do and there is none. Any thread. */
void tender_begin(void);

void tender_wake(void);
void tender_rouse(void);

/* A scope begins. In the child of a fork that begins the thread again. */
static inline void tender_notice(void) {
    if (__builtin_expect(atomic_load_explicit(&tender_sleeps, memory_order_relaxed), 0))
        tender_wake();
}

/* A scope ends, or has large blocks come or go. Begins no thread. */
static inline void tender_notice_change(void) {
    if (__builtin_expect(atomic_load_explicit(&tender_sleeps, memory_order_relaxed), 0))
        tender_rouse();
}

/* Before a fork, and after: in the child there is no thread. */
void tender_fork(bool before, bool in_child);

#endif
