// SPDX-License-Identifier: Apache-2.0
/*
 * loaded_late.c - libebb in a process that runs already, as an interpreter loads an extension:
 * by dlopen(), with threads about, and used from one that started before.
 */
#include "kit/test.h"

#include <dlfcn.h>
#include <pthread.h>

static void *library;

/* `place` is a pointer to a function, which ISO C keeps apart from one to an object. */
static void look_up(const char *name, void *place) {
    void *found = dlsym(library, name);
    assert_non_null(found);
    memcpy(place, &found, sizeof found);
}

static void *step(void *unused) {
    (void)unused;
    ebb_region (*open)(const struct ebb_region_options *);
    void *(*alloc)(ebb_region, size_t, size_t);
    int (*close)(ebb_region);
    look_up("ebb_region_open", &open);
    look_up("ebb_region_alloc_slow", &alloc);
    look_up("ebb_region_close", &close);
    ebb_region region = open(NULL);
    for (size_t bytes = 1; bytes < 8 * MIB; bytes *= 3) {
        char *block = alloc(region, bytes, 16);
        if (!block)
            return "no block";
        memset(block, 1, bytes);
    }
    return close(region) == 0 ? NULL : "not closed";
}

static void *wait_then_step(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return step(NULL);
}

static void a_running_process_can_load_and_use_it(void **state) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t older, newer;
    void *result;
    pthread_mutex_lock(&gate);
    assert_int_equal(pthread_create(&older, NULL, wait_then_step, &gate), 0);
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    pthread_mutex_unlock(&gate);
    assert_int_equal(pthread_create(&newer, NULL, step, NULL), 0);
    assert_int_equal(pthread_join(older, &result), 0);
    assert_null(result);
    assert_int_equal(pthread_join(newer, &result), 0);
    assert_null(result);
    assert_null(step(NULL));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_process_can_load_and_use_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
