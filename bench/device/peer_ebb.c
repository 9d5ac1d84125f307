// SPDX-License-Identifier: Apache-2.0
/* peer_ebb.c - a region of a device's pool for each step; the same as a step of a site, planned. */
#include "peer.h"

#include <ebb/ebb.h>

static ebb_pool *pool;
static ebb_site *site;
static ebb_region region;
static ebb_step step;

static bool start(void) {
    if (!pool)
        pool = ebb_pool_create(EBB_POOL_OPTIONS(.kind = EBB_KIND_DEVICE, .device = 0));
    return pool != NULL;
}

static bool start_site(void) {
    site = start() ? ebb_site_create(EBB_SITE_OPTIONS(.name = "step", .pool = pool)) : NULL;
    return site != NULL;
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

static void begin_planned(void) {
    step = ebb_step_begin(site, 0);
    region = step.region;
}

static void end_planned(void) {
    ebb_step_end(step);
}

const struct peer peer_ebb = {"ebb", start, begin_step, take, give_back, true, end_step};
const struct peer peer_planned = {"ebb-planned", start_site, begin_planned, take, give_back, true,
                                  end_planned};
