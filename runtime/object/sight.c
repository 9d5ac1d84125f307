// SPDX-License-Identifier: Apache-2.0
/*
 * sight.c - views: tensors that see the storage of another tensor.
 *
 *     | head | shape | strides | cleanup |      one block
 *
 * A view that lies below the region of its storage has that cleanup in its region's list, so that
 * closing its region, which looks at no object, still leaves the storage. One in the storage's own
 * region has no need of it: both end at once. A rewind above ends the views below of storages that
 * go with it.
 *
 * Invariant: all elements of a view lie in its storage, whose region is the view's or above it.
 */
#include "base/error.h"
#include "region/block.h"
#include "region/cleanup.h"
#include "object/adopt.h"
#include "object/dtype.h"

#include <string.h>

/* ---- making ---- */

/* Elements from the first to the last one of a shape, both included, 0 if there are none; false
 * with an error. Strides are never negative: consumers look at them even where nothing is. */
static bool reach(int ndim, const int64_t *shape, const int64_t *strides, int64_t *elements) {
    int64_t count = 1, step;
    bool empty = shape_is_empty(ndim, shape);
    if (ndim && !strides) {
        error_set(EBB_E_SHAPE, "%d dimensions, no strides", ndim);
        return false;
    }
    for (int i = 0; i < ndim; i++) {
        if (strides[i] < 0 ||
            (!empty && (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) ||
                        __builtin_add_overflow(count, step, &count)))) {
            error_set(EBB_E_SHAPE, "dimension %d: size %lld, stride %lld", i,
                      (long long)shape[i], (long long)strides[i]);
            return false;
        }
    }
    *elements = empty ? 0 : count;
    return true;
}

/* True if every element of the view lies in the storage; its first byte goes to *at. */
static bool lies_inside(const struct ebb_tensor *base, int ndim, const int64_t *shape,
                        const int64_t *strides, int64_t offset, char **at) {
    const struct ebb_storage *storage = base->storage;
    int64_t bytes = (int64_t)dtype_bytes(base->dtype), elements, end;
    int64_t before = (char *)base->data - (char *)storage->data, start;
    if (!reach(ndim, shape, strides, &elements))
        return false;
    if (__builtin_mul_overflow(offset, bytes, &start) ||
        __builtin_add_overflow(start, before, &start) || start < 0 ||
        __builtin_mul_overflow(elements, bytes, &end) ||
        __builtin_add_overflow(end, start, &end) || end > (int64_t)storage->bytes) {
        error_set(EBB_E_SHAPE, "a view of %lld elements at offset %lld leaves its %zu bytes",
                  (long long)elements, (long long)offset, storage->bytes);
        return false;
    }
    *at = start ? (char *)storage->data + start : storage->data; /* which NULL may be */
    return true;
}

/* What a view of a region below its storage has behind its strides. */
static struct ebb_cleanup *view_cleanup(struct ebb_tensor *tensor) {
    return (struct ebb_cleanup *)(void *)(tensor->strides + tensor->ndim);
}

bool tensor_is_visible(const struct ebb_tensor *base, const struct region *region) {
    struct region *host = storage_host(base->storage);
    if (region == host || region_is_above(host, region))
        return true;
    error_set(EBB_E_NOT_ANCESTOR, "a view in region '%s' of a storage in '%s', not above it",
              region->name, host->name);
    return false;
}

struct ebb_tensor *tensor_see(struct region *region, const struct ebb_tensor *base,
                              const struct ebb_tensor *form) {
    size_t arrays = sizeof(int64_t) * (size_t)form->ndim;
    struct ebb_tensor *view =
        block_for_object(region, tensor_head_bytes(form->ndim) + sizeof(struct ebb_cleanup),
                         EBB_GRANULE, __builtin_return_address(0));
    if (!view)
        return NULL;
    tensor_begin(region, view, form->dtype, form->ndim);
    if (arrays) {
        memcpy(view->shape, form->shape, arrays);
        memcpy(view->strides, form->strides, arrays);
    }
    view->data = form->data;
    view->storage = base->storage;
    storage_enter(view->storage);
    *view_cleanup(view) = (struct ebb_cleanup){.list = NULL};
    if (region != storage_host(base->storage))
        tensor_watch_storage(region, view);
    return view;
}

