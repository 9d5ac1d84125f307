// SPDX-License-Identifier: Apache-2.0
/*
 * tensor.c - tensors and the storages behind them (see ebb/tensor.h).
 *
 *     | head | shape | strides | storage | elements |      one block
 *
 * That is a tensor that has a storage. The block stays until nobody sees the storage, even if that
 * tensor has ended. Tensors that have none are views (sight.c).
 *
 * Invariant: storage->tensors is the number of live tensors that see it.
 */
#include "base/error.h"
#include "region/block.h"
#include "object/copy.h"
#include "object/dtype.h"
#include "object/exchange.h"
#include "region/small.h"

#include <assert.h>
#include <string.h>

/* So many, each below EBB_SMALL_MAX_BYTES, do not overflow; so long may a tensor with them be. */
#define SMALL_DIMENSIONS 4
#define SMALL_HEAD_BYTES ((size_t)256)

static_assert(sizeof(struct ebb_tensor) % 8 == 0, "the shape follows");
static_assert(sizeof(struct ebb_tensor) + 2 * SMALL_DIMENSIONS * sizeof(int64_t) <=
                  SMALL_HEAD_BYTES, "room for what new_small() writes");

/* ---- shapes ---- */

static bool refuse_shape(struct ebb_dtype dtype, int ndim, const int64_t *shape) {
    if (!ebb_dtype_bytes(dtype))
        return false;
    if (ndim < 0 || ndim > EBB_DIMENSIONS_MAX || (ndim && !shape)) {
        error_set(EBB_E_SHAPE, "%d dimensions%s, 0 to %d may be", ndim,
                  ndim && !shape ? " of a shape that is NULL" : "", EBB_DIMENSIONS_MAX);
        return false;
    }
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0) {
            error_set(EBB_E_SHAPE, "dimension %d is %lld", i, (long long)shape[i]);
            return false;
        }
    error_set(EBB_E_SIZE, "%d dimensions of %zu bytes an element overflow", ndim,
              ebb_dtype_bytes(dtype));
    return false;
}

/* Bytes of row-major elements of this shape; false with an error if that is none. */
static inline bool measure(struct ebb_dtype dtype, int ndim, const int64_t *shape,
                           size_t *bytes) {
    size_t total = dtype_bytes(dtype);
    int64_t signs = 0;
    bool overflow = false;
    if (!total || ndim < 0 || ndim > EBB_DIMENSIONS_MAX || (ndim && !shape))
        return refuse_shape(dtype, ndim, shape);
    for (int i = 0; i < ndim; i++) {
        signs |= shape[i];
        overflow |= __builtin_mul_overflow(total, (size_t)shape[i], &total);
    }
    if (signs < 0 || ((overflow || total > EBB_SIZE_MAX) && !shape_is_empty(ndim, shape)))
        return refuse_shape(dtype, ndim, shape);
    *bytes = overflow ? 0 : total;
    return true;
}

bool tensor_measure(struct ebb_dtype dtype, int ndim, const int64_t *shape, size_t *bytes) {
    return measure(dtype, ndim, shape, bytes);
}

int64_t ebb_tensor_count(const struct ebb_tensor *tensor) {
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] == 0)
            return 0;
    for (int32_t i = 0; i < tensor->ndim; i++)
        count *= tensor->shape[i];
    return count;
}

size_t ebb_tensor_bytes(const struct ebb_tensor *tensor) {
    return (size_t)ebb_tensor_count(tensor) * ebb_dtype_bytes(tensor->dtype);
}

bool ebb_tensor_is_contiguous(const struct ebb_tensor *tensor) {
    int64_t expected = 1;
    if (ebb_tensor_count(tensor) == 0)
        return true;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != expected)
            return false;
        expected *= tensor->shape[i];
    }
    return true;
}

/* ---- making ---- */

/* Where the elements of a tensor of its own begin in its block. */
static size_t data_offset(int ndim, size_t align) {
    return size_align(tensor_head_bytes(ndim) + sizeof(struct ebb_storage), align);
}

struct ebb_storage *tensor_own_storage(struct ebb_tensor *tensor) {
    return (struct ebb_storage *)(void *)(tensor->strides + tensor->ndim);
}

/* Strides of a tensor without elements mean nothing, and stop growing where they would wrap. */
void tensor_fill_row_major(struct ebb_tensor *tensor, const int64_t *shape) {
    int64_t stride = 1, next;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        tensor->shape[i] = shape[i];
        tensor->strides[i] = stride;
        if (shape[i] && !__builtin_mul_overflow(stride, shape[i], &next))
            stride = next;
    }
}

