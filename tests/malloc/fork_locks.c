// SPDX-License-Identifier: Apache-2.0
/*
 * fork_locks.c - a fork takes every lock that a thread may hold in the middle of a scope, in order
 * (see locks.h): while scopes, pools and reports are at work. Those of the library itself it takes
 * from the start, since another thread may be about to open the first scope.
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

static void work(ebb_site *site) {
    for (unsigned round = 0; round < 40; round++) {
        ebb_step outer = ebb_step_begin(site, 0), inner = ebb_step_begin(site, round % 3);
        allocate(round);
        EXPECT(ebb_step_end(inner) == 0);
        allocate(round);
        EXPECT(ebb_step_end(outer) == 0);
    }
    exhaust();
    malloc_trim(0);
}

int main(void) {
    note_first_fork();
    notes = &at_work;
    work(ebb_site_create(EBB_SITE_OPTIONS(.name = "locks", .scope = true)));
    return judge_fork();
}
