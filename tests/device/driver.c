// SPDX-License-Identifier: Apache-2.0
/*
 * driver.c - the loader, holds and fences over the fake driver: a fence is done when its stream got
 * there and not before; each call that fails is said by name and leaves nothing behind; a forked
 * child never calls the driver.
 */
#include "scene.h"

#include "pool/cuda.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pretended; /* 0: nothing */

/* Also what the library calls. */
pid_t getpid(void) {
    return pretended ? pretended : (pid_t)syscall(SYS_getpid);
}

static void devices_are_counted(void **state) {
    assert_int_equal(ebb_device_count(), 2);
}

static void a_device_that_is_not_there_is_refused_with_the_count(void **state) {
    struct ebb_fence fence = {{0}};
    assert_refused(ebb_fence_record(&fence, 2, NULL), EBB_E_DEVICE);
    assert_text_names("device 2 asked, the CUDA driver has 2");
    assert_refused(ebb_fence_record(&fence, -1, NULL), EBB_E_DEVICE);
    assert_driver_is_empty();
}

static void null_fences_are_refused(void **state) {
    assert_refused(ebb_fence_record(NULL, 0, NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_fence_is_done(NULL), EBB_E_ARGUMENT);
    assert_refused(ebb_fence_end(NULL), EBB_E_ARGUMENT);
}

static void a_fence_is_done_when_its_stream_got_there(void **state) {
    struct ebb_fence fence = {{0}}, empty = {{0}};
    assert_int_equal(ebb_fence_is_done(&fence), 1);
    fake_cuda_stall(true);
    for (int round = 0; round < 3; round++) { /* the same event again */
        assert_int_equal(ebb_fence_record(&fence, 1, NULL), 0);
        for (int i = 0; i < 10; i++)
            assert_int_equal(ebb_fence_is_done(&fence), 0);
        fake_cuda_run();
        assert_int_equal(ebb_fence_is_done(&fence), 1);
        assert_int_equal(driver_state().events, 1);
    }
    fake_cuda_stall(false);
    assert_int_equal(ebb_fence_end(&fence), 0);
    assert_memory_equal(&fence, &empty, sizeof fence);
    assert_driver_is_empty();
}

/* The last record counts: so tests of who uses pages too early would find out. */
static void a_fence_recorded_anew_waits_for_all_that_was_asked_before(void **state) {
    struct ebb_fence fence = {{0}};
    ebb_pool *device = POOL(.kind = EBB_KIND_DEVICE), *pinned = POOL(.kind = EBB_KIND_PINNED);
    ebb_region there = OPEN(.pool = device), here = OPEN(.pool = pinned);
    void *target = ebb_region_alloc(there, 100, 64), *source = block_of(here, 100, 64);
    assert_non_null(target);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ebb_copy_to_device(there, target, 0, source, 100, NULL), 0);
        assert_int_equal(ebb_fence_record(&fence, 0, NULL), 0);
    }
    while (ebb_fence_is_done(&fence) == 0)
        continue;
    assert_int_equal(driver_state().waiting, 0);
    assert_int_equal(ebb_fence_end(&fence), 0);
    assert_int_equal(ebb_region_close(there), 0);
    assert_int_equal(ebb_region_close(here), 0);
    pool_end(device);
    pool_end(pinned);
    assert_driver_is_empty();
}

static void a_fence_stays_with_its_device(void **state) {
    struct ebb_fence fence = {{0}};
    assert_int_equal(ebb_fence_record(&fence, 0, NULL), 0);
    assert_refused(ebb_fence_record(&fence, 1, NULL), EBB_E_DEVICE);
    assert_text_names("a fence of device 0 is asked to be of device 1");
    fake_cuda_run();
    assert_int_equal(ebb_fence_is_done(&fence), 1);
    assert_int_equal(ebb_fence_end(&fence), 0);
    assert_int_equal(ebb_fence_record(&fence, 1, NULL), 0);
    assert_int_equal(driver_state().events, 1);
    assert_int_equal(ebb_fence_end(&fence), 0);
    assert_driver_is_empty();
}

