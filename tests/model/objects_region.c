// SPDX-License-Identifier: Apache-2.0
/* objects_region.c - operations on the regions around objects: open, close, marks, cleanups. */
#include "model/objects.h"

void op_open(struct scene *scene) {
    int parent = chance(scene, 4) ? NOBODY : some_region(scene), at = 0;
    while (at < SCENE_REGIONS && scene->regions[at].open)
        at++;
    if (at == SCENE_REGIONS || (parent != NOBODY && scene->regions[parent].depth > 3))
        return;
    int pool = parent == NOBODY ? (int)below(scene, 2) : scene->regions[parent].pool;
    struct ebb_region_options options = {.size = sizeof options, .pool = scene->pools[pool]};
    if (parent != NOBODY)
        options.parent = scene->regions[parent].handle;
    if (scene->limited && chance(scene, 3))
        options.limit_bytes = 1000 + below(scene, 60000);
    options.sites = chance(scene, 10);
    scene_dare(scene);
    struct scene_region fresh = {.site = NOBODY};
    int expected = 0;
    bool steps = scene->planned && (parent != NOBODY || scene->born) && !chance(scene, 4);
    ebb_region handle = steps ? open_step(scene, options.parent, &fresh, &expected)
                              : ebb_region_open(&options);
    bool went = scene_went(scene, ebb_region_is_open(handle) ? 0 : ebb_last_error(), expected);
    notice_closed(scene);
    if (!went)
        return;
    if (steps && parent == NOBODY)
        pool = fresh.site % 2;
    scene->regions[at] =
        (struct scene_region){.open = true, .handle = handle, .parent = parent, .pool = pool,
                              .site = fresh.site, .step = fresh.step,
                              .depth = parent == NOBODY ? 0 : scene->regions[parent].depth + 1,
                              .born = ++scene->born};
    scene_say(scene, "open %d in %d%s", at, parent, steps ? ": a step" : "");
    if (steps)
        rehearse(scene, at);
}

void op_close(struct scene *scene) {
    int region = some_region(scene);
    if (region == NOBODY || (scene->regions[region].depth == 0 && !chance(scene, 6)))
        return;
    scene_say(scene, "close %d", region);
    if (scene->regions[region].site != NOBODY) {
        if (scene->regions[region].step.lane)
            end_step(scene, region);
        return;
    }
    SCENE_DEMAND(scene, ebb_region_close(scene->regions[region].handle) == 0);
    close_region(scene, region);
}

void op_reset(struct scene *scene) {
    int region = some_region(scene);
    if (region == NOBODY)
        return;
    scene_say(scene, "reset %d", region);
    SCENE_DEMAND(scene, ebb_region_reset(scene->regions[region].handle,
                                         chance(scene, 2) ? 0 : EBB_KEEP_ALL) == 0);
    reset_region(scene, region);
}

void op_mark(struct scene *scene) {
    int region = some_region(scene);
    if (region == NOBODY || scene->regions[region].mark_count == SCENE_MARKS)
        return;
    struct scene_region *it = &scene->regions[region];
    scene_dare(scene);
    ebb_mark mark = ebb_region_mark(it->handle);
    if (!scene_went(scene, mark.serial ? 0 : ebb_last_error(), 0))
        return;
    it->marks[it->mark_count++] = (struct scene_mark){mark, ++it->mark_serial};
    scene_say(scene, "mark %llu of %d", (unsigned long long)it->mark_serial, region);
}

void op_rewind(struct scene *scene) {
    int region = some_region(scene);
    for (int look = 0; look < 8 && region != NOBODY && !scene->regions[region].mark_count; look++)
        region = some_region(scene);
    if (region == NOBODY || !scene->regions[region].mark_count)
        return;
    struct scene_region *it = &scene->regions[region];
    struct scene_mark mark = it->marks[below(scene, (size_t)it->mark_count)];
    scene_say(scene, "rewind %d to %llu", region, (unsigned long long)mark.serial);
    int expected = may_rewind(scene, region, mark.serial) ? 0 : EBB_E_BUSY;
    if (scene_went(scene, ebb_region_rewind(it->handle, mark.mark), expected))
        rewind_region(scene, region, mark.serial);
}

void op_seal(struct scene *scene) {
    int region = some_region(scene);
    if (region == NOBODY || scene->regions[region].depth == 0)
        return;
    scene_say(scene, "seal %d", region);
    SCENE_DEMAND(scene, ebb_region_seal(scene->regions[region].handle) == 0);
    scene->regions[region].sealed = true;
}

static int run(void *data) {
    struct scene_cleanup *cleanup = data;
    cleanup->runs++;
    return 0;
}

void op_cleanup(struct scene *scene) {
    struct scene_cleanup *it = &scene->cleanups[below(scene, SCENE_CLEANUPS)];
    int region = some_region(scene);
    if (it->region == NOBODY && region != NOBODY) {
        it->node = (struct ebb_cleanup){.run = run, .data = it};
        SCENE_DEMAND(scene, ebb_cleanup_add(scene->regions[region].handle, &it->node) == 0);
        it->serial = scene->regions[region].mark_serial;
        it->region = region;
    } else if (it->region != NOBODY && chance(scene, 2)) {
        SCENE_DEMAND(scene, ebb_cleanup_remove(&it->node) == 0);
        it->region = NOBODY;
    } else if (it->region != NOBODY) {
        SCENE_DEMAND(scene, ebb_cleanup_run(&it->node) == 0);
        it->region = NOBODY;
        it->expected++;
    }
}
