// SPDX-License-Identifier: Apache-2.0
/*
 * scenarios.c - everything in ebb that acquires, one act each.
 *
 * An act is called again after it failed, with all acquisitions granted, and must then succeed:
 * so it may not depend on how often it was tried.
 */
#include "failure/batches.h"
#include "failure/exchanges.h"
#include "failure/handoffs.h"
#include "failure/scene.h"
#include "failure/sequences.h"
#include "failure/step_objects.h"
#include "failure/steps.h"

#include <string.h>

#define OPEN(...) ebb_region_open(EBB_REGION_OPTIONS(__VA_ARGS__))

static int code_of(const void *pointer) {
    return pointer ? 0 : ebb_last_error();
}

static int code_of_region(ebb_region region) {
    return ebb_region_is_open(region) ? 0 : ebb_last_error();
}

/* ---- pools and regions ---- */

static int create_pool(struct scene *scene) {
    ebb_pool *pool = ebb_pool_create(NULL);
    int code = code_of(pool);
    (void)scene;
    if (pool)
        DEMAND(ebb_pool_destroy(pool) == 0);
    return code;
}

static int open_on_the_default_pool(struct scene *scene) {
    scene->opened = ebb_region_open(NULL);
    int code = code_of_region(scene->opened);
    if (!code)
        DEMAND(ebb_region_close(scene->opened) == 0);
    return code;
}

static int allocate_on_the_default_pool(struct scene *scene) {
    if (!ebb_region_is_open(scene->opened))
        scene->opened = ebb_region_open(NULL);
    if (!ebb_region_is_open(scene->opened))
        return ebb_last_error();
    int code = code_of(ebb_region_alloc(scene->opened, 100, 16));
    if (!code)
        DEMAND(ebb_region_close(scene->opened) == 0);
    return code;
}

static int open_child(struct scene *scene) {
    scene->opened = OPEN(.parent = scene->leaf);
    return code_of_region(scene->opened);
}

static int open_root(struct scene *scene) {
    scene->opened = OPEN(.pool = scene->pool);
    int code = code_of_region(scene->opened);
    if (!code)
        DEMAND(ebb_region_close(scene->opened) == 0);
    return code;
}

static int open_with_hint(struct scene *scene) {
    scene->opened = OPEN(.parent = scene->leaf, .hint_bytes = 300000);
    return code_of_region(scene->opened);
}

static int open_with_hint_beyond_a_slab(struct scene *scene) {
    scene->opened = OPEN(.parent = scene->leaf, .hint_bytes = ((size_t)1 << 30) + 1);
    return code_of_region(scene->opened);
}

static int open_measuring(struct scene *scene) {
    ebb_region region = OPEN(.measure = true);
    int code = code_of_region(region);
    (void)scene;
    if (code)
        return code;
    code = code_of(ebb_region_alloc(region, 100000, 64));
    if (!code)
        code = code_of(ebb_region_alloc(region, 100, 16));
    DEMAND(ebb_region_close(region) == 0);
    return code;
}

/* ---- blocks ---- */

static void fill_small_window(struct scene *scene) {
    struct ebb_region_stats before = {.size = sizeof before}, after = before;
    DEMAND(ebb_region_read_stats(scene->leaf, &before) == 0);
    do { /* until a window was used up and the pages under it, too */
        DEMAND(ebb_region_alloc(scene->leaf, 1024, 16));
        DEMAND(ebb_region_read_stats(scene->leaf, &after) == 0);
    } while (after.reserved.current == before.reserved.current);
    for (int i = 0; i < 3; i++)
        DEMAND(ebb_region_alloc(scene->leaf, 1024, 16));
}

static int allocate_small(struct scene *scene) {
    return code_of(ebb_region_alloc(scene->leaf, 1000, 64));
}

static void open_empty(struct scene *scene) {
    scene->opened = OPEN(.parent = scene->leaf);
    DEMAND(ebb_region_is_open(scene->opened));
}

static int allocate_first_small(struct scene *scene) {
    return code_of(ebb_region_alloc(scene->opened, 1, 1));
}

static int allocate_first_large(struct scene *scene) {
    return code_of(ebb_region_alloc(scene->opened, 10000, 64));
}

static int allocate_large(struct scene *scene) {
    return code_of(ebb_region_alloc(scene->leaf, 1000000, 64));
}

static int allocate_large_zeroed(struct scene *scene) {
    return code_of(ebb_region_alloc_zeroed(scene->leaf, 200000, 64));
}

static int allocate_array(struct scene *scene) {
    return code_of(ebb_region_alloc_array(scene->leaf, 1000, 300, 64));
}

