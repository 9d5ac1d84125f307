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

/* ---- steps of a site ---- */

static ebb_site *ebb_learning, *ebb_unplanned;
static ebb_step ebb_present;

MICRO_INLINE void ebb_begin_of(ebb_site *site, struct step *step) {
    ebb_present = ebb_step_begin(site, 0);
    step->place = ebb_present.region.lane;
    step->serial = ebb_present.region.generation;
}

MICRO_INLINE void ebb_begin_learning(struct step *step) {
    ebb_begin_of(ebb_learning, step);
}

MICRO_INLINE void ebb_begin_unplanned(struct step *step) {
    ebb_begin_of(ebb_unplanned, step);
}

MICRO_INLINE void ebb_end_present(struct step *step, const struct held *held) {
    (void)step;
    (void)held;
    ebb_need(ebb_step_end(ebb_present) == 0, "end");
}

static const struct peer_ops ebb_learning_ops = {
    .begin = ebb_begin_learning,
    .end = ebb_end_present,
    .alloc = ebb_alloc,
    .release = ebb_release,
};

static const struct peer_ops ebb_unplanned_ops = {
    .begin = ebb_begin_unplanned,
    .end = ebb_end_present,
    .alloc = ebb_alloc,
    .release = ebb_release,
};

static void ebb_make_sites(void) {
    if (ebb_learning != NULL)
        return;
    ebb_learning = ebb_site_create(EBB_SITE_OPTIONS(.name = "learning"));
    ebb_unplanned = ebb_site_create(EBB_SITE_OPTIONS(.name = "unplanned", .unplanned = true));
    ebb_need(ebb_learning != NULL && ebb_unplanned != NULL, "site");
}

static void ebb_run_planned(struct round *round) {
    struct ebb_site_stats stats = {.size = sizeof stats};

    ebb_make_sites();
    round_add(round, "ns_event", planned_event_ns(&ebb_learning_ops, round->span_ns));
    round_add(round, "ns_event_unplanned",
              planned_event_ns(&ebb_unplanned_ops, round->span_ns));
    ebb_need(ebb_site_read_stats(ebb_learning, &stats) == 0, "stats");
    if (stats.hits <= stats.missed) { /* nor if there is no plan at all */
        fprintf(stderr, "ebb: a step that repeats was not served from its plan\n");
        exit(1);
    }
}

static void ebb_run(enum micro_case which, struct round *round) {
    if (which == CASE_PROMOTE)
        case_promote(round);
    else if (which == CASE_PROMOTE_OBJECTS)
        case_promote_objects(round);
    else if (which == CASE_PLANNED)
        ebb_run_planned(round);
    else
        cases_run(&ebb_ops, which, round);
}

const struct peer peer_ebb = {.set_up = ebb_set_up, .run = ebb_run};
