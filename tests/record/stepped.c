// SPDX-License-Identifier: Apache-2.0
//
// stepped.c - a program that is linked with libebb, and whose steps end as they may there and not
// where they are marks only. test_marks.c records it.
//
//     stepped SCENARIO [PAUSES]
//
// Exit code: 0, or 1 where something is not as it should be, with a line that says what.

#include "demand.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ebb/cleanup.h>
#include <ebb/step.h>

#include "client.h"

enum { RING = 3 };

static ebb_site *site;

static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    DEMAND(found);
    memcpy(function, &found, sizeof found);
}

static int fail(void *data)
{
    (void)data;
    return 1;
}

// A cleanup that fails keeps no step open, whichever call ends it.
static void cleanups(void)
{
    for (uint64_t i = 0; i < CLIENT_STEPPED; i++) {
        ebb_region parent = ebb_region_open(NULL);
        ebb_step step = ebb_step_begin_under(site, parent, 0);
        struct ebb_cleanup node = {.run = fail};

        DEMAND(ebb_cleanup_add(step.region, &node) == 0);
        if (i % 2)
            DEMAND(ebb_step_end(step) == EBB_E_CLEANUP);
        else
            DEMAND(ebb_step_end_keeping(step, parent, NULL, 0, NULL, NULL) == EBB_E_CLEANUP);
        DEMAND(ebb_region_close(parent) == 0);
    }
}

// Steps that are closed with their parent; `asks`: whoever began them ends them still.
static void close_parents(bool asks)
{
    for (int i = 0; i < CLIENT_STEPPED; i++) {
        ebb_region parent = ebb_region_open(NULL);
        ebb_step step = ebb_step_begin_under(site, parent, 0);
        ebb_step inner = ebb_step_begin_under(site, step.region, 1);

        DEMAND(ebb_region_close(parent) == 0);
        DEMAND(!ebb_region_is_open(inner.region));
        if (asks)
            DEMAND(ebb_step_end(step) == EBB_E_STALE && ebb_step_end(inner) == EBB_E_STALE);
    }
}

static void parents(void)
{
    close_parents(true);
}

static void dropped(void)
{
    close_parents(false);
}

static void close_with(int steps)
{
    ebb_region parent = ebb_region_open(NULL);

    for (int i = 0; i < steps; i++)
        DEMAND(ebb_region_is_open(ebb_step_begin_under(site, parent, (uint64_t)i).region));
    DEMAND(ebb_region_close(parent) == 0);
}

// More steps than a trace nests, and than the recorder remembers, are closed at once.
static void deep(void)
{
    close_with(CLIENT_NESTS + 1);
    close_with(CLIENT_STEPPED);
    close_with(CLIENT_OPEN + 1);
    for (int i = 0; i < CLIENT_STEPPED; i++)
        DEMAND(ebb_step_end(ebb_step_begin(site, 0)) == 0);
}

// Steps that are closed with their parent end where a mark begins.
static void marked(void)
{
    void (*begin)(const char *, uint64_t), (*end)(void), (*call)(const char *);

    find(&begin, "ebb_record_begin");
    find(&end, "ebb_record_end");
    find(&call, "ebb_record_call");
    for (int i = 1; i <= CLIENT_STEPPED; i++) {
        ebb_region parent = ebb_region_open(NULL);

        DEMAND(ebb_region_is_open(ebb_step_begin_under(site, parent, 0).region));
        DEMAND(ebb_region_close(parent) == 0);
        if (i < CLIENT_STEPPED) {
            begin("mark", 0);
            end();
        }
    }
    call("call");
    call("call"); // which ends the first one, and is none itself
}

// The same for calls of a function that is watched.
static void watched(void)
{
    ebb_region parent = ebb_region_open(NULL);

    DEMAND(ebb_region_is_open(ebb_step_begin_under(site, parent, 0).region));
    DEMAND(ebb_region_close(parent) == 0);
    for (int i = 0; i < CLIENT_STEPPED; i++)
        (void)strtold("1", NULL); // the last one ends a region, and is none itself
}

// What a ring keeps has ended. A step whose end was refused goes on while others begin.
static void rings(void)
{
    ebb_site *ring = ebb_site_create(EBB_SITE_OPTIONS(.name = "ring", .ring = RING));
    ebb_region closed = ebb_region_open(NULL);
    ebb_step all = ebb_step_begin(site, 0);

    DEMAND(ring && ebb_region_close(closed) == 0);
    DEMAND(ebb_step_end_keeping(all, closed, NULL, 0, NULL, NULL) == EBB_E_STALE);
    DEMAND(ebb_region_is_open(all.region));
    for (int i = 0; i < CLIENT_STEPPED; i++) {
        ebb_step step = ebb_step_begin(ring, 1);

        DEMAND(ebb_step_end(step) == 0);
        DEMAND(ebb_region_is_open(step.region));
    }
    DEMAND(ebb_step_end(all) == 0 && ebb_site_destroy(ring) == 0);
}

static int pauses; // of 10 ms

// The site has no steps.
static void idle(void)
{
    for (int i = 0; i < pauses; i++) {
        void *volatile block = malloc(CLIENT_MALLOC);

        free(block);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"cleanups", cleanups}, {"parents", parents}, {"dropped", dropped}, {"rings", rings},
    {"deep", deep}, {"marked", marked}, {"watched", watched}, {"idle", idle},
};

int main(int argc, char **argv)
{
    site = ebb_site_create(EBB_SITE_OPTIONS(.name = "stepped"));
    DEMAND(site);
    pauses = argc == 3 ? atoi(argv[2]) : 0;
    for (size_t i = 0; argc >= 2 && i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            DEMAND(ebb_site_destroy(site) == 0);
            return 0;
        }
    return 1;
}
