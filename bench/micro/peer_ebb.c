// SPDX-License-Identifier: Apache-2.0
/*
 * peer_ebb.c - ebb: a region is opened and closed for each step.
 *
 * Most cases use the default pool as a program finds it. close_n and the flat cases go through
 * steps that lie up to seven powers of ten apart within one round, which is the very spike that a
 * pool gives back after; they use a pool that keeps everything, since they ask about placing and
 * ending blocks only.
 * `request` opens its regions under a parent, to which the survivors are promoted.
 *
 * A failed call ends the process: the parent then says so and leaves the rows out.
 */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>

#include "case_promote.h"
#include "case_promote_objects.h"
#include "cases.h"

static const struct ebb_region_options *ebb_step_options;
static ebb_region ebb_server;

static void ebb_need(bool held, const char *what) {
    if (held)
        return;
    fprintf(stderr, "ebb: %s: %s\n", what, ebb_last_error_text());
    exit(1);
}

static void ebb_set_up(enum micro_case which) {
    static struct ebb_region_options options = {.size = sizeof options, .name = "step"};

    if (which == CASE_CLOSE_N || which == CASE_FLAT_COUNT || which == CASE_FLAT_BYTES) {
        options.pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "flat", .keep_all = true));
        ebb_need(options.pool != NULL, "pool");
        ebb_step_options = &options;
    }
    if (which == CASE_REQUEST) {
        ebb_server = ebb_region_open(EBB_REGION_OPTIONS(.name = "server"));
        ebb_need(ebb_region_is_open(ebb_server), "server");
        options.parent = ebb_server;
        ebb_step_options = &options;
    }
}

MICRO_INLINE ebb_region region_of_step(const struct step *step) {
    return (ebb_region){(struct ebb_lane *)step->place, step->serial};
}

MICRO_INLINE void ebb_begin(struct step *step) {
    ebb_region region = ebb_region_open(ebb_step_options);

    step->place = region.lane;
    step->serial = region.generation;
}

MICRO_INLINE void *ebb_alloc(struct step *step, size_t bytes) {
    return ebb_region_alloc(region_of_step(step), bytes, 16);
}

MICRO_INLINE void ebb_release(struct step *step, void *block) {
    ebb_region_release(region_of_step(step), block);
}

MICRO_INLINE void ebb_close(struct step *step) {
    ebb_region_close(region_of_step(step));
}

MICRO_INLINE void ebb_end(struct step *step, const struct held *held) {
    (void)held;
    ebb_close(step);
}

static void *ebb_keep(struct step *step, void *block, size_t bytes) {
    struct ebb_survivor survivor = {.block = block};

    (void)bytes;
    ebb_need(ebb_promote(region_of_step(step), ebb_server, &survivor, 1, NULL) == 0, "promote");
    return survivor.block;
}

static void ebb_drop(void *kept) {
    ebb_need(ebb_region_release(ebb_server, kept) == 0, "drop");
}

MICRO_INLINE void *ebb_make_tensor(struct step *step, int32_t ndim, const int64_t *shape,
                                   void **data) {
    const struct ebb_dtype float32 = {EBB_FLOAT, 32, 1};
    struct ebb_tensor *tensor = ebb_tensor_new(region_of_step(step), float32, ndim, shape);

    *data = tensor->data;
    return tensor;
}

MICRO_INLINE void ebb_end_tensor(struct step *step, void *tensor) {
    (void)step;
    ebb_object_end(tensor);
}

static const struct peer_ops ebb_ops = {
    .begin = ebb_begin,
    .end = ebb_end,
    .alloc = ebb_alloc,
    .release = ebb_release,
    .open = ebb_begin,
    .close = ebb_close,
    .keep = ebb_keep,
    .drop = ebb_drop,
    .tensor_new = ebb_make_tensor,
    .tensor_end = ebb_end_tensor,
    .forgets = true,
};

static void ebb_run(enum micro_case which, struct round *round) {
    if (which == CASE_PROMOTE)
        case_promote(round);
    else if (which == CASE_PROMOTE_OBJECTS)
        case_promote_objects(round);
    else
        cases_run(&ebb_ops, which, round);
}

const struct peer peer_ebb = {.set_up = ebb_set_up, .run = ebb_run};
