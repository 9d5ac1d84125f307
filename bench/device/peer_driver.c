// SPDX-License-Identifier: Apache-2.0
/*
 * peer_driver.c - the CUDA driver itself: cuMemAlloc(), and the pool behind cuMemAllocAsync(), told
 * to keep all that it got. Prototypes as in runtime/pool/cuda.c.
 */
#include "peer.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

static struct {
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*alloc)(uint64_t *address, size_t bytes);
    int (*free)(uint64_t address);
    int (*default_pool)(void **pool, int device);
    int (*set_attribute)(void *pool, int attribute, void *value);
    int (*alloc_async)(uint64_t *address, size_t bytes, void *stream);
    int (*free_async)(uint64_t address, void *stream);
} cuda;

enum { RELEASE_THRESHOLD = 4 }; /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */

static bool find(void *library, const char *name, void *place) {
    void *symbol = dlsym(library, name);
    memcpy(place, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool start(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    return library && find(library, "cuInit", &cuda.init) &&
           find(library, "cuDevicePrimaryCtxRetain", &cuda.retain) &&
           find(library, "cuCtxSetCurrent", &cuda.set_current) &&
           find(library, "cuMemAlloc_v2", &cuda.alloc) &&
           find(library, "cuMemFree_v2", &cuda.free) &&
           find(library, "cuDeviceGetDefaultMemPool", &cuda.default_pool) &&
           find(library, "cuMemPoolSetAttribute", &cuda.set_attribute) &&
           find(library, "cuMemAllocAsync", &cuda.alloc_async) &&
           find(library, "cuMemFreeAsync", &cuda.free_async) && cuda.init(0) == 0 &&
           cuda.retain(&context, 0) == 0 && cuda.set_current(context) == 0;
}

static bool start_pool(void) {
    void *pool;
    uint64_t all = UINT64_MAX;
    return start() && cuda.default_pool(&pool, 0) == 0 &&
           cuda.set_attribute(pool, RELEASE_THRESHOLD, &all) == 0;
}

static void nothing(void) {}

static void *take(size_t bytes) {
    uint64_t address;
    return cuda.alloc(&address, bytes) == 0 ? (void *)(uintptr_t)address : NULL;
}

static void give_back(void *block) {
    cuda.free((uintptr_t)block);
}

static void *take_from_pool(size_t bytes) {
    uint64_t address;
    return cuda.alloc_async(&address, bytes, NULL) == 0 ? (void *)(uintptr_t)address : NULL;
}

static void give_back_to_pool(void *block) {
    cuda.free_async((uintptr_t)block, NULL);
}

const struct peer peer_driver = {"cuMemAlloc", start, nothing, take, give_back, false, nothing};
const struct peer peer_driver_pool = {"cuMemAllocAsync", start_pool, nothing, take_from_pool,
                                      give_back_to_pool, false, nothing};
