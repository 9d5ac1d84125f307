// SPDX-License-Identifier: Apache-2.0
/*
 * step_objects.c - see step_objects.h.
 *
 * Whatever could not be had: what the step has is whole, the call that failed changed nothing, and
 * when the step has ended nothing of it is left in the regions above.
 */
#include "failure/step_objects.h"

#include "object/dlpack.h"

#include <string.h>

enum { SMALL = 100, LARGE = 300000, PARTS = 3 };

static ebb_site *site;

/* What a step makes, in this order, each time. */
struct work {
    ebb_step step;
    void *block; /* LARGE bytes, with a key */
    struct ebb_tensor *small, *large, *parts[PARTS];
    struct ebb_packed *packed;
};

static struct ebb_tensor *tensor_of(ebb_region region, int64_t bytes, int fill) {
    const struct ebb_dtype bytes8 = {EBB_UINT, 8, 1};
    struct ebb_tensor *tensor = ebb_tensor_new(region, bytes8, 1, &bytes);
    if (tensor)
        memset(tensor->data, fill, (size_t)bytes);
    return tensor;
}

static bool is_filled(const void *bytes, size_t count, int with) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        if (at[i] != with)
            return false;
    return true;
}

static void demand_whole(const struct work *work) {
    DEMAND(!work->block || is_filled(work->block, LARGE, 1));
    DEMAND(!work->small || is_filled(work->small->data, SMALL, 2));
    DEMAND(!work->large || is_filled(work->large->data, LARGE, 3));
    for (int i = 0; i < PARTS; i++)
        DEMAND(!work->parts[i] || is_filled(work->parts[i]->data, 50, 4 + i));
}

/* 0, or the error: then some of it was made. */
static int begin(struct scene *scene, struct work *work) {
    memset(work, 0, sizeof *work);
    ebb_pool_trim(scene->pool, 0); /* so that pages have to be acquired */
    work->step = ebb_step_begin_under(site, scene->leaf, 1);
    ebb_region region = work->step.region;
    if (!ebb_region_is_open(region))
        return ebb_last_error();
    if (!tensor_of(region, 3000, 0) || !(work->block = ebb_step_alloc(work->step, LARGE, 64, 7)))
        return ebb_last_error();
    memset(work->block, 1, LARGE);
    if (!(work->small = tensor_of(region, SMALL, 2)) ||
        !(work->large = tensor_of(region, LARGE, 3)))
        return ebb_last_error();
    for (int i = 0; i < PARTS; i++)
        if (!(work->parts[i] = tensor_of(region, 50, 4 + i)))
            return ebb_last_error();
    work->packed = ebb_sequences_pack(region, work->parts, PARTS, NULL);
    return work->packed ? 0 : ebb_last_error();
}

static int promote_all(struct work *work, ebb_region target) {
    void *objects[] = {work->small, work->large, work->packed};
    int result = ebb_objects_promote(work->step.region, target, objects, 3, NULL, NULL);
    if (result)
        return result;
    work->small = objects[0];
    work->large = objects[1];
    work->packed = objects[2];
    return 0;
}

static int promote_block(struct work *work, ebb_region target) {
    struct ebb_survivor survivor = {.block = work->block};
    int result = ebb_promote(work->step.region, target, &survivor, 1, NULL);
    if (!result)
        work->block = survivor.block;
    return result;
}

static uint64_t blocks_in(ebb_region region) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    DEMAND(ebb_region_read_stats(region, &stats) == 0);
    return stats.blocks.current;
}

static void end_objects(const struct work *work) {
    DEMAND(ebb_object_end(work->small) == 0);
    DEMAND(ebb_object_end(work->large) == 0);
    DEMAND(ebb_object_end(work->packed) == 0);
}

/* One step that keeps everything in its parent. */
static int keep(struct scene *scene) {
    struct work work;
    int result = begin(scene, &work), objects = -1, block = -1;
    if (!result)
        result = objects = promote_all(&work, scene->leaf);
    if (!result)
        result = block = promote_block(&work, scene->leaf);
    demand_whole(&work);
    if (ebb_region_is_open(work.step.region))
        DEMAND(ebb_step_end(work.step) == 0);
    if (objects == 0) {
        DEMAND(is_filled(work.large->data, LARGE, 3));
        end_objects(&work);
    }
    if (block == 0) {
        DEMAND(is_filled(work.block, LARGE, 1));
        DEMAND(ebb_region_release(scene->leaf, work.block) == 0);
    }
    return result;
}

