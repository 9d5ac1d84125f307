// SPDX-License-Identifier: Apache-2.0
/*
 * cancel.h - no cancellation while the program is called back with a lock held or work half done.
 *
 * Many calls of the C library are cancellation points (pthread_cancel()): write(), close(),
 * anything that waits. A thread that ended there would leave the lock held, or the work half done,
 * for ever. So cancellation is deferred until the first such point after the call.
 */
#ifndef EBB_BASE_CANCEL_H
#define EBB_BASE_CANCEL_H

#include <pthread.h>

/* Returns the state for cancel_restore(). */
static inline int cancel_defer(void) {
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_restore(int before) {
    (void)pthread_setcancelstate(before, &before);
}

#endif
