// SPDX-License-Identifier: Apache-2.0
/* fork.h - forks wait until no lock of the pools is held, and children know that they are (see
 * fork.c). */
#ifndef EBB_POOL_FORK_H
#define EBB_POOL_FORK_H

#include "base/hidden.h"

#include <stdatomic.h>
#include <stdbool.h>

/* From the first call on. Any thread. */
void fork_prepare(void);

/* The same for children that the C library is not asked for, where the system can tell them. Before
 * there is anything that such a child must leave alone. Any thread, any lock held. */
void fork_prepare_raw(void);

#define FORK_SETTLED 2u /* what was the parent's is known to be so */

extern HIDDEN atomic_uint *_Atomic fork_state;

/* What fork_settle() has to do in a child. */
void fork_be_child(void);

/* In a child that no handler ran in: what the pools know of this process becomes what a child
 * knows. Whoever looks at that calls it first. Any thread, any lock held. */
static inline void fork_settle(void) {
    /* acquire: a word that is complete, and what was done before it was set, is seen */
    atomic_uint *state = atomic_load_explicit(&fork_state, memory_order_acquire);
    if (atomic_load_explicit(state, memory_order_acquire) != FORK_SETTLED)
        fork_be_child();
}

/* How many forks led to this process: what was noted at another number is its parent's. */
unsigned fork_count(void);

/*
 * Handlers of forks may be registered twice: by another thread while this process was made, and
 * once more here, where pthread_once() finds that thread's call unfinished. So they count, each
 * thread for itself, and of those of one fork the first takes the locks and the last gives them
 * back. True for that one.
 */
static inline bool fork_is_first(unsigned *forking) {
    return (*forking)++ == 0;
}

static inline bool fork_is_last(unsigned *forking) {
    return --*forking == 0;
}

#endif
