// SPDX-License-Identifier: Apache-2.0
/* objects_make.c - operations on one object: making, composing, ending, taking. */
#include "model/objects.h"

#include <string.h>

static const struct ebb_dtype INT32 = {EBB_INT, 32, 1};

static int ended(const void *result) {
    return result ? 0 : ebb_last_error();
}

static int sealed(const struct scene *scene, int region) {
    return scene->regions[region].sealed ? EBB_E_SEALED : 0;
}

/* ---- tensors ---- */

static void some_shape(struct scene *scene, struct thing *form) {
    form->ndim = (int)below(scene, SCENE_NDIM + 1);
    for (int i = 0; i < form->ndim; i++)
        form->shape[i] = (int64_t)below(scene, 6);
    if (form->ndim && chance(scene, 5))
        form->shape[0] = (int64_t)below(scene, chance(scene, 4) ? 6000 : 900);
    int64_t stride = 1;
    for (int i = form->ndim; i-- > 0;) {
        form->strides[i] = stride;
        stride *= form->shape[i] ? form->shape[i] : 1;
    }
}

static void fill(struct scene *scene, const struct thing *it) {
    int32_t first = (int32_t)below(scene, 1u << 30);
    struct ebb_tensor *tensor = it->addr;
    struct store *store = &scene->stores[it->store];
    for (int64_t i = 0; i < store->count; i++)
        store->elements[i] = ((int32_t *)tensor->data)[i] = first + (int32_t)i;
}

void op_tensor(struct scene *scene) {
    struct thing form = {.live = true};
    int region = some_region(scene);
    if (region == NOBODY || !has_room(scene, 1))
        return;
    some_shape(scene, &form);
    scene_dare(scene);
    struct ebb_tensor *tensor =
        ebb_tensor_new(scene->regions[region].handle, INT32, form.ndim, form.shape);
    if (!scene_went(scene, ended(tensor), sealed(scene, region)))
        return;
    struct thing *it = &scene->things[new_thing(scene, region, 0, tensor)];
    it->ndim = form.ndim;
    memcpy(it->shape, form.shape, sizeof it->shape);
    memcpy(it->strides, form.strides, sizeof it->strides);
    it->store = new_store(scene, region, tensor->storage, element_count(it));
    fill(scene, it);
    scene_say(scene, "tensor %d of %lld elements in %d", (int)(it - scene->things),
              (long long)element_count(it), region);
}

/* Part of a tensor, perhaps with two dimensions exchanged. */
static void some_part(struct scene *scene, struct thing *form) {
    form->offset = 0;
    bool empty = element_count(form) == 0;
    for (int i = 0; i < form->ndim; i++) {
        int64_t size = form->shape[i], step = 1 + (int64_t)below(scene, 3);
        int64_t start = size ? (int64_t)below(scene, (size_t)size) : 0;
        form->shape[i] = (size - start + step - 1) / step;
        form->offset += empty ? 0 : start * form->strides[i];
        form->strides[i] *= step;
    }
    if (form->ndim > 1 && chance(scene, 2)) {
        int64_t shape = form->shape[0], stride = form->strides[0];
        form->shape[0] = form->shape[1], form->strides[0] = form->strides[1];
        form->shape[1] = shape, form->strides[1] = stride;
    }
}

void op_view(struct scene *scene) {
    int base = some_tensor(scene), region = some_region(scene);
    if (base == NOBODY || !has_room(scene, 1))
        return;
    const struct store *store = &scene->stores[scene->things[base].store];
    if (chance(scene, 2))
        region = scene->things[base].host;
    struct thing form = scene->things[base];
    some_part(scene, &form);
    int expected = is_above(scene, store->host, region) ? sealed(scene, region)
                                                         : EBB_E_NOT_ANCESTOR;
    scene_dare(scene);
    struct ebb_tensor *tensor =
        ebb_tensor_view(scene->regions[region].handle, scene->things[base].addr, form.ndim,
                        form.shape, form.strides, form.offset);
    if (!scene_went(scene, ended(tensor), expected))
        return;
    struct thing *it = &scene->things[new_thing(scene, region, 0, tensor)];
    it->ndim = form.ndim;
    memcpy(it->shape, form.shape, sizeof it->shape);
    memcpy(it->strides, form.strides, sizeof it->strides);
    it->store = scene->things[base].store;
    it->offset = scene->things[base].offset + form.offset;
    scene->stores[it->store].tensors++;
    scene_say(scene, "view %d of %d in %d", (int)(it - scene->things), base, region);
}

