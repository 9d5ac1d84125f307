// SPDX-License-Identifier: Apache-2.0
/*
 * gather.c - one walk over everything that objects consist of (see gather.h).
 *
 * Composites are trees: a member names its whole, which is checked at each step, so a struct that
 * was changed behind ebb's back is refused and the walk ends. Invariant: an object or storage is
 * marked exactly while it is in a chain.
 */
#include "object/gather.h"
#include "base/error.h"

/* ---- storages ---- */

bool gather_has_base(const struct ebb_storage *storage) {
    const struct ebb_object *base = storage->block;
    return (base->state & OBJECT_GATHERED) != 0;
}

static int add_storage(struct gathering *gathering, struct ebb_tensor *tensor) {
    struct ebb_storage *storage = tensor->storage;
    struct region *host = storage_host(storage), *target = gathering->target;
    if (host == gathering->host) {
        bool is_new = !storage->gathered, is_own = tensor_has_storage(tensor);
        if (is_new && !is_own && gather_has_base(storage))
            return object_check_staying(storage->block); /* else its base was gathered with it */
        storage->gathered++;
        if (is_new) {
            storage->forward = gathering->storages;
            gathering->storages = storage;
        }
        return 0;
    }
    if (!gathering->anywhere && (host == target || region_is_above(host, target)))
        return 0;
    return error_set(EBB_E_NOT_OWNED, "tensor %p sees a storage of region '%s', which stays",
                     (void *)tensor, host->name);
}

/* ---- objects ---- */

static int add_member(struct gathering *gathering, struct ebb_object *whole, void *address) {
    struct object_place place;
    if (!address)
        return 0;
    int result = object_find(address, &place);
    if (result)
        return result;
    if (!member_names(place.object, whole) || place.host != gathering->host)
        return error_set(EBB_E_NOT_OWNED, "%s %p is in a field of %s %p, but was not composed",
                         place.object->type->name, address, whole->type->name, (void *)whole);
    return place.object->state & OBJECT_GATHERED ? 0 : gather_add(gathering, place.object);
}

static int add_members(struct gathering *gathering, struct ebb_object *whole, void **members,
                       size_t count) {
    int result = 0;
    for (size_t i = 0; !result && i < count; i++)
        result = add_member(gathering, whole, members[i]);
    return result;
}

static int add_field(struct gathering *gathering, struct ebb_object *object,
                     const struct ebb_field *field) {
    void *pointer = *field_place(object, field);
    if (!pointer)
        return 0;
    if (field->kind == EBB_FIELD_OBJECT)
        return add_member(gathering, object, pointer);
    int result = compose_check_block(object, gathering->host, field);
    gathering->blocks++;
    if (result || field->kind == EBB_FIELD_BYTES)
        return result;
    return add_members(gathering, object, pointer, field_count(object, field));
}

int gather_add(struct gathering *gathering, struct ebb_object *object) {
    int result = 0;
    object->state |= OBJECT_GATHERED;
    object->forward = NULL;
    if (gathering->last)
        gathering->last->forward = object;
    else
        gathering->first = object;
    gathering->last = object;
    gathering->blocks++;
    if (object_is_tensor(object))
        return add_storage(gathering, tensor_of(object));
    if (gathering->depth > EBB_DEPTH_MAX) /* what was lost was found again further down */
        return error_set(EBB_E_DEPTH, "%s %p: objects nested more than %d deep",
                         object->type->name, (const void *)object, EBB_DEPTH_MAX);
    gathering->depth++;
    for (size_t i = 0; !result && i < object->type->field_count; i++)
        result = add_field(gathering, object, &object->type->fields[i]);
    gathering->depth--;
    return result;
}

void gather_forget(struct gathering *gathering) {
    for (struct ebb_object *object = gathering->first, *next; object; object = next) {
        next = object->forward;
        object->forward = NULL;
        object->state &= ~OBJECT_GATHERED;
    }
    for (struct ebb_storage *storage = gathering->storages, *next; storage; storage = next) {
        next = storage->forward;
        storage->forward = NULL;
        storage->gathered = 0;
    }
    gathering->first = gathering->last = NULL;
    gathering->storages = NULL;
}
