// SPDX-License-Identifier: Apache-2.0
/* no_thread.c - the first pthread_create() of a process fails, as where there are too many threads.
 * Preloaded by test_view.py. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *),
                   void *context) {
    static atomic_uint calls;
    create_fn *create;
    if (atomic_fetch_add(&calls, 1) == 0)
        return EAGAIN;
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &found, sizeof create);
    return create(thread, attributes, begin, context);
}