void op_write(struct scene *scene) {
    int thing = some_tensor(scene);
    if (thing == NOBODY || element_count(&scene->things[thing]) == 0)
        return;
    const struct thing *it = &scene->things[thing];
    int32_t *element =
        element_of(scene, it, (int64_t)below(scene, (size_t)element_count(it)));
    const struct store *store = &scene->stores[it->store];
    *element = (int32_t)below(scene, 1u << 30);
    ((int32_t *)store->storage->data)[element - store->elements] = *element;
}

void op_take(struct scene *scene) {
    int thing = some_tensor(scene);
    if (thing == NOBODY)
        return;
    struct thing *it = &scene->things[thing];
    int expected = it->whole != NOBODY         ? EBB_E_MEMBER
                   : is_lent(scene, thing)     ? EBB_E_BORROWED
                                               : sealed(scene, it->host);
    scene_dare(scene);
    struct ebb_tensor *taker = ebb_tensor_take(it->addr);
    if (!scene_went(scene, ended(taker), expected))
        return;
    scene_say(scene, "take %d", thing);
    scene->ghosts[scene->ghost_count++ % SCENE_GHOSTS] = it->addr;
    it->addr = taker;
    renew_thing(scene, thing);
}

/* ---- nodes ---- */

static int why_not_member(const struct scene *scene, int whole, int member) {
    const struct thing *it = &scene->things[member];
    if (contains(scene, member, whole))
        return EBB_E_CYCLE;
    if (it->whole != NOBODY && it->whole != whole)
        return EBB_E_MEMBER;
    if (it->record_count)
        return EBB_E_BORROWED;
    return it->host == scene->things[whole].host ? 0 : EBB_E_NOT_OWNED;
}

/* Members that the shadow has not got yet join; `fresh` are those of all fields. */
static void join(struct scene *scene, int whole, const int *fresh) {
    struct thing *it = &scene->things[whole];
    bool renew = (it->part_count || it->name_bytes) &&
                 scene->regions[it->host].mark_serial > it->serial;
    int owner = owner_of(scene, whole);
    for (int i = 0; i < 2 + SCENE_PARTS; i++) {
        it->fields[i] = fresh[i];
        if (fresh[i] == NOBODY || scene->things[fresh[i]].whole == whole)
            continue;
        scene->things[fresh[i]].whole = whole;
        renew |= scene->things[fresh[i]].serial > it->serial;
        BUMP(scene, owner, scene->things[fresh[i]].kind, joined);
    }
    if (renew)
        renew_thing(scene, whole);
}

static void write_fields(const struct scene *scene, int whole, const int *members) {
    struct node *node = scene->things[whole].addr;
    const struct thing *things = scene->things;
    node->left = members[0] == NOBODY ? NULL : things[members[0]].addr;
    node->right = members[1] == NOBODY ? NULL : things[members[1]].addr;
    for (int i = 0; i < things[whole].part_count; i++)
        node->parts[i] = members[2 + i] == NOBODY ? NULL : things[members[2 + i]].addr;
}