/* Everything that a hold can do, as one act: 0, or the first error. All is given back. */
static int act(void) {
    struct ebb_fence fence = {{0}};
    struct cuda_hold hold = {.context = NULL};
    static _Alignas(4096) char pages[8192];
    uint64_t place = 0;
    int result = cuda_take(&hold, 1);
    if (!result)
        result = cuda_alloc(&hold, 8192, &place);
    if (!result)
        result = cuda_register(&hold, pages, sizeof pages);
    if (!result) {
        result = cuda_copy_in(&hold, place, pages, 4096, NULL);
        if (!result)
            result = cuda_copy_on(&hold, place + 4096, place, 4096, NULL);
        if (!result)
            result = cuda_fill(&hold, place, 7, 100, NULL);
        if (!result)
            result = cuda_copy_out(&hold, pages, place, 8192, NULL);
        if (!result)
            result = ebb_fence_record(&fence, 0, NULL);
        if (!result)
            result = cuda_finish(&hold, NULL);
        fake_cuda_run();
        int last = cuda_unregister(&hold, pages);
        if (last) {
            assert_int_equal(cuda_unregister(&hold, pages), 0);
            result = result ? result : last;
        }
    }
    if (place) {
        int last = cuda_free(&hold, place);
        if (last) {
            assert_int_equal(cuda_free(&hold, place), 0);
            result = result ? result : last;
        }
    }
    int done = ebb_fence_is_done(&fence);
    result = result ? result : done < 0 ? done : 0;
    int last = ebb_fence_end(&fence);
    if (last)
        assert_int_equal(ebb_fence_end(&fence), 0);
    cuda_leave(&hold);
    return result ? result : last;
}

/* What nobody can do anything about, and nobody loses by. */
static bool may_be_silent(void) {
    return driver_was_refused("cuDevicePrimaryCtxRelease_v2") ||
           driver_was_refused("cuCtxPopCurrent_v2");
}

static void each_call_that_fails_is_named_and_leaves_nothing(void **state) {
    unsigned nth = 1, silent = 0;
    for (;; nth++) {
        driver_fail(nth, false);
        int result = act();
        if (!driver_relent())
            break;
        silent += may_be_silent();
        if (!may_be_silent()) {
            assert_refused(result, EBB_E_DEVICE);
            assert_text_names("CUDA_ERROR_UNKNOWN (999)");
        }
        assert_driver_is_empty();
        assert_int_equal(act(), 0);
    }
    assert_int_equal(act(), 0);
    assert_true(nth > 40 && silent > 5);
}

static struct ebb_fence inherited;

static int use_the_fence(void) {
    struct ebb_fence fresh = {{0}};
    int bad = ebb_fence_is_done(&inherited) != EBB_E_DEVICE;
    bad |= !strstr(ebb_last_error_text(), "is a fork of");
    bad |= ebb_fence_record(&inherited, 0, NULL) != EBB_E_DEVICE;
    bad |= ebb_fence_record(&fresh, 0, NULL) != EBB_E_DEVICE;
    bad |= ebb_device_count() != EBB_E_DEVICE;
    return bad | (ebb_fence_end(&inherited) != 0);
}

static void a_forked_child_leaves_the_driver_alone(void **state) {
    assert_int_equal(ebb_fence_record(&inherited, 0, NULL), 0);
    assert_int_equal(in_a_child(use_the_fence), 0);
    assert_int_equal(driver_state().events, 1); /* misuses of the child would show */
    fake_cuda_run();
    assert_int_equal(ebb_fence_is_done(&inherited), 1);
    assert_int_equal(ebb_fence_end(&inherited), 0);
    assert_driver_is_empty();
}

static int count_as_the_parent(void) {
    bool refused = ebb_device_count() == EBB_E_DEVICE && cuda_is_inherited();
    return !refused || ebb_fence_end(&inherited) != 0; /* the fake would see no misuse: */
}

static int count_at_once(void) {
    if (ebb_device_count() != 2)
        return 1;
    pretended = getpid();
    return in_a_child(count_as_the_parent);
}

