// SPDX-License-Identifier: Apache-2.0
/*
 * cancel.h - functions of the program, called where something is locked or half done.
 *
 * Many a call of the C library ends a thread that was cancelled (pthread_cancel()): write(),
 * close(), whatever waits. What this thread has begun would then stay as it is for ever. So the
 * thread goes on, and ends at the first such call behind that.
 */
#ifndef EBB_BASE_CANCEL_H
#define EBB_BASE_CANCEL_H

#include <pthread.h>

/* Returns what there is to be restored. */
static inline int cancel_defer(void) {
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_restore(int before) {
    (void)pthread_setcancelstate(before, &before);
}

#endif
