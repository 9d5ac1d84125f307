// SPDX-License-Identifier: Apache-2.0
/* registry.c - the lock of what is registered (see registry.h). Nothing here can fail. */
#include "object/registry.h"
#include "pool/cuda.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) {
    cuda_fork(true);
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
    cuda_fork(false);
}

static void watch_forks(void) {
    /* without memory for it, forks do not wait */
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

void registry_lock(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
}

void registry_unlock(void) {
    pthread_mutex_unlock(&lock);
}
