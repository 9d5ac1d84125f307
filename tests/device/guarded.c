// SPDX-License-Identifier: Apache-2.0
/* guarded.c - threads that guard a lease wait for no driver that takes its time, nor each other. */
#include "scene.h"

#include "pool/shared.h"

#include <pthread.h>

static ebb_pool *pool_of_one(void) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 64 * MIB);
    assert_non_null(pool);
    return pool;
}

static ebb_pool *watched;
static unsigned holds; /* taken and left while its lock was free */

/* To hold a device may take a driver long, and so may to leave it. */
static void expect_no_lock(const char *call) {
    if (!strstr(call, "PrimaryCtx"))
        return;
    assert_int_equal(pthread_mutex_trylock(&watched->shared->lock), 0);
    pthread_mutex_unlock(&watched->shared->lock);
    holds++;
}

/* The fence of the first device is ended for the second one's. */
static void who_guards_takes_and_leaves_devices_without_the_lock(void **state) {
    watched = pool_of_one();
    for (int device = 0; device < 2; device++) {
        ebb_lease *lease = opened(watched, 1000, 1);
        fake_cuda_in_calls(expect_no_lock);
        for (int again = 0; again < 3; again++)
            assert_int_equal(ebb_lease_guard(lease, device, NULL), 0);
        fake_cuda_in_calls(NULL);
        assert_int_equal(holds, device ? 3 : 1);
        assert_int_equal(driver_state().contexts, 1);
        fake_cuda_run();
        ebb_lease_drop(lease);
    }
    pool_end(watched);
    assert_driver_is_empty();
}

static pthread_barrier_t all_are_there;

struct guarding {
    ebb_lease *lease;
    int device;
};

static void *guard_at_once(void *context) {
    const struct guarding *guarding = context;
    (void)pthread_barrier_wait(&all_are_there);
    assert_int_equal(ebb_lease_guard(guarding->lease, guarding->device, NULL), 0);
    return NULL;
}

/* Each finds no fence, and takes the device for it: one of them is first, the others leave it. */
static void threads_that_guard_at_once_have_one_fence_of_a_stream(void **state) {
    enum { THREADS = 6, ROUNDS = 30 };
    for (int round = 0; round < ROUNDS; round++) {
        ebb_pool *pool = pool_of_one();
        ebb_lease *lease = opened(pool, 1000, 1);
        struct guarding guarding[THREADS];
        pthread_t threads[THREADS];
        pthread_barrier_init(&all_are_there, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            guarding[i] = (struct guarding){lease, i & 1};
            assert_int_equal(pthread_create(&threads[i], NULL, guard_at_once, &guarding[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        pthread_barrier_destroy(&all_are_there);
        assert_int_equal(driver_state().events, 2);
        assert_int_equal(driver_state().contexts, 2);
        fake_cuda_run();
        ebb_lease_drop(lease);
        pool_end(pool);
        assert_driver_is_empty();
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_guards_takes_and_leaves_devices_without_the_lock),
        cmocka_unit_test(threads_that_guard_at_once_have_one_fence_of_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