static int allocate_aligned(struct scene *scene) {
    return code_of(ebb_region_alloc(scene->leaf, 5000, EBB_ALIGN_MAX));
}

static int allocate_beyond_a_slab(struct scene *scene) {
    return code_of(ebb_region_alloc(scene->leaf, ((size_t)1 << 30) + 1, 64));
}

static int allocate_many(struct scene *scene) {
    for (size_t i = 0; i < 400; i++)
        if (!ebb_region_alloc(scene->leaf, 1100 + i * 64, 64))
            return ebb_last_error();
    return 0;
}

static void open_limited(struct scene *scene) {
    scene->opened = OPEN(.parent = scene->leaf, .limit_bytes = 120000);
    DEMAND(ebb_region_is_open(scene->opened));
}

static int allocate_in_limits(struct scene *scene) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    int code = code_of(ebb_region_alloc(scene->opened, 110000, 64));
    DEMAND(ebb_region_read_stats(scene->opened, &stats) == 0);
    DEMAND(stats.subtree_used == stats.used.current);
    return code;
}

static void make_one_to_move(struct scene *scene) {
    scene->made = ebb_region_alloc(scene->leaf, 3000, 64);
    DEMAND(scene->made && ebb_region_alloc(scene->leaf, 3000, 64));
    memset(scene->made, 'm', 3000);
}

static int shrink_large(struct scene *scene) {
    int code = ebb_region_resize(scene->leaf, scene->made, 1100);
    DEMAND(ebb_region_block_bytes(scene->leaf, scene->made) == (code ? 3000 : 1100));
    return code;
}

static int reallocate(struct scene *scene) {
    char *moved = ebb_region_realloc(scene->leaf, scene->made, 500000, 64);
    if (moved)
        scene->made = moved;
    DEMAND(*(char *)scene->made == 'm' && ((char *)scene->made)[2999] == 'm');
    return code_of(moved);
}

/* ---- marks and resets ---- */

static int mark(struct scene *scene) {
    return ebb_region_mark(scene->leaf).serial ? 0 : ebb_last_error();
}

static int mark_often(struct scene *scene) {
    for (int i = 0; i < 100; i++)
        if (!ebb_region_mark(scene->leaf).serial)
            return ebb_last_error();
    return 0;
}

static int reset_keeping(struct scene *scene) {
    scene->blocks[4] = scene->blocks[5] = NULL;
    return ebb_region_reset(scene->leaf, EBB_KEEP_ALL);
}

static int close_leaf(struct scene *scene) {
    return ebb_region_is_open(scene->leaf) ? ebb_region_close(scene->leaf) : 0;
}

static void cache_pages(struct scene *scene) {
    ebb_region region = OPEN(.parent = scene->leaf);
    void *block = ebb_region_alloc(region, 3 << 20, 64);
    DEMAND(block);
    memset(block, 1, 3 << 20);
    DEMAND(ebb_region_close(region) == 0);
}

static int trim(struct scene *scene) {
    size_t remaining = 1;
    ebb_pool_trim_within(scene->pool, 0, 0, &remaining);
    return remaining ? 1 : 0;
}

/* ---- promotions ---- */

static void list(struct scene *scene, void *block, int mode) {
    scene->list[scene->count++] = (struct ebb_survivor){.block = block, .mode = mode};
}

static void list_copies(struct scene *scene) {
    list(scene, scene->blocks[4], EBB_PROMOTE_COPY);
    list(scene, scene->blocks[5], EBB_PROMOTE_COPY);
}

static void list_relinks(struct scene *scene) {
    list(scene, scene->blocks[5], EBB_PROMOTE_RELINK);
}

/* Small ones that need padding in the target, then large ones of both kinds. */
static void list_many(struct scene *scene) {
    DEMAND(ebb_region_alloc(scene->root, 16, 16));
    for (size_t i = 0; i < 60; i++) {
        void *small = ebb_region_alloc(scene->leaf, 10 + i, 64);
        void *large = ebb_region_alloc(scene->leaf, 4000 + 500 * i, 64);
        DEMAND(small && large);
        list(scene, small, EBB_PROMOTE_COPY);
        scene->list[scene->count - 1].align = 64;
        list(scene, large, i % 2 ? EBB_PROMOTE_RELINK : EBB_PROMOTE_COPY);
    }
}

static int promote_to_root(struct scene *scene) {
    struct ebb_survivor before[128];
    memcpy(before, scene->list, sizeof before);
    int code = ebb_promote(scene->leaf, scene->root, scene->list, scene->count, NULL);
    for (size_t i = 0; code && i < scene->count; i++) {
        DEMAND(scene->list[i].block == before[i].block);
        DEMAND(scene->list[i].mode == before[i].mode);
    }
    return code;
}

