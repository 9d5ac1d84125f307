// SPDX-License-Identifier: Apache-2.0
/* scene.c - see scene.h. */
#include "scene.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *refused; /* the function that was made to fail */

struct fake_cuda_state driver_state(void) {
    struct fake_cuda_state state;
    fake_cuda_look(&state);
    if (state.misuses)
        fail_msg("the driver was misused %zu times, first by %s", state.misuses, state.misuse);
    return state;
}

void assert_driver_is_empty(void) {
    struct fake_cuda_state state = driver_state();
    assert_int_equal(state.allocations, 0);
    assert_int_equal(state.registered, 0);
    assert_int_equal(state.events, 0);
    assert_int_equal(state.contexts, state.stuck);
}

void driver_fail(unsigned nth, bool all) {
    refused = NULL;
    fake_cuda_fail(nth, all);
}

bool driver_relent(void) {
    refused = driver_state().failed;
    fake_cuda_fail(0, false);
    return refused != NULL;
}

bool driver_was_refused(const char *function) {
    return refused && strcmp(refused, function) == 0;
}

ebb_pool *device_pool(int device) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_DEVICE, .name = "gpu", .device = device);
    assert_non_null(pool);
    return pool;
}

struct ebb_parcel batch(ebb_pool *pool, size_t bytes, int value) {
    struct ebb_parcel parcel;
    ebb_region region = OPEN(.pool = pool);
    void *block = ebb_region_alloc(region, bytes, 64);
    assert_non_null(block);
    memset(block, value, bytes);
    assert_int_equal(ebb_region_send(region, block, &parcel), 0);
    return parcel;
}

ebb_lease *opened(ebb_pool *pool, size_t bytes, int value) {
    struct ebb_parcel parcel = batch(pool, bytes, value);
    ebb_lease *lease = ebb_parcel_open(pool, &parcel);
    assert_non_null(lease);
    return lease;
}

int gpu_open(void **state) {
    static struct gpu gpu;
    gpu.pool = device_pool(0);
    gpu.region = OPEN(.pool = gpu.pool, .name = "step");
    *state = &gpu;
    return 0;
}

int gpu_close(void **state) {
    struct gpu *gpu = *state;
    assert_int_equal(ebb_region_close(gpu->region), 0);
    pool_end(gpu->pool);
    assert_driver_is_empty();
    return 0;
}

int in_a_child(int (*call)(void)) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(call());
    assert_true(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
