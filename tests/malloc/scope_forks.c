// SPDX-License-Identifier: Apache-2.0
/*
 * scope_forks.c - a fork and a thread that is at work in sites do not wait for each other.
 *
 * Not under ThreadSanitizer, which knows of 64 locks that a thread holds: jemalloc alone has more.
 */
#include "kit/test.h"

#include "malloc/front.h"
#include "malloc/heap.h"

#include "step/site.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool is_at_work;

struct pair {
    ebb_site *outer, *scoped;
    bool right;
};

/* As where the C library allocates for a thread that a site starts. */
static void *allocate_at_work(void *context) {
    struct pair *pair = context;
    ebb_step step = ebb_step_begin(pair->scoped, 0);
    pthread_mutex_lock(&pair->outer->lock);
    atomic_store(&is_at_work, true);
    usleep(20000);
    void *block = front_alloc(70000, NULL); /* the first in its scope: an inner step begins */
    pthread_mutex_unlock(&pair->outer->lock);
    front_free(block);
    pair->right = block && ebb_step_end(step) == 0;
    return NULL;
}

static void test_a_fork_takes_the_locks_of_sites_in_the_order_of_threads(void **state) {
    struct pair pair = {
        .outer = ebb_site_create(EBB_SITE_OPTIONS(.name = "outer")),
        .scoped = ebb_site_create(EBB_SITE_OPTIONS(.name = "scoped", .scope = true)),
    };
    pthread_t thread;
    assert_int_equal(ebb_step_end(ebb_step_begin(pair.scoped, 0)), 0);
    assert_int_equal(pthread_create(&thread, NULL, allocate_at_work, &pair), 0);
    while (!atomic_load(&is_at_work))
        usleep(100);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    int status;
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(pair.right);
    assert_int_equal(ebb_site_destroy(pair.scoped), 0);
    assert_int_equal(ebb_site_destroy(pair.outer), 0);
}

static int serve(void **state) {
    scope_serve();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fork_takes_the_locks_of_sites_in_the_order_of_threads),
    };
    return cmocka_run_group_tests(tests, serve, NULL);
}