/* In a namespace of its own it may be called as its parent is. */
static void a_forked_child_may_have_the_pid_of_its_parent(void **state) {
    assert_int_equal(in_a_child(count_at_once), 0); /* who has no pool so far */
    assert_int_equal(ebb_fence_record(&inherited, 0, NULL), 0);
    pretended = getpid();
    assert_int_equal(in_a_child(count_as_the_parent), 0);
    pretended = 0;
    assert_int_equal(driver_state().events, 1); /* but that the event is gone */
    fake_cuda_run();
    assert_int_equal(ebb_fence_end(&inherited), 0);
    assert_driver_is_empty();
}

static void *start_and_record(void *context) {
    struct ebb_fence fence = {{0}};
    intptr_t bad = 0;
    for (int i = 0; i < 200; i++) {
        bad |= ebb_fence_record(&fence, 1, NULL) != 0;
        bad |= ebb_fence_is_done(&fence) < 0;
    }
    return (void *)(bad | (ebb_fence_end(&fence) != 0));
}

static int start_on_many_threads(void) {
    pthread_t threads[4];
    intptr_t bad = 0;
    void *result;
    for (int i = 0; i < 4; i++)
        bad |= pthread_create(&threads[i], NULL, start_and_record, NULL);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &result);
        bad |= (intptr_t)result;
    }
    struct fake_cuda_state state;
    fake_cuda_look(&state);
    return bad || state.events || state.contexts || state.misuses;
}

static void any_thread_may_be_the_first(void **state) {
    assert_int_equal(in_a_child(start_on_many_threads), 0);
}

static sem_t may_fork, has_forked;

static void let_the_other_fork(void) {
    sem_post(&may_fork);
    sem_wait(&has_forked);
}

/* The driver is started by a thread that there is not: it is refused, and nothing waits for it. */
static int go_on_without_it(void) {
    for (int i = 0; i < 2; i++)
        if (ebb_device_count() != EBB_E_DEVICE || !cuda_is_inherited() ||
            !strstr(ebb_last_error_text(), "was starting"))
            return 1;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "child's"));
    if (!site || ebb_site_destroy(site) != 0)
        return 2;
    return in_a_child(count_as_the_parent) ? 3 : 0;
}

static void *fork_meanwhile(void *unused) {
    int status = 0;
    sem_wait(&may_fork);
    pid_t child = fork();
    if (child == 0)
        _exit(go_on_without_it());
    bool good = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    sem_post(&has_forked);
    return good ? unused : &may_fork;
}

/* It goes on when the other thread has forked, and forks then. */
static int fork_while_the_driver_starts(void) {
    pthread_t thread;
    void *bad;
    alarm(60);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "site"));
    if (!site || sem_init(&may_fork, 0, 0) || sem_init(&has_forked, 0, 0) ||
        pthread_create(&thread, NULL, fork_meanwhile, NULL))
        return 1;
    setenv("FAKE_CUDA_FORK", "1", 1);
    fake_cuda_before_fork(let_the_other_fork);
    if (ebb_device_count() != 2)
        return 2;
    pthread_join(thread, &bad);
    return bad || ebb_site_destroy(site) != 0;
}

static void a_fork_does_not_wait_for_the_driver_to_start(void **state) {
    assert_int_equal(in_a_child(fork_while_the_driver_starts), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_thread_may_be_the_first), /* in a child, before the driver started */
        cmocka_unit_test(a_fork_does_not_wait_for_the_driver_to_start), /* the same */
        cmocka_unit_test(a_forked_child_may_have_the_pid_of_its_parent), /* the same */
        cmocka_unit_test(devices_are_counted),
        cmocka_unit_test(a_device_that_is_not_there_is_refused_with_the_count),
        cmocka_unit_test(null_fences_are_refused),
        cmocka_unit_test(a_fence_is_done_when_its_stream_got_there),
        cmocka_unit_test(a_fence_recorded_anew_waits_for_all_that_was_asked_before),
        cmocka_unit_test(a_fence_stays_with_its_device),
        cmocka_unit_test(each_call_that_fails_is_named_and_leaves_nothing),
        cmocka_unit_test(a_forked_child_leaves_the_driver_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