static int close_keeping(struct scene *scene) {
    uint64_t lost = 4711;
    struct ebb_promoted cost = {0};
    int code = ebb_close_keeping(scene->leaf, scene->root, scene->list, scene->count, &cost,
                                 &lost);
    DEMAND(code == 0 || (ebb_region_is_open(scene->leaf) && lost == 4711));
    DEMAND(code == 0 || (cost.copied_blocks == 0 && cost.relinked_blocks == 0));
    DEMAND(code != 0 || cost.copied_blocks + cost.relinked_blocks == scene->count);
    return code;
}

static void relink_and_go_on(struct scene *scene) {
    list_many(scene);
    DEMAND(ebb_promote(scene->leaf, scene->root, scene->list, scene->count, NULL) == 0);
}

/* ---- tensors ---- */

static const int64_t matrix[] = {60, 70};

/* A matrix of floats that are integers up to 100, and below it a region without a page. */
static void make_a_matrix(struct scene *scene) {
    struct ebb_tensor *tensor =
        ebb_tensor_new(scene->leaf, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 2, matrix);
    DEMAND(tensor);
    for (int i = 0; i < 60 * 70; i++)
        ((float *)tensor->data)[i] = (float)(i % 101);
    scene->made = tensor;
    open_empty(scene);
}

/* A call that failed has made no object and left the storage to those that saw it. */
static int end_made(struct scene *scene, struct ebb_tensor *made) {
    struct ebb_object_counts counts;
    int code = code_of(made);
    DEMAND(!made || ebb_object_end(made) == 0);
    DEMAND(ebb_region_read_objects(scene->opened, EBB_OBJECT_TENSOR, &counts) == 0);
    DEMAND(counts.live == 0 && counts.created_inside == (made != NULL));
    DEMAND(((struct ebb_tensor *)scene->made)->storage->tensors == 1);
    return code;
}

static int copy_a_matrix(struct scene *scene) {
    return end_made(scene, ebb_tensor_contiguous(scene->opened, scene->made));
}

static int convert_a_matrix(struct scene *scene) {
    struct ebb_dtype dtype = {EBB_INT, 8, 1};
    return end_made(scene, ebb_tensor_convert(scene->opened, scene->made, dtype));
}

static int view_a_matrix(struct scene *scene) {
    return end_made(scene, ebb_tensor_transpose(scene->opened, scene->made, 0, 1));
}

static int alias_a_matrix(struct scene *scene) {
    struct ebb_dtype dtype = ((struct ebb_tensor *)scene->made)->dtype;
    return end_made(scene,
                    ebb_tensor_alias(scene->opened, scene->made, dtype, 2, matrix, NULL));
}

static int fall_back_from_an_alias(struct scene *scene) {
    struct ebb_alias alias = {.size = sizeof alias, .fall_back = true, .reason = 7};
    struct ebb_tensor *fresh = ebb_tensor_alias(
        scene->opened, scene->made, (struct ebb_dtype){EBB_FLOAT, 64, 1}, 2, matrix, &alias);
    DEMAND(alias.reason == (fresh ? EBB_E_NO_ROOM : 7));
    return end_made(scene, fresh);
}

