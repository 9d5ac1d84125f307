// SPDX-License-Identifier: Apache-2.0
/*
 * loaded_late.c - libebb in a process that runs already, as an interpreter loads an extension:
 * by dlopen(), with threads about, and used from one that started before; and closed again while
 * others have something of it.
 */
#include "kit/test.h"

#include <dlfcn.h>
#include <dlpack/dlpack.h>
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

/* ---- closed again ---- */

/* A site's step, so that libebb has something to do when the thread ends. */
static void *step_of_a_site(void *barrier) {
    ebb_site *(*create)(const struct ebb_site_options *);
    ebb_step (*begin)(ebb_site *, uint64_t);
    int (*end)(ebb_step);
    look_up("ebb_site_create", &create);
    look_up("ebb_step_begin", &begin);
    look_up("ebb_step_end", &end);
    ebb_site *site = create(NULL);
    int result = site ? end(begin(site, 0)) : -1;
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier); /* the library was closed */
    return result ? "no step" : NULL;
}

static DLManagedTensor *export_a_tensor(void) {
    ebb_region (*open)(const struct ebb_region_options *);
    struct ebb_tensor *(*make)(ebb_region, struct ebb_dtype, int, const int64_t *);
    DLManagedTensor *(*export)(const struct ebb_tensor *, enum ebb_exchange_mode);
    int (*close)(ebb_region);
    look_up("ebb_region_open", &open);
    look_up("ebb_tensor_new", &make);
    look_up("ebb_tensor_export", &export);
    look_up("ebb_region_close", &close);
    ebb_region region = open(NULL);
    struct ebb_tensor *tensor =
        make(region, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 1, (int64_t[]){1000});
    assert_non_null(tensor);
    DLManagedTensor *exported = export(tensor, EBB_EXCHANGE_SHARE);
    assert_int_equal(close(region), 0);
    return exported;
}

static void what_it_handed_on_outlives_dlclose(void **state) {
    pthread_barrier_t barrier;
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, step_of_a_site, &barrier), 0);
    pthread_barrier_wait(&barrier);
    DLManagedTensor *exported = export_a_tensor();
    assert_non_null(exported);
    assert_int_equal(dlclose(library), 0);
    exported->deleter(exported);
    pthread_barrier_wait(&barrier);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    pthread_barrier_destroy(&barrier);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_process_can_load_and_use_it),
        cmocka_unit_test(what_it_handed_on_outlives_dlclose), /* the last: it is closed */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
