// SPDX-License-Identifier: Apache-2.0
/* objects_check.c - everything that can be asked about objects is what the shadow says. */
#include "model/objects.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void scene_demand(const struct scene *scene, bool holds, const char *claim, const char *file,
                  int line) {
    if (holds)
        return;
    fprintf(stderr, "%s:%d: %s\n  at operation %llu; last error: %s\n  replay: EBB_SEED=%llu%s\n",
            file, line, claim, (unsigned long long)scene->op, ebb_last_error_text(),
            (unsigned long long)scene->seed,
            scene->faulty ? " (failing)" : scene->limited ? " (limited)" : "");
    _exit(1);
}

void scene_say(const struct scene *scene, const char *format, ...) {
    va_list arguments;
    if (!scene->trace)
        return;
    fprintf(stderr, "%llu: ", (unsigned long long)scene->op);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

unsigned char byte_of(unsigned seed, size_t at) {
    return (unsigned char)((seed + at * 2654435761u) >> 7);
}

/* ---- elements ---- */

int64_t element_count(const struct thing *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->ndim; i++)
        count *= tensor->shape[i];
    return count;
}

static int64_t index_of(const struct thing *tensor, int64_t place) {
    int64_t index = tensor->offset;
    for (int i = tensor->ndim; i-- > 0; place /= tensor->shape[i])
        index += place % tensor->shape[i] * tensor->strides[i];
    return index;
}

int32_t *element_of(struct scene *scene, const struct thing *tensor, int64_t place) {
    return &scene->stores[tensor->store].elements[index_of(tensor, place)];
}

static void check_elements(struct scene *scene, const struct thing *it) {
    const struct ebb_tensor *tensor = it->addr;
    const struct store *store = &scene->stores[it->store];
    for (int64_t i = 0; i < element_count(it); i++) {
        int64_t index = index_of(it, i);
        SCENE_DEMAND(scene, ((int32_t *)tensor->data)[index - it->offset] ==
                                store->elements[index]);
    }
}

static void check_tensor(struct scene *scene, const struct thing *it, bool contents) {
    const struct ebb_tensor *tensor = it->addr;
    const struct store *store = &scene->stores[it->store];
    SCENE_DEMAND(scene, tensor->ndim == it->ndim && tensor->storage == store->storage);
    SCENE_DEMAND(scene, (int)store->storage->tensors == store->tensors);
    SCENE_DEMAND(scene, store->storage->gathered == 0 && !store->storage->forward);
    SCENE_DEMAND(scene, (char *)tensor->data ==
                            (char *)store->storage->data + it->offset * (int64_t)sizeof(int32_t));
    for (int i = 0; i < it->ndim; i++)
        SCENE_DEMAND(scene, tensor->shape[i] == it->shape[i] &&
                                tensor->strides[i] == it->strides[i]);
    if (contents)
        check_elements(scene, it);
}

/* ---- nodes ---- */

static void check_bytes(const struct scene *scene, const unsigned char *bytes, size_t count,
                        unsigned seed) {
    for (size_t i = 0; i < count; i++)
        SCENE_DEMAND(scene, bytes[i] == byte_of(seed, i));
}

static void check_member(const struct scene *scene, const struct thing *whole,
                         const struct ebb_object *pointer, int member) {
    const void *expected = member == NOBODY ? NULL : scene->things[member].addr;
    SCENE_DEMAND(scene, pointer == expected);
    SCENE_DEMAND(scene, !pointer || pointer->whole == whole->addr);
}

static void check_node(const struct scene *scene, const struct thing *it) {
    const struct node *node = it->addr;
    check_member(scene, it, node->left, it->fields[0]);
    check_member(scene, it, node->right, it->fields[1]);
    SCENE_DEMAND(scene, node->part_count == (size_t)it->part_count);
    for (int i = 0; i < it->part_count; i++)
        check_member(scene, it, node->parts[i], it->fields[2 + i]);
    SCENE_DEMAND(scene, node->name_bytes == it->name_bytes);
    SCENE_DEMAND(scene, node->tail_bytes == it->tail_bytes);
    SCENE_DEMAND(scene, node->tail == (const unsigned char *)(node + 1));
    check_bytes(scene, node->name, it->name_bytes, it->seed);
    check_bytes(scene, node->tail, it->tail_bytes, it->seed + 1);
}

static void check_thing(struct scene *scene, int thing, bool contents) {
    const struct thing *it = &scene->things[thing];
    const struct ebb_object *object = it->addr;
    ebb_region owner = scene->regions[owner_of(scene, thing)].handle;
    ebb_region found = ebb_object_owner(object);
    SCENE_DEMAND(scene, found.lane == owner.lane && found.generation == owner.generation);
    SCENE_DEMAND(scene, ebb_region_owns(owner, object));
    SCENE_DEMAND(scene, object->type == (it->kind ? &node_types[it->kind - 1] : &ebb_type_tensor));
    SCENE_DEMAND(scene, !object->forward && (object->whole == NULL) == (it->whole == NOBODY));
    if (it->kind)
        check_node(scene, it);
    else
        check_tensor(scene, it, contents);
}

