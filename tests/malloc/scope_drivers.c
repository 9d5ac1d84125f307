// SPDX-License-Identifier: Apache-2.0
/*
 * scope_drivers.c - what a CUDA driver allocates and frees in a scope, while its caller has the
 * lock of a pool, needs no lock of others, which a fork has that waits for that one.
 */
#include "malloc/scoped.h"

#include "fake_cuda.h"
#include <ebb/device.h>

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 100, LARGE = 150000 };

static sem_t is_called;
static bool is_armed, was_scoped;
static void *given[2]; /* blocks of the scope */

static void *fork_then(void *context) {
    int status;
    sem_wait(&is_called);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? context : NULL;
}

/* In the driver, once. */
static void allocate(const char *call) {
    void *blocks[2];
    if (!is_armed || !call)
        return;
    is_armed = false;
    sem_post(&is_called);
    usleep(100000); /* the fork waits by then */
    for (unsigned i = 0; i < 2; i++) {
        blocks[i] = make(i ? LARGE : SMALL, i);
        was_scoped |= is_of_a_scope(blocks[i]);
        end(given[i], i ? LARGE : SMALL, i);
    }
    for (unsigned i = 0; i < 2; i++)
        end(blocks[i], i ? LARGE : SMALL, i);
}

/* Its pool is older than that of scopes, whose lock a fork takes before. */
static void test_a_fork_waits_for_a_driver_that_allocates(void **state) {
    ebb_pool *pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_DEVICE));
    pthread_t thread;
    void *right;
    assert_non_null(pool);
    sem_init(&is_called, 0, 0);
    ebb_step step = begin(*state);
    for (unsigned i = 0; i < 2; i++)
        given[i] = make(i ? LARGE : SMALL, i);
    assert_int_equal(pthread_create(&thread, NULL, fork_then, &is_called), 0);
    ebb_region region = OPEN(.pool = pool);
    fake_cuda_in_calls(allocate);
    is_armed = true;
    alarm(20); /* if they waited for each other */
    assert_non_null(ebb_region_alloc(region, 8 * MIB, 256));
    alarm(0);
    assert_false(is_armed || was_scoped);
    assert_int_equal(pthread_join(thread, &right), 0);
    assert_non_null(right);
    void *block = make(SMALL, 1);
    assert_true(is_of_a_scope(block)); /* which goes on */
    end(block, SMALL, 1);
    assert_int_equal(ebb_region_close(region), 0);
    finish(step);
    fake_cuda_in_calls(NULL);
    assert_int_equal(ebb_pool_destroy(pool), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(test_a_fork_waits_for_a_driver_that_allocates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