/* Some of the empty fields are written and composed, or written back. */
static void compose(struct scene *scene, int whole) {
    struct thing *it = &scene->things[whole];
    int fresh[2 + SCENE_PARTS], expected = is_lent(scene, whole) ? EBB_E_BORROWED : 0;
    memcpy(fresh, it->fields, sizeof fresh);
    for (int i = 0; i < 2 + it->part_count; i++) {
        int member = fresh[i];
        bool fits = member != NOBODY;
        for (int look = chance(scene, 2) ? 8 : 0; look && !fits; look--) {
            member = some_thing(scene);
            fits = member != NOBODY && why_not_member(scene, whole, member) == 0;
        }
        if (member != NOBODY && (fits || chance(scene, 20)))
            fresh[i] = member;
        if (!expected && fresh[i] != NOBODY)
            expected = why_not_member(scene, whole, fresh[i]);
    }
    write_fields(scene, whole, fresh);
    scene_dare(scene);
    if (scene_went(scene, ebb_object_compose(it->addr), expected))
        join(scene, whole, fresh);
    else
        write_fields(scene, whole, it->fields);
}

/* Blocks for name and parts; both or none. */
static void furnish(struct scene *scene, struct thing *it, size_t name_bytes, int parts) {
    ebb_region host = scene->regions[it->host].handle;
    struct node *node = it->addr;
    scene_dare(scene);
    node->name = ebb_region_alloc(host, name_bytes, 1);
    node->parts = node->name && parts ? ebb_region_alloc_zeroed(host, (size_t)parts * 8, 8) : NULL;
    bool whole = node->name && (!parts || node->parts);
    if (!scene_went(scene, whole ? 0 : ebb_last_error(), 0)) {
        ebb_region_release(host, node->name);
        node->name = NULL;
        return;
    }
    node->name_bytes = it->name_bytes = name_bytes;
    node->part_count = (size_t)parts;
    it->part_count = parts;
    for (size_t i = 0; i < name_bytes; i++)
        node->name[i] = byte_of(it->seed, i);
}

void op_node(struct scene *scene) {
    int region = some_region(scene), kind = 1 + (int)below(scene, 2);
    size_t tail = below(scene, 4) ? below(scene, 30) : below(scene, 9000);
    if (region == NOBODY || !has_room(scene, 1))
        return;
    scene_dare(scene);
    struct node *node =
        ebb_object_new(scene->regions[region].handle, &node_types[kind - 1], tail);
    if (!scene_went(scene, ended(node), sealed(scene, region)))
        return;
    int thing = new_thing(scene, region, kind, node);
    struct thing *it = &scene->things[thing];
    node->tail = (unsigned char *)(node + 1);
    node->tail_bytes = it->tail_bytes = tail;
    it->seed = (unsigned)below(scene, 1u << 30);
    for (size_t i = 0; i < tail; i++)
        node->tail[i] = byte_of(it->seed + 1, i);
    if (chance(scene, 2))
        furnish(scene, it, 1 + below(scene, chance(scene, 4) ? 9000 : 60),
                (int)below(scene, SCENE_PARTS + 1));
    scene_say(scene, "node %d in %d", thing, region);
    compose(scene, thing);
}

void op_compose(struct scene *scene) {
    int thing = some_node(scene);
    if (thing == NOBODY)
        return;
    scene_say(scene, "compose %d", thing);
    compose(scene, thing);
}

/* ---- ending ---- */

void op_end(struct scene *scene) {
    int thing = some_thing(scene);
    if (thing == NOBODY)
        return;
    scene_say(scene, "end %d", thing);
    SCENE_DEMAND(scene, ebb_object_end(scene->things[thing].addr) == 0);
    end_thing(scene, thing);
}

/* What has ended is recognised. */
void op_ghost(struct scene *scene) {
    if (!scene->ghost_count)
        return;
    void *ghost = scene->ghosts[below(scene, scene->ghost_count) % SCENE_GHOSTS];
    for (int i = 0; i < SCENE_THINGS; i++)
        if (scene->things[i].live && scene->things[i].addr == ghost)
            return;
    SCENE_DEMAND(scene, ebb_object_end(ghost) != 0);
    SCENE_DEMAND(scene, !ebb_region_is_open(ebb_object_owner(ghost)));
    SCENE_DEMAND(scene, !ebb_object_move(ghost, scene->regions[0].handle));
}
