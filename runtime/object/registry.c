// SPDX-License-Identifier: Apache-2.0
/* registry.c - the lock of what is registered (see registry.h). Nothing here can fail. */
#include "object/registry.h"
#include "pool/fork.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned forking; /* see pool/fork.h */

static void take(void) {
    pthread_mutex_lock(&lock);
}

static void before_fork(void) {
    if (fork_is_first(&forking))
        take();
}

static void after_fork(void) {
    if (fork_is_last(&forking))
        registry_unlock();
}

static void watch_forks(void) {
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

void registry_lock(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    take();
}

void registry_unlock(void) {
    pthread_mutex_unlock(&lock);
}