const struct scenario scenarios[] = {
    {"creating_a_pool", NULL, create_pool, 0, true},
    {"opening_on_the_default_pool", NULL, open_on_the_default_pool, 0, true},
    {"the_first_block_on_the_default_pool", NULL, allocate_on_the_default_pool,
     SCENE_MAY_SUCCEED, true},
    {"measuring_first", NULL, open_measuring, SCENE_MAY_SUCCEED, true},
    {"creating_another_pool", NULL, create_pool, 0, false},
    {"opening_a_root", NULL, open_root, 0, false},
    {"opening_a_child", NULL, open_child, 0, false},
    {"opening_with_a_hint", NULL, open_with_hint, 0, false},
    {"opening_with_a_hint_beyond_a_slab", NULL, open_with_hint_beyond_a_slab, 0, false},
    {"measuring", NULL, open_measuring, 0, false},
    {"a_small_block_in_a_new_window", fill_small_window, allocate_small, 0, false},
    {"the_first_small_block", open_empty, allocate_first_small, 0, false},
    {"the_first_large_block", open_empty, allocate_first_large, 0, false},
    {"a_large_block", NULL, allocate_large, 0, false},
    {"a_large_zeroed_block", NULL, allocate_large_zeroed, 0, false},
    {"an_array", NULL, allocate_array, 0, false},
    {"an_aligned_block", NULL, allocate_aligned, 0, false},
    {"a_block_beyond_a_slab", NULL, allocate_beyond_a_slab, 0, false},
    {"many_blocks", NULL, allocate_many, SCENE_MAY_SUCCEED, false},
    {"a_block_under_a_limit", open_limited, allocate_in_limits, 0, false},
    {"shrinking_a_large_block", make_one_to_move, shrink_large, SCENE_MAY_SUCCEED, false},
    {"a_realloc_that_moves", make_one_to_move, reallocate, 0, false},
    {"a_mark", NULL, mark, 0, false},
    {"many_marks", NULL, mark_often, SCENE_MAY_SUCCEED, false},
    {"a_reset_that_keeps_pages", NULL, reset_keeping, SCENE_MAY_SUCCEED, false},
    {"closing", NULL, close_leaf, SCENE_MAY_SUCCEED, false},
    {"closing_with_departed_blocks", relink_and_go_on, close_leaf, SCENE_MAY_SUCCEED, false},
    {"trimming", cache_pages, trim, SCENE_MAY_SUCCEED, false},
    {"promoting_copies", list_copies, promote_to_root, SCENE_MAY_KEEP_PAGES, false},
    {"promoting_by_relinking", list_relinks, promote_to_root, 0, false},
    {"promoting_a_long_list", list_many, promote_to_root, SCENE_MAY_KEEP_PAGES, false},
    {"close_keeping_copies", list_copies, close_keeping, SCENE_MAY_KEEP_PAGES, false},
    {"close_keeping_relinks", list_relinks, close_keeping, 0, false},
    {"close_keeping_a_long_list", list_many, close_keeping, SCENE_MAY_KEEP_PAGES, false},
    {"a_contiguous_copy", make_a_matrix, copy_a_matrix, 0, false},
    {"a_conversion", make_a_matrix, convert_a_matrix, 0, false},
    {"a_view", make_a_matrix, view_a_matrix, 0, false},
    {"an_alias", make_a_matrix, alias_a_matrix, 0, false},
    {"an_alias_that_falls_back", make_a_matrix, fall_back_from_an_alias, 0, false},
    {"collating_trees", batches_prepare, collate_trees, SCENE_MAY_KEEP_PAGES, false},
    {"collating_boxes", batches_prepare, collate_boxes, SCENE_MAY_KEEP_PAGES, false},
    {"an_export", exchange_prepare, export_shared, 0, false},
    {"an_export_by_copy", exchange_prepare, export_copied, 0, false},
    {"an_import", exchange_prepare, import_shared, 0, false},
    {"an_import_by_copy", exchange_prepare, import_copied, 0, false},
    {"closing_with_exports", export_some, close_with_exports, SCENE_MAY_SUCCEED, false},
    {"creating_a_shared_pool", NULL, create_shared, 0, false},
    {"attaching_a_shared_pool", handoff_prepare, attach_shared, SCENE_MAY_SUCCEED, false},
    {"sending_and_receiving", handoff_prepare, cross, SCENE_MAY_SUCCEED, false},
    {"working_in_a_slot", handoff_prepare, work_in_a_slot, SCENE_MAY_SUCCEED, false},
    {"packing_a_list", sequences_prepare, pack_a_list, SCENE_MAY_KEEP_PAGES, false},
    {"padding", sequences_prepare, pad_what_is_packed, 0, false},
    {"unpacking", sequences_prepare, unpack_what_is_packed, SCENE_MAY_KEEP_PAGES, false},
    {"joining", sequences_prepare, join_what_is_packed, SCENE_MAY_KEEP_PAGES, false},
    /* it may have opened a region of ebb's own, and closed it: that is counted */
    {"creating_a_site", NULL, create_a_site, SCENE_MAY_SUCCEED, false},
    {"beginning_a_step", steps_prepare, begin_a_step, SCENE_MAY_SUCCEED, false},
    {"learning_from_steps", steps_prepare, take_some_steps, SCENE_MAY_SUCCEED, false},
    {"learning_rows_of_steps", steps_prepare, take_steps_in_rows, SCENE_MAY_SUCCEED, false},
    {"learning_more_from_larger_steps", steps_prepare_planned, take_larger_steps,
     SCENE_MAY_SUCCEED, false},
    {"keeping_from_steps", steps_prepare, keep_from_steps, SCENE_MAY_SUCCEED, false},
    {"learning_to_keep_objects_from_steps", step_objects_begin, keep_objects_from_steps,
     SCENE_MAY_SUCCEED, false},
    {"keeping_objects_from_steps", step_objects_prepare, keep_objects_from_steps,
     SCENE_MAY_SUCCEED, false},
    {"doing_else_with_objects_of_steps", step_objects_prepare, do_else_with_objects_of_steps,
     SCENE_MAY_SUCCEED, false},
};

const unsigned scenario_count = sizeof scenarios / sizeof *scenarios;