void step_objects_begin(struct scene *scene) {
    site = ebb_site_create(EBB_SITE_OPTIONS(.name = "objects", .pool = scene->pool));
    DEMAND(site);
}

void step_objects_prepare(struct scene *scene) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    step_objects_begin(scene);
    for (int i = 0; i < 4; i++)
        DEMAND(keep(scene) == 0);
    DEMAND(ebb_site_read_stats(site, &stats) == 0);
    DEMAND(stats.tenured_right == 2 * 8 && stats.tenured_wrong == 0);
}

static int end_site(int result) {
    if (!result)
        DEMAND(ebb_site_destroy(site) == 0);
    return result;
}

int keep_objects_from_steps(struct scene *scene) {
    uint64_t above = blocks_in(scene->leaf);
    int result = 0;
    for (int i = 0; !result && i < 5; i++) {
        result = keep(scene);
        DEMAND(blocks_in(scene->leaf) == above);
    }
    return end_site(result);
}

/* ---- else ---- */

static int export_and_view(struct work *work, DLManagedTensor **out) {
    int64_t ten = 10, one = 1;
    *out = ebb_tensor_export(work->large, EBB_EXCHANGE_SHARE);
    if (!*out || !ebb_tensor_view(work->step.region, work->large, 1, &ten, &one, 5) ||
        !ebb_tensor_take(work->small))
        return ebb_last_error();
    work->small = NULL; /* another has its storage */
    return 0;
}

/* Further up than learnt, and by copy, since others see the bytes. */
static int promote_large(struct scene *scene, struct work *work) {
    void *large = work->large;
    int result = ebb_objects_promote(work->step.region, scene->root, &large, 1, NULL, NULL);
    if (result)
        return result;
    DEMAND(large != work->large && is_filled(((struct ebb_tensor *)large)->data, LARGE, 3));
    DEMAND(ebb_object_end(large) == 0);
    work->large = NULL;
    return 0;
}

static int change_block(struct work *work) {
    void *moved = ebb_region_realloc(work->step.region, work->block, (size_t)40 * LARGE, 64);
    if (!moved)
        return ebb_last_error();
    DEMAND(is_filled(moved, LARGE, 1));
    work->block = NULL;
    return ebb_region_release(work->step.region, moved);
}

/* One object lent to a region below, one attached, and all end with the step. */
static int hand_down(struct work *work) {
    ebb_region below = ebb_region_open(EBB_REGION_OPTIONS(.parent = work->step.region));
    if (!ebb_region_is_open(below))
        return ebb_last_error();
    int result = ebb_object_borrow(work->packed, below);
    if (!result)
        result = ebb_object_attach(work->parts[0], below);
    if (result || !ebb_region_mark(work->step.region).serial)
        return ebb_last_error();
    return 0;
}

static int do_else(struct scene *scene, DLManagedTensor **out) {
    struct work work;
    int result = begin(scene, &work);
    if (!result)
        result = export_and_view(&work, out);
    ebb_pool_trim(scene->pool, 0);
    if (!result)
        result = promote_large(scene, &work);
    if (!result)
        result = change_block(&work);
    if (!result)
        result = hand_down(&work);
    demand_whole(&work);
    if (ebb_region_is_open(work.step.region))
        DEMAND(ebb_step_end(work.step) == 0);
    return result;
}

int do_else_with_objects_of_steps(struct scene *scene) {
    uint64_t above = blocks_in(scene->leaf), top = blocks_in(scene->root);
    DLManagedTensor *out = NULL;
    int result = do_else(scene, &out);
    if (out) {
        DEMAND(is_filled(out->dl_tensor.data, LARGE, 3));
        out->deleter(out);
    }
    DEMAND(ebb_region_count_exports(scene->leaf) == 0);
    DEMAND(blocks_in(scene->leaf) == above && blocks_in(scene->root) == top);
    return end_site(result);
}
