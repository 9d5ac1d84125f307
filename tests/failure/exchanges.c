// SPDX-License-Identifier: Apache-2.0
/* exchanges.c - see exchanges.h. Exports are given back by the act that was granted all. */
#include "failure/exchanges.h"
#include "object/dlpack.h"

#include <string.h>

enum { EXPORTS = 300 }; /* more cuts than one batch of entries is good for */

static DLManagedTensor *exports[EXPORTS];
static float elements[16];

static struct ebb_tensor *make_tensor(ebb_region region, int64_t bytes) {
    const struct ebb_dtype dtype = {EBB_UINT, 8, 1};
    struct ebb_tensor *tensor = ebb_tensor_new(region, dtype, 1, &bytes);
    DEMAND(tensor);
    memset(tensor->data, 't', (size_t)bytes);
    return tensor;
}

void exchange_prepare(struct scene *scene) {
    scene->made = make_tensor(scene->leaf, 5000);
    scene->opened = ebb_region_open(EBB_REGION_OPTIONS(.parent = scene->leaf));
    DEMAND(ebb_region_is_open(scene->opened));
}

static int export_with(struct scene *scene, enum ebb_exchange_mode mode) {
    const struct ebb_tensor *tensor = scene->made;
    DLManagedTensor *managed = ebb_tensor_export(tensor, mode);
    DEMAND(managed || tensor->storage->tensors == 1);
    if (!managed)
        return ebb_last_error();
    DEMAND(((char *)managed->dl_tensor.data)[4999] == 't');
    managed->deleter(managed);
    DEMAND(ebb_region_count_exports(scene->leaf) == 0);
    return 0;
}

int export_shared(struct scene *scene) {
    return export_with(scene, EBB_EXCHANGE_SHARE);
}

int export_copied(struct scene *scene) {
    return export_with(scene, EBB_EXCHANGE_COPY);
}

static int import_with(struct scene *scene, enum ebb_exchange_mode mode) {
    int64_t shape = 16;
    DLManagedTensor managed = {.dl_tensor = {.data = elements, .device = {kDLCPU, 0}, .ndim = 1,
                                             .dtype = {kDLFloat, 32, 1}, .shape = &shape}};
    struct ebb_tensor *tensor = ebb_tensor_import(scene->opened, &managed, mode);
    return tensor ? ebb_object_end(tensor) : ebb_last_error();
}

int import_shared(struct scene *scene) {
    return import_with(scene, EBB_EXCHANGE_SHARE);
}

int import_copied(struct scene *scene) {
    return import_with(scene, EBB_EXCHANGE_COPY);
}

static struct ebb_survivor survivor_of(void *block) {
    return (struct ebb_survivor){.block = block, .mode = EBB_PROMOTE_RELINK};
}

/* Some alone on their pages, some beside each other, some beside blocks that depart. */
void export_some(struct scene *scene) {
    for (int i = 0; i < EXPORTS; i++) {
        exports[i] = ebb_tensor_export(make_tensor(scene->leaf, 1500 + 40 * i),
                                       EBB_EXCHANGE_SHARE);
        void *block = ebb_region_alloc(scene->leaf, i % 2 ? 2000 : 20000, 64);
        DEMAND(exports[i] && block);
        if (i % 3 == 1)
            scene->list[scene->count++] = survivor_of(block);
    }
    DEMAND(ebb_promote(scene->leaf, scene->root, scene->list, scene->count, NULL) == 0);
}

/* A close never fails, however little there is to keep books with. */
int close_with_exports(struct scene *scene) {
    int code = ebb_region_is_open(scene->leaf) ? ebb_region_close(scene->leaf) : 0;
    for (int i = 0; i < EXPORTS && exports[i]; i++) {
        const DLTensor *tensor = &exports[i]->dl_tensor;
        for (int64_t at = 0; at < tensor->shape[0]; at++)
            DEMAND(((char *)tensor->data)[at] == 't');
        exports[i]->deleter(exports[i]);
        exports[i] = NULL;
    }
    ebb_region_count_exports(scene->root);
    return code;
}
