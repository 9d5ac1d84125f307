// SPDX-License-Identifier: Apache-2.0
/* fork.h - forks wait until no lock of the pools is held, and children notice that they are
 * children (see fork.c). */
#ifndef EBB_POOL_FORK_H
#define EBB_POOL_FORK_H

#include "base/hidden.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Installs the handlers of forks, once. Any thread. */
void fork_prepare(void);

/* The same for children not made by the C library, if the system allows to tell them: before there
 * is anything that such a child must leave alone. Any thread, any lock held. */
void fork_prepare_raw(void);

#define FORK_SETTLED 2u /* this process knows what is its parent's */

extern HIDDEN atomic_uint *_Atomic fork_state;

/* The slow path of fork_settle(). */
void fork_be_child(void);

/* In a child that ran no handler of forks: does what the handler would have done to the pools. To
 * be called before anything that depends on it. Any thread, any lock held. */
static inline void fork_settle(void) {
    /* acquire: a word that is complete, and what was done before it was set, is seen */
    atomic_uint *state = atomic_load_explicit(&fork_state, memory_order_acquire);
    if (atomic_load_explicit(state, memory_order_acquire) != FORK_SETTLED)
        fork_be_child();
}

/* How many forks led to this process: what was noted with another number is an ancestor's. */
unsigned fork_count(void);

/*
 * Handlers of forks may be registered twice: by another thread while this process was forked, and
 * once more here, since pthread_once() finds that thread's call unfinished. So the calls of one
 * fork are counted, by each thread for itself: the first takes the locks, the last gives them back.
 * These tell which one it is.
 */
static inline bool fork_is_first(unsigned *forking) {
    return (*forking)++ == 0;
}

static inline bool fork_is_last(unsigned *forking) {
    return --*forking == 0;
}

#endif
