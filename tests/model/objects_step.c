// SPDX-License-Identifier: Apache-2.0
/*
 * objects_step.c - some regions of the scene are those of steps. What comes first in them repeats,
 * all else is random: blocks of objects lie in arenas and beside them. Sites are new from time to
 * time, since steps that never repeat are left alone.
 */
#include "model/objects.h"

#include <stddef.h>

enum { STEPS_OF_ONE_SITE = 12 };

static void make_site(struct scene *scene, int at) {
    scene->sites[at] = ebb_site_create(
        EBB_SITE_OPTIONS(.pool = scene->pools[at % 2], .ring = at < 2 ? 0 : (unsigned)at - 1));
    SCENE_DEMAND(scene, scene->sites[at] != NULL);
}

void make_sites(struct scene *scene) {
    for (int i = 0; i < SCENE_SITES && scene->planned; i++)
        make_site(scene, i);
}

void notice_closed(struct scene *scene) {
    for (int i = 0; i < SCENE_REGIONS; i++) {
        const struct scene_region *it = &scene->regions[i];
        bool below = it->parent != NOBODY &&
                     !ebb_region_is_open(scene->regions[it->parent].handle);
        if (it->open && it->site != NOBODY && !it->step.lane && !below &&
            !ebb_region_is_open(it->handle))
            close_region(scene, i); /* and what is below, in its order */
    }
}

ebb_region open_step(struct scene *scene, ebb_region parent, struct scene_region *into,
                     int *expected) {
    into->site = (int)below(scene, SCENE_SITES);
    into->step = ebb_step_begin_under(scene->sites[into->site], parent, chance(scene, 5));
    bool open = ebb_region_is_open(into->step.region);
    if (!open && into->site >= 2 && ebb_last_error() == EBB_E_STALE)
        *expected = EBB_E_STALE; /* below one that would close for it */
    return into->step.region;
}

/* What was rehearsed goes to the parent if it still can, in most steps: so sites learn to make it
 * there at once. In some steps it stays, and in all of them anything else may happen to it. */
static void keep_rehearsed(struct scene *scene, int region) {
    const struct scene_region *it = &scene->regions[region];
    int kept[SCENE_REHEARSED], count = 0;
    for (int i = 0; i < SCENE_THINGS && it->parent != NOBODY && !it->sealed; i++)
        for (int k = 0; k < it->rehearsed_count; k++)
            if (scene->things[i].live && scene->things[i].addr == it->rehearsed[k] &&
                scene->things[i].host == region && scene->things[i].whole == NOBODY &&
                owner_of(scene, i) == region)
                kept[count++] = i;
    if (!chance(scene, 6))
        promote_to_parent(scene, kept, count);
}

static void note_rehearsed(const struct scene *scene, struct scene_region *it, const bool *older) {
    for (int i = 0; i < SCENE_THINGS; i++)
        if (scene->things[i].live && !older[i] && it->rehearsed_count < SCENE_REHEARSED)
            it->rehearsed[it->rehearsed_count++] = scene->things[i].addr;
}

void rehearse(struct scene *scene, int region) {
    struct scene_region *it = &scene->regions[region];
    int things = (int)below(scene, SCENE_REHEARSED);
    uint64_t state = scene->state;
    bool older[SCENE_THINGS];
    for (int i = 0; i < SCENE_THINGS; i++)
        older[i] = scene->things[i].live;
    scene->state = (uint64_t)it->site;
    scene->only = region + 1;
    while (things--)
        (things % 3 ? op_tensor : op_node)(scene);
    scene->only = 0;
    scene->state = state;
    note_rehearsed(scene, it, older);
    if (it->site % 2)
        keep_rehearsed(scene, region);
}

void end_step(struct scene *scene, int region) {
    struct scene_region *it = &scene->regions[region];
    keep_rehearsed(scene, region);
    scene_dare(scene);
    SCENE_DEMAND(scene, scene_went(scene, ebb_step_end(it->step), 0));
    it->step.lane = NULL;
    SCENE_DEMAND(scene, ebb_region_is_open(it->handle) == (it->site >= 2));
    notice_closed(scene);
}

/* All lanes turn until their rings are empty: each step closes one region at most, so the order is
 * known. */
static void empty_rings(struct scene *scene, int at) {
    ebb_step steps[SCENE_REGIONS];
    for (int round = 0; round <= at; round++) {
        for (int i = 0; i < SCENE_REGIONS; i++) {
            steps[i] = ebb_step_begin(scene->sites[at], 0);
            SCENE_DEMAND(scene, ebb_region_is_open(steps[i].region));
            notice_closed(scene);
        }
        for (int i = 0; i < SCENE_REGIONS; i++)
            SCENE_DEMAND(scene, ebb_step_end(steps[i]) == 0);
    }
}

static bool is_idle(const struct scene *scene, int site) {
    for (int i = 0; i < SCENE_REGIONS; i++)
        if (scene->regions[i].open && scene->regions[i].site == site && scene->regions[i].step.lane)
            return false;
    return true;
}

static bool try_end_site(struct scene *scene, int at) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    SCENE_DEMAND(scene, ebb_site_read_stats(scene->sites[at], &stats) == 0);
    if (is_idle(scene, at))
        empty_rings(scene, at);
    if (ebb_site_destroy(scene->sites[at]) != 0) {
        SCENE_DEMAND(scene, ebb_last_error() == EBB_E_BUSY);
        return false;
    }
    scene->hits += stats.hits;
    scene->tenured += stats.tenured_right;
    scene->tenured_wrong += stats.tenured_wrong;
    notice_closed(scene);
    return true;
}

/* Steps are shorter than other regions. */
void op_site(struct scene *scene) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    int at = (int)below(scene, SCENE_SITES), region = some_region(scene);
    if (!scene->planned)
        return;
    if (scene->regions[region].site != NOBODY && scene->regions[region].step.lane)
        end_step(scene, region);
    op_open(scene);
    if (chance(scene, 4) ||
        ebb_site_read_stats(scene->sites[at], &stats) != 0 ||
        stats.steps < STEPS_OF_ONE_SITE)
        return;
    if (try_end_site(scene, at))
        make_site(scene, at);
}

void end_sites(struct scene *scene) {
    for (int i = 0; i < SCENE_REGIONS; i++)
        if (scene->regions[i].open && scene->regions[i].site != NOBODY &&
            scene->regions[i].step.lane)
            end_step(scene, i);
    for (int i = 0; i < SCENE_SITES && scene->planned; i++)
        SCENE_DEMAND(scene, try_end_site(scene, i));
}