/* ---- regions ---- */

static void check_list(struct scene *scene, int region) {
    void *objects[SCENE_THINGS + 1];
    size_t count = ebb_region_list_objects(scene->regions[region].handle, objects,
                                           SCENE_THINGS + 1), expected = 0;
    SCENE_DEMAND(scene, count <= SCENE_THINGS);
    for (int i = 0; i < SCENE_THINGS; i++) {
        const struct thing *it = &scene->things[i];
        if (!it->live || it->whole != NOBODY || owner_of(scene, i) != region)
            continue;
        size_t at = 0;
        while (at < count && objects[at] != it->addr)
            at++;
        SCENE_DEMAND(scene, at < count);
        expected++;
    }
    SCENE_DEMAND(scene, count == expected);
}

static void check_counts(struct scene *scene, int region, uint32_t kind, uint64_t live) {
    struct ebb_object_counts counts, expected = scene->regions[region].counts[kind];
    uint32_t number = kind ? node_types[kind - 1].kind : EBB_OBJECT_TENSOR;
    SCENE_DEMAND(scene, ebb_region_read_objects(scene->regions[region].handle, number,
                                                &counts) == 0);
    expected.live = live;
    if (memcmp(&counts, &expected, sizeof counts) != 0) {
        const uint64_t *is = (const uint64_t *)&counts, *must = (const uint64_t *)&expected;
        for (size_t i = 0; i < sizeof counts / sizeof *is; i++)
            fprintf(stderr, "  region %d kind %u counter %zu: %llu, expected %llu\n", region, kind,
                    i, (unsigned long long)is[i], (unsigned long long)must[i]);
    }
    SCENE_DEMAND(scene, memcmp(&counts, &expected, sizeof counts) == 0);
}

static void check_process(struct scene *scene, uint32_t kind, uint64_t live) {
    struct ebb_object_counts counts, expected = scene->process[kind];
    uint32_t number = kind ? node_types[kind - 1].kind : EBB_OBJECT_TENSOR;
    SCENE_DEMAND(scene, ebb_process_read_objects(number, &counts) == 0);
    expected.live = live;
    uint64_t *is = (uint64_t *)&counts;
    const uint64_t *before = (const uint64_t *)&scene->before[kind];
    for (size_t i = 0; i < sizeof counts / sizeof *is; i++)
        is[i] -= before[i];
    for (size_t i = 0; i < sizeof counts / sizeof *is; i++)
        if (is[i] != ((const uint64_t *)&expected)[i])
            fprintf(stderr, "  process kind %u counter %zu: %llu, expected %llu\n", kind, i,
                    (unsigned long long)is[i],
                    (unsigned long long)((const uint64_t *)&expected)[i]);
    SCENE_DEMAND(scene, memcmp(&counts, &expected, sizeof counts) == 0);
}

static void check_region(struct scene *scene, int region) {
    uint64_t live[SCENE_KINDS] = {0};
    for (int i = 0; i < SCENE_THINGS; i++)
        if (scene->things[i].live && owner_of(scene, i) == region)
            live[scene->things[i].kind]++;
    check_list(scene, region);
    for (uint32_t kind = 0; kind < SCENE_KINDS; kind++)
        check_counts(scene, region, kind, live[kind]);
}

static void check_stores(const struct scene *scene) {
    for (int i = 0; i < SCENE_STORES; i++)
        for (int k = 0; k < i; k++)
            SCENE_DEMAND(scene, !scene->stores[i].tensors || !scene->stores[k].tensors ||
                                    scene->stores[i].storage != scene->stores[k].storage);
}

void check_scene(struct scene *scene, bool contents) {
    uint64_t live[SCENE_KINDS] = {0};
    for (int i = 0; i < SCENE_REGIONS; i++) /* what was given back is done with */
        if (scene->regions[i].open)
            ebb_region_count_exports(scene->regions[i].handle);
    for (int i = 0; i < 2; i++)
        ebb_check_pool(scene->pools[i]);
    for (int i = 0; i < SCENE_EXPORTS; i++)
        if (contents && scene->exports[i].managed)
            check_export(scene, &scene->exports[i]);
    for (int i = 0; i < SCENE_THINGS; i++)
        if (scene->things[i].live) {
            check_thing(scene, i, contents);
            live[scene->things[i].kind]++;
        }
    for (int i = 0; i < SCENE_REGIONS; i++)
        if (scene->regions[i].open)
            check_region(scene, i);
    for (uint32_t kind = 0; kind < SCENE_KINDS; kind++)
        check_process(scene, kind, live[kind]);
    for (int i = 0; i < SCENE_CLEANUPS; i++)
        SCENE_DEMAND(scene, scene->cleanups[i].runs == scene->cleanups[i].expected);
    if (contents)
        check_stores(scene);
}
