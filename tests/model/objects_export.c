// SPDX-License-Identifier: Apache-2.0
/*
 * objects_export.c - tensors are exported and given back meanwhile: an export sees its storage as
 * a tensor does, keeps its bytes when the region ends, and lets no rewind past it.
 */
#include "model/objects.h"

#include "object/dlpack.h"

#include <stdlib.h>

static int64_t extent_of(const DLTensor *tensor) {
    int64_t last = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] == 0)
            return 0;
        last += (tensor->shape[i] - 1) * tensor->strides[i];
    }
    return last + 1;
}

/* What the consumer reads is what the storage has, or had when it ended or was copied. */
void check_export(const struct scene *scene, const struct scene_export *export) {
    const DLTensor *seen = &export->managed->dl_tensor;
    const int32_t *elements = seen->data;
    const int32_t *expected = export->store == NOBODY
                                  ? export->elements
                                  : scene->stores[export->store].elements + export->offset;
    for (int64_t i = 0; i < export->count; i++)
        SCENE_DEMAND(scene, elements[i] == expected[i]);
}

static void keep_elements(struct scene_export *export, const int32_t *elements) {
    export->elements = malloc((size_t)export->count * sizeof *elements + 1);
    if (!export->elements)
        abort();
    for (int64_t i = 0; i < export->count; i++)
        export->elements[i] = elements[i];
}

/* The region ends: whoever has an export of it keeps what is there now. */
void keep_exports(struct scene *scene, int region) {
    for (int i = 0; i < SCENE_EXPORTS; i++) {
        struct scene_export *export = &scene->exports[i];
        if (!export->managed || export->region != region)
            continue;
        if (export->store != NOBODY) {
            keep_elements(export, scene->stores[export->store].elements + export->offset);
            leave_store(scene, export->store, 1);
        }
        export->store = NOBODY;
        export->region = NOBODY;
    }
}

bool may_rewind(const struct scene *scene, int region, uint64_t serial) {
    for (int i = 0; i < SCENE_EXPORTS; i++)
        if (scene->exports[i].managed && scene->exports[i].region == region &&
            scene->exports[i].serial >= serial)
            return false;
    return true;
}

static void begin(struct scene *scene, struct scene_export *export, int thing, bool shared) {
    const struct thing *it = &scene->things[thing];
    export->count = extent_of(&export->managed->dl_tensor);
    export->store = NOBODY;
    export->region = NOBODY;
    if (!export->count)
        return;
    export->region = shared ? scene->stores[it->store].host : it->host;
    export->serial = scene->regions[export->region].mark_serial;
    if (!shared) {
        keep_elements(export, export->managed->dl_tensor.data);
        return;
    }
    export->store = it->store;
    export->offset = it->offset;
    scene->stores[it->store].tensors++;
}

void drop_export(struct scene *scene, struct scene_export *export) {
    export->managed->deleter(export->managed);
    if (export->store != NOBODY)
        leave_store(scene, export->store, 1);
    free(export->elements);
    export->elements = NULL;
    export->managed = NULL;
}

void op_export(struct scene *scene) {
    struct scene_export *export = &scene->exports[below(scene, SCENE_EXPORTS)];
    int thing = some_tensor(scene);
    if (export->managed) {
        scene_say(scene, "drop an export of %d", export->region);
        drop_export(scene, export);
        return;
    }
    if (thing == NOBODY)
        return;
    const struct ebb_tensor *tensor = scene->things[thing].addr;
    enum ebb_exchange_mode mode = chance(scene, 3) ? EBB_EXCHANGE_COPY : EBB_EXCHANGE_IF_NEEDED;
    scene_dare(scene);
    DLManagedTensor *managed = ebb_tensor_export(tensor, mode);
    bool sealed = !managed && ebb_last_error() == EBB_E_SEALED &&
                  scene->regions[scene->things[thing].host].sealed;
    if (!scene_went(scene, managed ? 0 : ebb_last_error(), sealed ? EBB_E_SEALED : 0))
        return;
    scene_say(scene, "export %d", thing);
    export->managed = managed;
    begin(scene, export, thing, managed->dl_tensor.data == tensor->data);
}
