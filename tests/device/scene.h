// SPDX-License-Identifier: Apache-2.0
/* scene.h - what tests over the fake driver share: what it has, forked children, pools. */
#ifndef DEVICE_SCENE_H
#define DEVICE_SCENE_H

#include "fake_cuda.h"
#include "kit/test.h"

/* What the driver has now. No test may have misused it so far. */
struct fake_cuda_state driver_state(void);

/* Nothing is left of what the driver gave, but for contexts that it was made to keep. */
void assert_driver_is_empty(void);

/* Every call is granted again. True if one was refused since driver_fail(). */
bool driver_relent(void);
void driver_fail(unsigned nth, bool all);

/* The call that was refused may be so without anybody noticing: nobody can do better. */
bool driver_was_refused(const char *function);

/* A pool of that device's memory. */
ebb_pool *device_pool(int device);

/* A batch of one block, filled with `value`, sent by that pool; and opened there. */
struct ebb_parcel batch(ebb_pool *pool, size_t bytes, int value);
ebb_lease *opened(ebb_pool *pool, size_t bytes, int value);

/* What tests of device 0 begin with; nothing is left when they end. */
struct gpu {
    ebb_pool *pool;
    ebb_region region;
};

int gpu_open(void **state);
int gpu_close(void **state);

#define ON_GPU(test) cmocka_unit_test_setup_teardown(test, gpu_open, gpu_close)

/* Exit code of a forked child that calls it. */
int in_a_child(int (*call)(void));

#endif