struct ebb_tensor *ebb_tensor_view(ebb_region handle, const struct ebb_tensor *base, int ndim,
                                   const int64_t *shape, const int64_t *strides, int64_t offset) {
    struct region *region = object_host_for(handle);
    struct object_place place;
    size_t bytes;
    char *at;
    if (!region || !tensor_find(base, &place) ||
        !tensor_measure(base->dtype, ndim, shape, &bytes) ||
        !lies_inside(base, ndim, shape, strides, offset, &at) ||
        !tensor_is_visible(base, region))
        return NULL;
    const struct ebb_tensor form = {.data = at,
                                    .dtype = base->dtype,
                                    .ndim = ndim,
                                    .shape = (int64_t *)shape,
                                    .strides = (int64_t *)strides};
    return tensor_see(region, base, &form);
}

/* ---- taking over ---- */

struct ebb_tensor *ebb_tensor_take(struct ebb_tensor *tensor) {
    struct object_place place;
    if (!tensor_find(tensor, &place) || object_check_free(tensor, &place) != 0)
        return NULL;
    size_t head = tensor_head_bytes(tensor->ndim);
    struct ebb_tensor *taker =
        block_allocate_private(place.host, head + sizeof(struct ebb_cleanup), EBB_GRANULE,
                               __builtin_return_address(0));
    if (!taker)
        return NULL;
    memcpy(taker, tensor, head);
    tensor_place_arrays(taker);
    taker->object.state &= ~OBJECT_ALONE; /* its storage is in the other's block */
    object_replace(&tensor->object, &taker->object);
    *view_cleanup(taker) = (struct ebb_cleanup){.list = NULL};
    if (tensor_has_storage(tensor))
        return taker;
    if (view_cleanup(tensor)->list)
        tensor_watch_storage(place.host, taker);
    tensor_unwatch_storage(tensor);
    object_release(tensor);
    return taker;
}

void tensor_mend_view(struct ebb_tensor *view) {
    tensor_place_arrays(view);
    *view_cleanup(view) = (struct ebb_cleanup){.list = NULL};
}

/* ---- when the storage's region, or the view's, goes ---- */

static int leave_storage(void *data) {
    struct ebb_tensor *tensor = data;
    return ebb_object_end(tensor);
}

void tensor_watch_storage(struct region *host, struct ebb_tensor *view) {
    struct ebb_cleanup *cleanup = view_cleanup(view);
    *cleanup = (struct ebb_cleanup){.run = leave_storage, .data = view};
    cleanup_enlist(host, cleanup);
}

void tensor_unwatch_storage(struct ebb_tensor *view) {
    cleanup_delist(view_cleanup(view));
}

struct region *tensor_tied_to(const struct ebb_cleanup *cleanup) {
    const struct ebb_tensor *view = cleanup->data;
    return cleanup->run == leave_storage ? storage_host(view->storage) : NULL;
}

/* The view of a storage of `region` that goes, if the cleanup is one's; or NULL. */
static struct ebb_tensor *find_blinded(const struct ebb_cleanup *cleanup,
                                       const struct region *region, uint64_t serial) {
    struct ebb_tensor *view = cleanup->run == leave_storage ? cleanup->data : NULL;
    const struct ebb_object *base = view ? view->storage->block : NULL;
    return base && base->serial >= serial && object_host(base) == region ? view : NULL;
}

/* True if the view is the last one of a producer's bytes: what cleanups are there then, he says. */
static bool ends_a_loan(const struct ebb_tensor *view) {
    const struct ebb_storage *storage = view->storage;
    return storage->flags & STORAGE_FOREIGN && storage->tensors == 1;
}

/* Ends such a one in the course of a walk over what is below, which the producer must not end. */
static void end_with_loan(struct region *below, struct ebb_tensor *view) {
    region_begin_work(below);
    ebb_object_end(view);
    region_end_work(below);
}

/* What follows a cleanup of the view and does not go with that. */
static struct ebb_cleanup *next_of_others(const struct ebb_cleanup *at,
                                          const struct ebb_tensor *view) {
    struct ebb_cleanup *next = at->next;
    while (next && adoption_has(next, &view->object))
        next = next->next;
    return next;
}

/* Ends the views of storages of `region` that go, in a region below. */
static void end_blinded(struct region *below, const struct region *region, uint64_t serial) {
    for (struct ebb_cleanup *at = below->cleanups, *next; at; at = next) {
        struct ebb_tensor *view = find_blinded(at, region, serial);
        next = view ? next_of_others(at, view) : at->next;
        if (view && ends_a_loan(view)) {
            end_with_loan(below, view);
            next = below->cleanups;
        } else if (view) {
            ebb_object_end(view);
        }
    }
}

void tensor_rewind_views(struct region *region, uint64_t serial) {
    struct region *at = region;
    while ((at = region_next_below(at, region)) != NULL)
        end_blinded(at, region, serial);
}