/* A new tensor has its own storage and elements in its block. */
static inline void begin_storage(struct ebb_tensor *tensor, struct ebb_storage *storage,
                                 void *data, size_t bytes) {
    tensor->data = data;
    tensor->storage = storage;
    *storage = (struct ebb_storage){.data = data, .bytes = bytes, .tensors = 1, .block = tensor};
}

/* Any tensor. */
static __attribute__((noinline)) struct ebb_tensor *
new_any(struct region *host, struct ebb_dtype dtype, int ndim, const int64_t *shape) {
    size_t bytes = 0, total, align = EBB_TENSOR_ALIGN;
    if (!measure(dtype, ndim, shape, &bytes))
        return NULL;
    if (host->shared)
        return tensor_new_apart(host, dtype, ndim, shape, __builtin_return_address(0));
    size_t offset = data_offset(ndim, align);
    if (bytes > EBB_SMALL_MAX_BYTES - offset) {
        align = EBB_STORAGE_ALIGN;
        offset = data_offset(ndim, align);
    }
    if (!size_add(offset, bytes, &total)) {
        error_set(EBB_E_SIZE, "a tensor of %zu bytes overflows", bytes);
        return NULL;
    }
    struct ebb_tensor *tensor = block_for_object(host, total, align, __builtin_return_address(0));
    if (!tensor)
        return NULL;
    tensor_begin(host, tensor, dtype, ndim);
    tensor->object.state = host->alone;
    tensor_fill_row_major(tensor, shape);
    begin_storage(tensor, tensor_own_storage(tensor), (char *)tensor + offset, bytes);
    return tensor;
}

/* The same in a region that may be refused. */
static __attribute__((noinline)) struct ebb_tensor *
new_in(ebb_region region, struct ebb_dtype dtype, int ndim, const int64_t *shape) {
    struct region *host = object_host_for(region);
    return host ? new_any(host, dtype, ndim, shape) : NULL;
}

/*
 * Most tensors are small, not their region's first, and get their place from the inline path: what
 * the caller says is written there as it is looked at. NULL if this one is not such; then the bytes
 * belong to nobody. That the region counts tensors says that it may have some, and has the hooks.
 */
static inline struct ebb_tensor *new_small(struct region *host, struct ebb_dtype dtype, int ndim,
                                           const int64_t *shape) {
    uintptr_t start = size_align(host->lane.cursor, EBB_TENSOR_ALIGN);
    if ((unsigned)ndim > SMALL_DIMENSIONS || !shape || !small_fits(host, start, SMALL_HEAD_BYTES))
        return NULL;
    struct ebb_tensor *tensor = (struct ebb_tensor *)start;
    int64_t *sizes = (int64_t *)(tensor + 1), *strides = sizes + ndim, *storage = strides + ndim;
    const int64_t *behind = shape + ndim;
    size_t count = 1, all = 0;
    memcpy(&tensor->dtype, &dtype, sizeof dtype);
    tensor->ndim = ndim;
    tensor->shape = sizes;
    tensor->strides = strides;
    for (int i = 1; i <= ndim; i++) {
        int64_t size = behind[-i];
        strides[-i] = size;
        storage[-i] = (int64_t)count;
        all |= (size_t)size;
        (void)__builtin_mul_overflow(count, (size_t)size, &count);
    }
    if (all >= EBB_SMALL_MAX_BYTES) /* else `count` is right, and `bytes`: below 2^60 */
        return NULL;
    uintptr_t data = size_align((uintptr_t)storage + sizeof(struct ebb_storage), EBB_TENSOR_ALIGN);
    size_t bytes = count * dtype_bytes(dtype), total = data + bytes - start;
    if (!bytes || total > EBB_SMALL_MAX_BYTES || !small_fits(host, start, total))
        return NULL;
    small_bump(host, start, total);
    tensor->object = (struct ebb_object){
        .type = &ebb_type_tensor, .state = host->alone, .serial = host->mark_serial};
    object_enlist(host, &tensor->object);
    kind_count(&host->kind_counts[EBB_OBJECT_TENSOR].created);
    begin_storage(tensor, (struct ebb_storage *)storage, (void *)data, bytes);
    return tensor;
}

struct ebb_tensor *ebb_tensor_new(ebb_region region, struct ebb_dtype dtype, int ndim,
                                  const int64_t *shape) {
    struct region *host = region_peek(region);
    if (!host || !(host->kinds >> EBB_OBJECT_TENSOR & 1))
        return new_in(region, dtype, ndim, shape);
    struct ebb_tensor *tensor = new_small(host, dtype, ndim, shape);
    return tensor ? tensor : new_any(host, dtype, ndim, shape);
}

