// SPDX-License-Identifier: Apache-2.0
/*
 * check.c - the walker over the objects of a region.
 *
 * Laws: an object says truly where it lies and who owns it; the list is whole, and those that it
 * hosts are in the order of age; what is counted by kind is what is there; a member names its
 * composite and is no newer; every element of a tensor lies in its storage, which somebody sees.
 */
#include "base/check.h"
#include "object/object.h"

struct walk {
    struct region *owner;
    uint64_t live[POOL_KINDS];
};

static void check_tensor(const struct ebb_tensor *tensor) {
    const struct ebb_storage *storage = tensor->storage;
    uintptr_t first = (uintptr_t)tensor->data, data = (uintptr_t)storage->data;
    size_t bytes = ebb_dtype_bytes(tensor->dtype), last = bytes;
    CHECK_ALWAYS(bytes && tensor->ndim >= 0 && tensor->ndim <= EBB_DIMENSIONS_MAX);
    CHECK_ALWAYS(storage->tensors > 0 && first >= data && first <= data + storage->bytes);
    if (ebb_tensor_count(tensor) == 0)
        return;
    for (int32_t i = 0; i < tensor->ndim; i++)
        last += (size_t)(tensor->shape[i] - 1) * (size_t)tensor->strides[i] * bytes;
    CHECK_ALWAYS(first + last <= data + storage->bytes);
}

static bool is_alone(struct ebb_object *object) {
    const struct ebb_storage *storage = tensor_of(object)->storage;
    return object_is_tensor(object) && !object->whole && !object->adoption &&
           tensor_has_storage(tensor_of(object)) && storage->tensors == 1 && !storage->exports &&
           !storage->flags;
}

static void check_one(struct walk *walk, struct ebb_object *object) {
    struct object_place place = {.host = NULL};
    const struct ebb_object *whole = object->whole;
    const struct region *counted = whole ? member_counted_in(object, walk->owner)
                                          : object_owner(object);
    bool is_counted = counted == walk->owner; /* else it was lost for a while */
    CHECK_ALWAYS(object_peek(object, &place) && (is_counted || whole));
    CHECK_ALWAYS(!whole || (!object->adoption && place.host == object_host(whole) &&
                            object->serial <= whole->serial));
    CHECK_ALWAYS(!(object->state & OBJECT_ALONE) || is_alone(object));
    walk->live[object->type->kind] += is_counted;
    if (object_is_tensor(object))
        check_tensor(tensor_of(object));
}

/* Members of fields that were written since they were composed are not found. */
static void check_object(struct walk *walk, struct ebb_object *object) {
    CHECK_ALWAYS(!(object->state & OBJECT_GATHERED) && !object->forward);
    struct ebb_object *first = compose_chain(object);
    for (struct ebb_object *at = first; at; at = at->forward)
        check_one(walk, at);
    compose_unchain(first);
}

void object_check_all(struct region *region) {
    struct walk walk = {.owner = region};
    const struct ebb_object *last = NULL, *newer = NULL;
    for (struct ebb_object *at = region->objects; at; last = at, at = at->next) {
        CHECK_ALWAYS(at->prev == last && !at->whole);
        CHECK_ALWAYS(at->adoption || !newer || newer->serial >= at->serial);
        newer = at->adoption ? newer : at;
        if (!region->closing || !(at->state & OBJECT_GATHERED)) /* else it is ending with others */
            check_object(&walk, at);
    }
    for (uint32_t kind = 0; kind < POOL_KINDS; kind++)
        if (region->kinds >> kind & 1)
            CHECK_ALWAYS(kind_live(&region->kind_counts[kind]) >= walk.live[kind]);
}
