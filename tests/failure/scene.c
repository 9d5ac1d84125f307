// SPDX-License-Identifier: Apache-2.0
/* scene.c - see scene.h. */
#include "failure/scene.h"

#include <stdint.h>
#include <string.h>

static const size_t sizes[SCENE_BLOCKS] = {100, 5000, 700, 30000, 1024, 9000};

void scene_demand(bool holds, const char *claim, const char *file, int line) {
    if (holds)
        return;
    fprintf(stderr, "%s:%d: %s (last error: %s)\n", file, line, claim, ebb_last_error_text());
    _exit(1);
}

static ebb_region owner(const struct scene *scene, int block) {
    return block < 2 ? scene->root : block < 4 ? scene->child : scene->leaf;
}

void scene_make(struct scene *scene) {
    scene->pool = ebb_pool_create(EBB_POOL_OPTIONS(.name = "scene"));
    DEMAND(scene->pool);
    scene->root = ebb_region_open(EBB_REGION_OPTIONS(.name = "root", .pool = scene->pool));
    scene->child = ebb_region_open(EBB_REGION_OPTIONS(.name = "child", .parent = scene->root));
    scene->leaf = ebb_region_open(EBB_REGION_OPTIONS(.name = "leaf", .parent = scene->child));
    for (int i = 0; i < SCENE_BLOCKS; i++) {
        scene->blocks[i] = ebb_region_alloc(owner(scene, i), sizes[i], 64);
        DEMAND(scene->blocks[i]);
        memset(scene->blocks[i], 'a' + i, sizes[i]);
    }
}

static bool is_open(const struct scene *scene, int region) {
    const ebb_region regions[] = {scene->root, scene->child, scene->leaf};
    return ebb_region_is_open(regions[region]);
}

void scene_look(const struct scene *scene, struct sight *sight) {
    const ebb_region regions[] = {scene->root, scene->child, scene->leaf};
    memset(sight, 0, sizeof *sight);
    for (int i = 0; i < 3; i++) {
        sight->regions[i].size = sizeof sight->regions[i];
        if (is_open(scene, i))
            DEMAND(ebb_region_read_stats(regions[i], &sight->regions[i]) == 0);
    }
    sight->pool.size = sight->process.size = sizeof sight->pool;
    if (scene->pool)
        DEMAND(ebb_pool_read_stats(scene->pool, &sight->pool) == 0);
    DEMAND(ebb_process_read_stats(&sight->process) == 0);
}

static void forget_pool_pages(struct ebb_pool_stats *stats) {
    stats->reserved = (struct ebb_meter){0, 0, 0};
    stats->owned = stats->cached = stats->waste = 0;
}

void scene_forget_pages(struct sight *sight) {
    for (int i = 0; i < 3; i++) {
        sight->regions[i].reserved = (struct ebb_meter){0, 0, 0};
        sight->regions[i].waste = sight->regions[i].runs = 0;
    }
    forget_pool_pages(&sight->pool);
    forget_pool_pages(&sight->process);
}

static bool are_words_same(const char *what, const void *before, const void *after, size_t bytes) {
    const uint64_t *old = before, *new = after;
    bool same = true;
    for (size_t i = 0; i < bytes / sizeof *old; i++)
        if (old[i] != new[i]) {
            same = false;
            fprintf(stderr, "%s: word %zu was %llu, is %llu\n", what, i,
                    (unsigned long long)old[i], (unsigned long long)new[i]);
        }
    return same;
}

bool scene_is_same(const struct sight *before, const struct sight *after) {
    static const char *const names[] = {"root", "child", "leaf"};
    bool same = true;
    for (int i = 0; i < 3; i++)
        same &= are_words_same(names[i], &before->regions[i], &after->regions[i],
                               sizeof before->regions[i]);
    same &= are_words_same("pool", &before->pool, &after->pool, sizeof before->pool);
    return same && are_words_same("process", &before->process, &after->process,
                                  sizeof before->process);
}

static bool holds_only(const void *block, size_t bytes, int value) {
    const char *byte = block;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i] != value)
            return false;
    return true;
}

void scene_check(const struct scene *scene) {
    if (!scene->pool)
        return;
    for (int i = 0; i < SCENE_BLOCKS; i++)
        if (scene->blocks[i] && ebb_region_is_open(owner(scene, i)))
            DEMAND(holds_only(scene->blocks[i], sizes[i], 'a' + i));
    DEMAND(ebb_check_pool(scene->pool) == 0);
}

void scene_end(struct scene *scene) {
    struct ebb_pool_stats stats = {.size = sizeof stats};
    if (!scene->pool)
        return;
    if (ebb_region_is_open(scene->root))
        DEMAND(ebb_region_close(scene->root) == 0);
    DEMAND(ebb_check_pool(scene->pool) == 0);
    DEMAND(ebb_pool_read_stats(scene->pool, &stats) == 0);
    DEMAND(stats.open_regions == 0 && stats.owned == 0);
    DEMAND(stats.blocks.current == 0 && stats.requested.current == 0 && stats.used.current == 0);
    DEMAND(stats.reserved.current == stats.cached);
    DEMAND(ebb_pool_destroy(scene->pool) == 0);
}
