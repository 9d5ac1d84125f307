// SPDX-License-Identifier: Apache-2.0
/*
 * tender.h - a thread that looks after memory nobody is using just now, and serves statistics.
 *
 * It starts with the first scope, or when much was freed (swings.h), or at once if statistics are
 * asked for. While scopes come and go it only serves statistics; memory that has not been touched
 * for a while is given back to the system in parts, so that a lock is held for a millisecond at
 * most. With nothing to do it sleeps until a scope begins, ends or changes, or much is freed, and
 * looks every ten seconds. Where there are no scopes, and little is in use, it ends instead.
 */
#ifndef EBB_MALLOC_TENDER_H
#define EBB_MALLOC_TENDER_H

#include "base/hidden.h"

#include <stdatomic.h>
#include <stdbool.h>

extern HIDDEN _Atomic(bool) tender_sleeps, tender_is_there;

/* Measures what its stack needs. When the library is loaded. */
void tender_prepare(void);

/* Starts the thread if there is none and it would have something to do. Any thread. */
void tender_begin(void);

/* The general heap has much less in use than before: the thread is to look, and is begun if it may
 * be. Waits for nobody, and may be called in a free(). False: it is not there, or does not know. */
bool tender_expect(bool may_begin);

void tender_wake(void);
void tender_rouse(void);

/* A scope begins. In the child of a fork this starts the thread again. */
static inline void tender_notice(void) {
    if (__builtin_expect(atomic_load_explicit(&tender_sleeps, memory_order_relaxed), 0))
        tender_wake();
}

/* A scope ends, or its large blocks change. Starts no thread. */
static inline void tender_notice_change(void) {
    if (__builtin_expect(atomic_load_explicit(&tender_sleeps, memory_order_relaxed), 0))
        tender_rouse();
}

/* Before a fork, and after: in the child there is no thread. */
void tender_fork(bool before, bool in_child);

#endif
