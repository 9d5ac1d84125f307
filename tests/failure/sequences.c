// SPDX-License-Identifier: Apache-2.0
/* sequences.c - see sequences.h. */
#include "failure/sequences.h"

#include <string.h>

enum { SEQUENCES = 12, FEATURES = 60 };

struct material {
    struct ebb_tensor *list[SEQUENCES], *back[SEQUENCES];
    struct ebb_packed *packed;
};

static struct material material;

void sequences_prepare(struct scene *scene) {
    struct ebb_dtype f32 = {EBB_FLOAT, 32, 1};
    for (int64_t i = 0; i < SEQUENCES; i++) {
        int64_t shape[] = {i * 7 % SEQUENCES * 40, FEATURES};
        material.list[i] = ebb_tensor_new_zeroed(scene->leaf, f32, 2, shape);
        DEMAND(material.list[i]);
    }
    material.packed = ebb_sequences_pack(scene->leaf, material.list, SEQUENCES, NULL);
    DEMAND(material.packed);
    scene->opened = ebb_region_open(EBB_REGION_OPTIONS(.parent = scene->leaf));
    DEMAND(ebb_region_is_open(scene->opened));
}

/* What can be seen of the region for results, but for its pages. */
struct view {
    struct ebb_region_stats stats;
    struct ebb_object_counts counts[EBB_OBJECT_KINDS_MAX];
    size_t listed;
};

static struct view look(ebb_region region) {
    struct view view;
    memset(&view, 0, sizeof view);
    view.stats.size = sizeof view.stats;
    DEMAND(ebb_region_read_stats(region, &view.stats) == 0);
    view.stats.reserved = (struct ebb_meter){0, 0, 0};
    view.stats.waste = view.stats.runs = 0;
    for (uint32_t kind = 0; kind < EBB_OBJECT_KINDS_MAX; kind++)
        DEMAND(ebb_region_read_objects(region, kind, &view.counts[kind]) == 0);
    view.listed = ebb_region_list_objects(region, NULL, 0);
    return view;
}

/* 0, or the error of a call that changed nothing. */
static int judge(struct scene *scene, const struct view *before, bool made) {
    struct view after = look(scene->opened);
    if (made)
        return 0;
    DEMAND(memcmp(before, &after, sizeof after) == 0);
    return ebb_last_error();
}

int pack_a_list(struct scene *scene) {
    struct view before = look(scene->opened);
    return judge(scene, &before,
                 ebb_sequences_pack(scene->opened, material.list, SEQUENCES, NULL) != NULL);
}

int pad_what_is_packed(struct scene *scene) {
    struct view before = look(scene->opened);
    return judge(scene, &before, ebb_packed_pad(scene->opened, material.packed, NULL) != NULL);
}

int unpack_what_is_packed(struct scene *scene) {
    struct view before = look(scene->opened);
    memset(material.back, 0, sizeof material.back);
    bool made =
        ebb_packed_unpack(scene->opened, material.packed, material.back, SEQUENCES) == 0;
    for (int i = 0; i < SEQUENCES; i++)
        DEMAND(made == (material.back[i] != NULL));
    return judge(scene, &before, made);
}

int join_what_is_packed(struct scene *scene) {
    struct view before = look(scene->opened);
    return judge(scene, &before, ebb_packed_join(scene->opened, material.packed) != NULL);
}