struct ebb_tensor *tensor_compact(struct region *region, const struct ebb_tensor *view,
                                  const void *site) {
    if (region->shared && view->storage->flags & (STORAGE_APART | STORAGE_FOREIGN))
        return tensor_compact_apart(region, view, site);
    size_t bytes = ebb_tensor_bytes(view), align = EBB_TENSOR_ALIGN;
    size_t offset = data_offset(view->ndim, align);
    if (bytes > EBB_SMALL_MAX_BYTES - offset) {
        align = EBB_STORAGE_ALIGN;
        offset = data_offset(view->ndim, align);
    }
    struct ebb_tensor *fresh = block_allocate_private(region, offset + bytes, align, site);
    if (!fresh)
        return NULL;
    memcpy(fresh, view, sizeof *fresh);
    tensor_place_arrays(fresh);
    tensor_fill_row_major(fresh, view->shape);
    begin_storage(fresh, tensor_own_storage(fresh), (char *)fresh + offset, bytes);
    copy_elements(fresh->data, NULL, view->data, view->strides, view->shape, view->ndim,
                  ebb_dtype_bytes(view->dtype));
    return fresh;
}

struct ebb_tensor *ebb_tensor_new_zeroed(ebb_region region, struct ebb_dtype dtype, int ndim,
                                         const int64_t *shape) {
    struct ebb_tensor *tensor = ebb_tensor_new(region, dtype, ndim, shape);
    if (tensor)
        memset(tensor->data, 0, tensor->storage->bytes);
    return tensor;
}

struct ebb_tensor *ebb_tensor_from(ebb_region region, struct ebb_dtype dtype, int ndim,
                                   const int64_t *shape, const void *elements) {
    size_t bytes = 0;
    if (!elements && tensor_measure(dtype, ndim, shape, &bytes) && bytes) {
        error_set(EBB_E_ARGUMENT, "%zu bytes of elements at NULL", bytes);
        return NULL;
    }
    struct ebb_tensor *tensor = ebb_tensor_new(region, dtype, ndim, shape);
    if (tensor && tensor->storage->bytes)
        memcpy(tensor->data, elements, tensor->storage->bytes);
    return tensor;
}

/* ---- finding ---- */

struct ebb_tensor *tensor_refused(const struct ebb_object *object) {
    error_set(EBB_E_TYPE, "%p is of type '%s', no tensor", (const void *)object,
              object->type->name);
    return NULL;
}

struct ebb_tensor *tensor_find_readable(const struct ebb_tensor *tensor,
                                        struct object_place *place) {
    struct ebb_tensor *found = tensor_find(tensor, place);
    return found && import_check(found->storage) == 0 ? found : NULL;
}

/* ---- ending ---- */

void storage_release(struct ebb_storage *storage) {
    if (storage->flags & STORAGE_APART)
        object_release(storage->data);
    object_release(storage->block);
}

__attribute__((noinline, cold)) void storage_end(struct ebb_storage *storage) {
    struct loan loan = {.managed = NULL};
    if (storage->flags & STORAGE_FOREIGN)
        loan = import_end(storage);
    storage_release(storage);
    loan_return(loan);
}

void storage_leave(struct ebb_storage *storage) {
    if (--storage->tensors)
        return;
    if (storage->flags & (STORAGE_FOREIGN | STORAGE_APART))
        storage_end(storage);
    else
        object_release(storage->block);
}

void storage_leave_to_exports(void *block) {
    struct ebb_tensor *tensor = block; /* or what is left of one: its head leads to the storage */
    tensor->object.state = 0;
    tensor->storage->tensors = export_count(tensor->storage);
}

void tensor_finish(struct ebb_tensor *tensor) {
    struct ebb_storage *storage = tensor->storage;
    bool owns = tensor_has_storage(tensor);
    if (storage->exports && storage->tensors == export_count(storage) + 1)
        export_sweep(storage); /* the last tensor: were they given back, the storage ends now */
    if (!owns) {
        tensor_unwatch_storage(tensor);
        object_release(tensor);
    }
    storage_leave(storage);
}

/* ---- after a copy byte by byte ---- */

static void *moved_with(void *pointer, const void *old, void *fresh) {
    return (char *)fresh + ((char *)pointer - (const char *)old);
}

/* The storage has been told already where it is. */
static void mend(struct ebb_object *copy, const struct ebb_object *original) {
    struct ebb_tensor *tensor = tensor_of(copy);
    tensor_place_arrays(tensor);
    const struct ebb_storage *old = tensor->storage; /* of the original, or of both */
    tensor->storage = tensor_own_storage(tensor);
    if (tensor->storage->flags & STORAGE_APART)
        tensor->data = moved_with(tensor->data, old->data, tensor->storage->data);
    else if (!(tensor->storage->flags & STORAGE_FOREIGN))
        tensor->data = (char *)tensor->data + ((char *)copy - (const char *)original);
}

struct ebb_type ebb_type_tensor = {
    .name = "tensor", .bytes = sizeof(struct ebb_tensor), .mend = mend};
