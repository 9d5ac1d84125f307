// SPDX-License-Identifier: Apache-2.0
/*
 * case_promote.c - see case_promote.h. A failed call ends the process.
 */
#include "case_promote.h"

#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

static void give_up(const char *what) {
    fprintf(stderr, "ebb: %s: %s\n", what, ebb_last_error_text());
    exit(1);
}

/* Nanoseconds of one promotion of one block, out of a step that is opened for it. */
static double promote_once_ns(ebb_region parent, size_t bytes, int mode) {
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = parent));
    void *block = ebb_region_alloc(step, bytes, 16);
    struct ebb_survivor survivor = {.block = block, .mode = mode};
    uint64_t begun;
    uint64_t ended;

    if (block == NULL)
        give_up("alloc");
    memset(block, 1, bytes);
    begun = clock_wall_ns();
    if (ebb_promote(step, parent, &survivor, 1, NULL) != 0)
        give_up("promote");
    ended = clock_wall_ns();
    if (ebb_region_close(step) != 0 || ebb_region_release(parent, survivor.block) != 0)
        give_up("end");
    return (double)(ended - begun);
}

static double promote_ns(ebb_region parent, size_t bytes, int mode) {
    double spans[PROMOTE_REPETITIONS];
    size_t repetitions = promote_repetitions(bytes);

    for (size_t i = 0; i < repetitions; i++)
        spans[i] = promote_once_ns(parent, bytes, mode);
    return clock_calm_mean(spans, repetitions) - clock_wall_cost_ns();
}

void case_promote(struct round *round) {
    static const struct {
        const char *name;
        int mode;
    } modes[] = {{"ns_copy", EBB_PROMOTE_COPY},
                 {"ns_relink", EBB_PROMOTE_RELINK},
                 {"ns_auto", EBB_PROMOTE_AUTO}};
    static ebb_pool *pool;
    ebb_region parent;

    if (pool == NULL)
        pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "promote", .keep_all = true));
    parent = ebb_region_open(EBB_REGION_OPTIONS(.name = "parent", .pool = pool));
    if (pool == NULL || !ebb_region_is_open(parent))
        give_up("open");
    for (size_t mode = 0; mode < sizeof modes / sizeof modes[0]; mode++)
        for (size_t bytes = 64; bytes <= PROMOTE_BYTES_MOST; bytes *= 4)
            if (modes[mode].mode != EBB_PROMOTE_RELINK || bytes > EBB_SMALL_MAX_BYTES)
                round_add_at(round, modes[mode].name, 'b', bytes,
                             promote_ns(parent, bytes, modes[mode].mode));
    if (ebb_region_close(parent) != 0)
        give_up("close");
}
