// SPDX-License-Identifier: Apache-2.0
/* peer_ebb.c - a region of a device's pool for each step. */
#include "peer.h"

#include <ebb/ebb.h>

static ebb_pool *pool;
static ebb_region region;

static bool start(void) {
    pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_DEVICE, .device = 0));
    return pool != NULL;
}

static void begin_step(void) {
    region = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
}

static void *take(size_t bytes) {
    return ebb_region_alloc(region, bytes, 256);
}

static void give_back(void *block) {
    ebb_region_release(region, block);
}

static void end_step(void) {
    ebb_region_close(region);
}

const struct peer peer_ebb = {"ebb", start, begin_step, take, give_back, true, end_step};
