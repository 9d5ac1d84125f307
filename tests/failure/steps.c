// SPDX-License-Identifier: Apache-2.0
/* steps.c - see steps.h. */
#include "failure/steps.h"

#include <string.h>

enum { BLOCKS = 30 };

static ebb_site *site;

static ebb_site *new_site(const struct scene *scene) {
    return ebb_site_create(EBB_SITE_OPTIONS(.name = "scene", .pool = scene->pool, .ring = 1));
}

int create_a_site(struct scene *scene) {
    ebb_site *made = new_site(scene);
    if (!made)
        return ebb_last_error();
    return ebb_site_destroy(made);
}

/* Blocks come and go and keep their bytes. 0, or why one did not come. */
static int work(ebb_step step, unsigned blocks, size_t scale) {
    unsigned char *live[BLOCKS];
    for (unsigned i = 0; i < blocks; i++) {
        size_t bytes = 1000 + i % 5 * scale;
        live[i] = ebb_region_alloc(step.region, bytes, 64);
        if (!live[i])
            return ebb_last_error();
        memset(live[i], (int)i, bytes);
        if (i % 3 != 2)
            continue;
        DEMAND(live[i - 2][0] == i - 2 && live[i - 2][999] == i - 2);
        DEMAND(ebb_region_release(step.region, live[i - 2]) == 0);
    }
    for (unsigned i = 0; i < blocks; i++)
        DEMAND(i % 3 == 0 || (live[i][0] == i && live[i][999] == i));
    return 0;
}

static int take_one(struct scene *scene, unsigned blocks, size_t scale) {
    ebb_step step = ebb_step_begin_under(site, scene->root, 1);
    if (!ebb_region_is_open(step.region))
        return ebb_last_error();
    int result = work(step, blocks, scale);
    DEMAND(ebb_step_end(step) == 0);
    return result;
}

static int take(struct scene *scene, unsigned steps, size_t scale) {
    int result = 0;
    for (unsigned i = 0; i < steps && !result; i++)
        result = take_one(scene, BLOCKS, scale);
    return result;
}

void steps_prepare(struct scene *scene) {
    site = new_site(scene);
    DEMAND(site);
}

void steps_prepare_planned(struct scene *scene) {
    steps_prepare(scene);
    DEMAND(take(scene, 4, 3000) == 0);
}

static int end_site(int result) {
    if (!result)
        DEMAND(ebb_site_destroy(site) == 0);
    return result;
}

int begin_a_step(struct scene *scene) {
    ebb_step step = ebb_step_begin_under(site, scene->root, 1);
    if (!ebb_region_is_open(step.region)) {
        struct ebb_site_stats stats = {.size = sizeof stats};
        DEMAND(ebb_site_read_stats(site, &stats) == 0 && stats.steps == 0);
        return ebb_last_error();
    }
    DEMAND(ebb_step_end(step) == 0);
    return end_site(0);
}

int take_some_steps(struct scene *scene) {
    return end_site(take(scene, 5, 3000));
}

int take_larger_steps(struct scene *scene) {
    return end_site(take(scene, 3, 9000));
}

int take_steps_in_rows(struct scene *scene) {
    int result = 0;
    for (unsigned i = 0; i < 24 && !result; i++)
        result = take_one(scene, i % 3 ? BLOCKS / 3 : BLOCKS, 3000);
    return end_site(result);
}

static int keep_from_a_step(struct scene *scene) {
    ebb_step step = ebb_step_begin_under(site, scene->root, 2);
    if (!ebb_region_is_open(step.region))
        return ebb_last_error();
    void *block = ebb_region_alloc(step.region, 9000, 64);
    struct ebb_survivor kept = {.block = block};
    int result = block ? ebb_step_end_keeping(step, scene->root, &kept, 1, NULL, NULL)
                       : ebb_last_error();
    if (result) {
        DEMAND(ebb_region_is_open(step.region));
        DEMAND(ebb_step_end(step) == 0);
        return result;
    }
    DEMAND(ebb_region_release(scene->root, kept.block) == 0);
    return 0;
}

int keep_from_steps(struct scene *scene) {
    for (unsigned i = 0; i < 5; i++) {
        int result = keep_from_a_step(scene);
        if (result)
            return result;
    }
    return end_site(0);
}
