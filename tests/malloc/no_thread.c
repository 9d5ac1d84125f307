// SPDX-License-Identifier: Apache-2.0
/* no_thread.c - the first pthread_create() of a process fails, as where there are too many threads;
 * or, with NO_THREAD_OF_OTHERS, each but those of its first thread. Preloaded by test_view.py. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static bool fails(void) {
    static atomic_uint calls;
    if (getenv("NO_THREAD_OF_OTHERS"))
        return syscall(SYS_gettid) != getpid();
    return atomic_fetch_add(&calls, 1) == 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *),
                   void *context) {
    create_fn *create;
    if (fails())
        return EAGAIN;
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &found, sizeof create);
    return create(thread, attributes, begin, context);
}
