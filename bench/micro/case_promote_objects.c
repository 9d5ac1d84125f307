// SPDX-License-Identifier: Apache-2.0
/*
 * case_promote_objects.c - see case_promote_objects.h. A failed call ends the process.
 */
#include "case_promote_objects.h"

#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define TENSORS ((size_t)64)
#define BYTES_LEAST ((size_t)4 << 10)
#define BYTES_MOST ((size_t)4 << 20)
#define LONE_BYTES ((size_t)64 << 20)
#define REPETITIONS_MOST ((size_t)32)
#define BYTES_PER_POINT ((size_t)32 << 20) /* to repeat what is short more often */
#define MODES 3

/* Auto and relink alternate in who comes first after a copy, which leaves other bytes cached. */
static const int turns[2][MODES] = {{EBB_PROMOTE_COPY, EBB_PROMOTE_RELINK, EBB_PROMOTE_AUTO},
                                    {EBB_PROMOTE_COPY, EBB_PROMOTE_AUTO, EBB_PROMOTE_RELINK}};
/* By the number of the mode. */
static const char *const time_names[MODES] = {"ns_auto", "ns_copy", "ns_relink"};

static void need(bool held, const char *what) {
    if (held)
        return;
    fprintf(stderr, "ebb: %s: %s\n", what, ebb_last_error_text());
    exit(1);
}

static ebb_region open_step(ebb_region parent) {
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = parent));

    need(ebb_region_is_open(step), "open");
    return step;
}

static struct ebb_tensor *make_tensor(ebb_region step, size_t bytes) {
    const struct ebb_dtype byte = {EBB_UINT, 8, 1};
    const int64_t shape[] = {(int64_t)bytes};
    struct ebb_tensor *tensor = ebb_tensor_new(step, byte, 1, shape);

    need(tensor != NULL, "tensor");
    return tensor;
}

/* Nanoseconds of keeping `survivors` of a step's tensors. */
static double keep_once_ns(ebb_region parent, size_t bytes, size_t survivors, int mode,
                           struct ebb_promoted *cost) {
    const struct ebb_own_options options = {.size = sizeof options, .mode = mode};
    ebb_region step = open_step(parent);
    void *tensors[TENSORS];
    uint64_t begun;
    uint64_t ended;

    for (size_t i = 0; i < TENSORS; i++)
        tensors[i] = make_tensor(step, bytes);
    for (size_t i = 0; i < survivors; i++) {
        tensors[i] = tensors[i * (TENSORS / survivors)];
        memset(((struct ebb_tensor *)tensors[i])->data, 1, bytes);
    }
    *cost = (struct ebb_promoted){0};
    begun = clock_wall_ns();
    need(ebb_objects_close_keeping(step, parent, tensors, survivors, &options, cost, NULL) == 0,
         "keep");
    ended = clock_wall_ns();
    for (size_t i = 0; i < survivors; i++)
        need(ebb_object_end(tensors[i]) == 0, "end");
    return (double)(ended - begun);
}

static void add_at(struct round *round, const char *what, size_t bytes, size_t survivors,
                   double value) {
    char name[2 * ROUND_NAME_MAX];

    snprintf(name, sizeof name, "%s.b%zu.n%zu", what, bytes, survivors);
    round_add(round, name, value);
}

/* An even number. */
static size_t repetitions_of(size_t bytes) {
    size_t repetitions = BYTES_PER_POINT / bytes / 2 * 2;

    if (repetitions < 2)
        return 2;
    return repetitions > REPETITIONS_MOST ? REPETITIONS_MOST : repetitions;
}

static void sweep_point(struct round *round, ebb_region parent, size_t bytes, size_t survivors) {
    double spans[MODES][REPETITIONS_MOST];
    double ns[MODES];
    size_t repetitions = repetitions_of(bytes * survivors);
    struct ebb_promoted cost[MODES];

    for (size_t i = 0; i < repetitions; i++)
        for (size_t turn = 0; turn < MODES; turn++) {
            int mode = turns[i % 2][turn];

            spans[mode][i] = keep_once_ns(parent, bytes, survivors, mode, &cost[mode]);
        }
    for (int mode = 0; mode < MODES; mode++) {
        ns[mode] = clock_calm_mean(spans[mode], repetitions) - clock_wall_cost_ns();
        add_at(round, time_names[mode], bytes, survivors, ns[mode]);
    }
    add_at(round, "auto_over_best", bytes, survivors,
           ns[EBB_PROMOTE_AUTO] / (ns[EBB_PROMOTE_COPY] < ns[EBB_PROMOTE_RELINK]
                                       ? ns[EBB_PROMOTE_COPY]
                                       : ns[EBB_PROMOTE_RELINK]));
    add_at(round, "pinned_bytes_relink", bytes, survivors,
           (double)cost[EBB_PROMOTE_RELINK].pinned_bytes);
    add_at(round, "pinned_bytes_auto", bytes, survivors,
           (double)cost[EBB_PROMOTE_AUTO].pinned_bytes);
    if (cost[EBB_PROMOTE_AUTO].relinked_bytes > 0)
        add_at(round, "pinned_over_relinked", bytes, survivors,
               (double)cost[EBB_PROMOTE_AUTO].pinned_bytes /
                   (double)cost[EBB_PROMOTE_AUTO].relinked_bytes);
}

/* One tensor; the promotion alone is timed. */
static double relink_lone_ns(ebb_region parent, bool written) {
    const struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_RELINK};
    ebb_region step = open_step(parent);
    struct ebb_tensor *tensor = make_tensor(step, LONE_BYTES);
    void *object = tensor;
    uint64_t begun;
    uint64_t ended;

    if (written)
        memset(tensor->data, 1, LONE_BYTES);
    begun = clock_wall_ns();
    need(ebb_objects_promote(step, parent, &object, 1, &options, NULL) == 0, "promote");
    ended = clock_wall_ns();
    need(object == tensor && ebb_region_close(step) == 0 && ebb_object_end(object) == 0, "end");
    return (double)(ended - begun);
}

static void lone(struct round *round, ebb_region parent, const char *name, bool written) {
    double spans[5];

    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        spans[i] = relink_lone_ns(parent, written);
    round_add_at(round, name, 'b', LONE_BYTES,
                 clock_calm_mean(spans, sizeof spans / sizeof spans[0]) - clock_wall_cost_ns());
}

void case_promote_objects(struct round *round) {
    static const size_t survivors[] = {1, 8, 32, 64};
    size_t most = round->quick ? (size_t)1 << 20 : BYTES_MOST;
    static ebb_pool *pool;
    ebb_region parent;

    if (pool == NULL)
        pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "promote", .keep_all = true));
    need(pool != NULL, "pool");
    parent = ebb_region_open(EBB_REGION_OPTIONS(.name = "parent", .pool = pool));
    need(ebb_region_is_open(parent), "open");
    lone(round, parent, "ns_relink_written", true);
    lone(round, parent, "ns_relink_alone", false);
    for (size_t bytes = BYTES_LEAST; bytes <= most; bytes *= 4)
        for (size_t i = 0; i < sizeof survivors / sizeof survivors[0]; i++)
            sweep_point(round, parent, bytes, survivors[i]);
    need(ebb_region_close(parent) == 0, "close");
}
