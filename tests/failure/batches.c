// SPDX-License-Identifier: Apache-2.0
/*
 * batches.c - see batches.h. An act that failed has left the objects of both regions as they were;
 * so it can be tried again with the same.
 */
#include "failure/batches.h"
#include "kit/trees.h"

#include <string.h>

enum { SAMPLES = 3, LISTED = 64 };

struct material {
    void *trees[SAMPLES], *boxes[SAMPLES];
};

static void *boxes_of(ebb_region region, int64_t rows) {
    struct ebb_dtype f32 = {EBB_FLOAT, 32, 1};
    struct ebb_tensor *data = ebb_tensor_new_zeroed(region, f32, 2, (const int64_t[]){rows, 4});
    return ebb_sample_new(region, data,
                          &(struct ebb_sample_info){.kind = EBB_SAMPLE_BOXES,
                                                    .format = EBB_BOX_XYXY,
                                                    .canvas = {1, 1}});
}

void batches_prepare(struct scene *scene) {
    static struct material material;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        material.trees[i] = tree_make(scene->leaf, 30, i, TREE_COLLATABLE);
        material.boxes[i] = boxes_of(scene->leaf, 3000 * (int64_t)i);
        DEMAND(material.trees[i] && material.boxes[i]);
    }
    scene->made = &material;
    scene->opened = ebb_region_open(EBB_REGION_OPTIONS(.parent = scene->leaf));
    DEMAND(ebb_region_is_open(scene->opened));
}

/* What can be seen of the region for the batch, but for its pages. */
struct view {
    struct ebb_region_stats stats;
    struct ebb_object_counts counts[EBB_OBJECT_KINDS_MAX];
    void *listed[LISTED];
    size_t count;
};

static void look(ebb_region region, struct view *view) {
    memset(view, 0, sizeof *view);
    view->stats.size = sizeof view->stats;
    DEMAND(ebb_region_read_stats(region, &view->stats) == 0);
    view->stats.reserved = (struct ebb_meter){0, 0, 0};
    view->stats.waste = view->stats.runs = 0;
    for (uint32_t kind = 0; kind < EBB_OBJECT_KINDS_MAX; kind++)
        DEMAND(ebb_region_read_objects(region, kind, &view->counts[kind]) == 0);
    view->count = ebb_region_list_objects(region, view->listed, LISTED);
}

static int collate(struct scene *scene, void *const *samples) {
    static struct view before, after;
    look(scene->opened, &before);
    if (ebb_batch_collate(scene->opened, samples, SAMPLES, NULL, NULL))
        return 0;
    int code = ebb_last_error();
    look(scene->opened, &after);
    DEMAND(memcmp(&before, &after, sizeof after) == 0);
    return code;
}

int collate_trees(struct scene *scene) {
    return collate(scene, ((struct material *)scene->made)->trees);
}

int collate_boxes(struct scene *scene) {
    return collate(scene, ((struct material *)scene->made)->boxes);
}
