// SPDX-License-Identifier: Apache-2.0
/*
 * fork_locks.c - a fork takes every lock that a thread may hold in the middle of a scope, in order
 * (see locks.h): while scopes, pools, leases and reports are at work. Those of the library itself
 * it takes from the start, since another thread may be about to open the first scope.
 */
#include <stdbool.h>

#include "malloc/locks.h"

#include <ebb/ebb.h>

#include <malloc.h>

static void allocate(unsigned seed) {
    static const size_t sizes[] = {8, 100, 3000, 9000, 70000, 3000000};
    void *blocks[30];
    for (unsigned i = 0; i < 30; i++)
        EXPECT(blocks[i] = malloc(sizes[(i * 7 + seed) % 6]));
    for (unsigned i = 0; i < 30; i++)
        free(blocks[(i * 11) % 30]);
}

static void on_exhausted(void *context, const char *report) {
    *(bool *)context = report[0] != '\0';
}

/* A region that has no room left reports it. */
static void exhaust(void) {
    bool reported = false;
    ebb_report_on_exhausted(on_exhausted, &reported);
    ebb_region region =
        ebb_region_open(EBB_REGION_OPTIONS(.name = "narrow", .limit_bytes = 1 << 16));
    EXPECT(!ebb_region_alloc(region, 1 << 20, 64));
    EXPECT(reported);
    EXPECT(ebb_region_close(region) == 0);
    ebb_report_on_exhausted(NULL, NULL);
}

/* By a pool that lives on: a lock that is gone no fork can take. */
static void hand_off(void) {
    ebb_pool *pool =
        ebb_pool_create(EBB_POOL_OPTIONS(.name = "shared", .kind = EBB_KIND_SHARED, .slots = 2));
    for (unsigned round = 0; round < 3; round++) {
        ebb_region region = ebb_region_open(EBB_REGION_OPTIONS(.pool = pool));
        void *block = ebb_region_alloc(region, 3000000, 64);
        struct ebb_parcel parcel;
        EXPECT(ebb_region_send(region, block, &parcel) == 0);
        ebb_lease *lease = ebb_parcel_open(pool, &parcel);
        EXPECT(lease && ebb_lease_of(ebb_lease_root(lease, NULL)) == lease);
        ebb_lease_drop(lease);
        ebb_lease_drop(lease);
        (void)ebb_pool_reclaim(pool, false);
        EXPECT(ebb_pool_trim(pool, 0) > 0);
    }
}

static void work(ebb_site *site) {
    for (unsigned round = 0; round < 40; round++) {
        ebb_step outer = ebb_step_begin(site, 0), inner = ebb_step_begin(site, round % 3);
        allocate(round);
        EXPECT(ebb_step_end(inner) == 0);
        allocate(round);
        EXPECT(ebb_step_end(outer) == 0);
    }
    exhaust();
    hand_off();
    malloc_trim(0);
}

int main(void) {
    note_first_fork();
    notes = &at_work;
    work(ebb_site_create(EBB_SITE_OPTIONS(.name = "locks", .scope = true)));
    return judge_fork();
}
