// SPDX-License-Identifier: Apache-2.0
/*
 * export.c - tensors are handed on as DLPack structs (see ebb/exchange.h).
 *
 * Each export is one block of the C library, since it outlives every region and may be freed by
 * any thread: the hold on its bytes, the struct that the consumer sees, shape and strides.
 *
 *     | hold | storage, neighbours | DLManagedTensor... | shape | strides |
 *
 * Invariant: an export that shares bytes is in the list of its storage, and one of those that
 * see it, from its beginning until it ends or the region does. A copy is a block of its own that
 * nobody else knows. Refuses what some consumers misread: those checks are here and nowhere else.
 */
#include "base/error.h"
#include "base/os.h"
#include "region/block.h"
#include "object/copy.h"
#include "object/dlpack.h"
#include "object/exchange.h"
#include "region/hold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ebb_export {
    struct hold hold;
    struct ebb_storage *storage; /* of which it is a viewer; NULL: a copy, or nothing */
    struct ebb_export *next, *prev; /* others of the storage */
    uint64_t count; /* of the first one: how many there are */
    union {
        DLManagedTensor plain;
        DLManagedTensorVersioned versioned;
    };
    int64_t numbers[]; /* shape, strides */
};

static_assert(offsetof(struct ebb_export, hold) == 0, "a hold is found in its export");

/* What is to be exported. */
struct request {
    const struct ebb_tensor *tensor;
    struct region *host; /* of the tensor */
    size_t bytes;        /* of its elements */
    bool copy;
    const void *site;
};

/* ---- ending ---- */

static void leave_list(struct ebb_export *export) {
    struct ebb_storage *storage = export->storage;
    uint64_t count = storage->exports->count - 1;
    if (export->prev)
        export->prev->next = export->next;
    else
        storage->exports = export->next;
    if (export->next)
        export->next->prev = export->prev;
    if (storage->exports)
        storage->exports->count = count;
    hold_pin(&export->hold, storage->exports != NULL);
    storage_leave(storage);
}

/* Whatever ended first, storage or consumer: only while its block lives it is the region's. */
static void end(struct hold *hold) {
    struct ebb_export *export = (struct ebb_export *)(void *)hold;
    if (hold->block && export->storage) {
        leave_list(export);
    } else if (hold->block) {
        hold_pin(hold, false);
        object_release(hold->start);
    }
    free(export);
}

static void delete_plain(DLManagedTensor *self) {
    if (self)
        hold_drop(&((struct ebb_export *)self->manager_ctx)->hold);
}

static void delete_versioned(DLManagedTensorVersioned *self) {
    if (self)
        hold_drop(&((struct ebb_export *)self->manager_ctx)->hold);
}

void export_sweep(struct ebb_storage *storage) {
    struct region *host = storage_host(storage);
    for (struct ebb_export *at = storage->exports, *next; at; at = next) {
        next = at->next;
        hold_settle(host, &at->hold);
    }
}

uint64_t export_count(const struct ebb_storage *storage) {
    return storage->exports ? storage->exports->count : 0;
}

bool storage_is_exported(struct ebb_storage *storage) {
    if (storage->exports) {
        storage->tensors++; /* it stays while it is looked at */
        export_sweep(storage);
        storage->tensors--;
    }
    return storage->exports != NULL;
}

size_t ebb_region_count_exports(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region)
        return 0;
    hold_sweep(region);
    return region->hold_count;
}

/* ---- checking ---- */

/* Sizes of elements that consumers know, as a set of powers of two of bits, for each code. */
bool exchange_knows(struct ebb_dtype dtype) {
    static const unsigned known[] = {[EBB_INT] = 8 | 16 | 32 | 64, [EBB_UINT] = 8 | 16 | 32 | 64,
                                     [EBB_FLOAT] = 16 | 32 | 64,   [EBB_BFLOAT] = 16,
                                     [EBB_COMPLEX] = 64 | 128,     [EBB_BOOL] = 8};
    return dtype.code <= EBB_BOOL && dtype.lanes == 1 && size_is_power_of_two(dtype.bits) &&
           (known[dtype.code] & dtype.bits) != 0;
}

int exchange_check_dtype(struct ebb_dtype dtype) {
    if (exchange_knows(dtype))
        return 0;
    return error_set(EBB_E_EXCHANGE, "not all consumers know code %d with %d bits, %d lanes",
                     dtype.code, dtype.bits, dtype.lanes);
}

/* Why the bytes cannot be shared as they are; NULL if they can. */
static const char *obstacle(const struct ebb_tensor *tensor) {
    const struct ebb_storage *storage = tensor->storage;
    if (storage->flags & STORAGE_FOREIGN)
        return "they are imported";
    const void *block = storage_bytes_block(storage);
    if (!hold_is_possible(block))
        return "they lie in a small block";
    if (region_of_piece(range_block_at((uintptr_t)block))->safe_of)
        return "they are in no slot of their region's pool";
    if ((uintptr_t)tensor->data % EBB_STORAGE_ALIGN != 0)
        return "they start at no multiple of 256";
    return NULL;
}

int exchange_check_mode(enum ebb_exchange_mode mode) {
    if (mode == EBB_EXCHANGE_SHARE || mode == EBB_EXCHANGE_IF_NEEDED || mode == EBB_EXCHANGE_COPY)
        return 0;
    return error_set(EBB_E_ARGUMENT, "exchange mode %d is none", (int)mode);
}

static int check_bytes(const struct ebb_tensor *tensor, enum ebb_exchange_mode mode, bool *copy) {
    const char *reason = obstacle(tensor);
    if (reason && mode == EBB_EXCHANGE_SHARE)
        return error_set(EBB_E_EXCHANGE, "the %zu bytes at %p of tensor %p need a copy: %s",
                         ebb_tensor_bytes(tensor), tensor->data, (const void *)tensor, reason);
    *copy = reason || mode == EBB_EXCHANGE_COPY;
    return 0;
}

/* Looks at everything that can be said before anything is acquired. */
static int check(struct request *request, enum ebb_exchange_mode mode) {
    struct object_place place;
    int result = exchange_check_mode(mode);
    if (result)
        return result;
    const struct ebb_tensor *tensor = tensor_find_readable(request->tensor, &place);
    if (!tensor)
        return error_latest();
    if (exchange_check_dtype(tensor->dtype) != 0)
        return EBB_E_EXCHANGE;
    if (place.host->ending || storage_host(tensor->storage)->ending)
        return error_set(EBB_E_BUSY, "tensor %p: its region is being rewound",
                         (const void *)tensor);
    request->host = place.host;
    request->bytes = ebb_tensor_bytes(tensor);
    return request->bytes ? check_bytes(tensor, mode, &request->copy) : 0;
}

/* ---- beginning ---- */

/* A new export that says what the tensor is, but not yet where; NULL with an error. */
static struct ebb_export *make(const struct ebb_tensor *tensor) {
    size_t count = (size_t)tensor->ndim, bytes = 2 * count * sizeof(int64_t);
    struct ebb_export *export = NULL;
    if (os.allow(OS_EXPORT))
        export = malloc(sizeof *export + bytes);
    if (!export) {
        error_set(EBB_E_MEMORY, "no memory for an export of %zu bytes", sizeof *export + bytes);
        return NULL;
    }
    memset(export, 0, sizeof *export);
    memcpy(export->numbers, tensor->shape, count * sizeof(int64_t));
    memcpy(export->numbers + count, tensor->strides, count * sizeof(int64_t));
    export->hold.end = end;
    return export;
}

/* Strides of row-major elements, as they lie in a copy. */
static void be_row_major(struct ebb_export *export, int ndim) {
    int64_t *shape = export->numbers, *strides = shape + ndim, stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape[i];
    }
}

static void *begin_copy(struct ebb_export *export, const struct request *request) {
    const struct ebb_tensor *tensor = request->tensor;
    size_t element = ebb_dtype_bytes(tensor->dtype);
    void *copy = block_allocate(request->host, request->bytes, EBB_STORAGE_ALIGN, request->site);
    if (!copy)
        return NULL;
    copy_elements(copy, NULL, tensor->data, tensor->strides, tensor->shape, tensor->ndim, element);
    be_row_major(export, tensor->ndim);
    hold_begin(&export->hold, request->host, copy, (uintptr_t)copy, request->bytes);
    return copy;
}

/* Bytes from the first element to behind the last one. */
static size_t extent(const struct ebb_tensor *tensor) {
    int64_t last = 0;
    for (int32_t i = 0; i < tensor->ndim; i++)
        last += (tensor->shape[i] - 1) * tensor->strides[i];
    return (size_t)(last + 1) * ebb_dtype_bytes(tensor->dtype);
}

static void *begin_shared(struct ebb_export *export, const struct ebb_tensor *tensor) {
    struct ebb_storage *storage = tensor->storage;
    hold_begin(&export->hold, storage_host(storage), storage_bytes_block(storage),
               (uintptr_t)tensor->data,
               extent(tensor));
    export->storage = storage;
    export->count = export_count(storage) + 1;
    export->next = storage->exports;
    if (export->next)
        export->next->prev = export;
    storage->exports = export;
    storage_enter(storage);
    return tensor->data;
}

static struct ebb_export *begin(struct request *request, enum ebb_exchange_mode mode,
                                DLTensor *described) {
    if (check(request, mode) != 0)
        return NULL;
    const struct ebb_tensor *tensor = request->tensor;
    struct ebb_export *export = make(tensor);
    if (!export)
        return NULL;
    void *data = NULL;
    if (!request->bytes)
        hold_begin_empty(&export->hold);
    else if (!request->copy)
        data = begin_shared(export, tensor);
    else if (!(data = begin_copy(export, request))) {
        free(export);
        return NULL;
    }
    *described = (DLTensor){.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = tensor->ndim,
                            .dtype = {tensor->dtype.code, tensor->dtype.bits, 1},
                            .shape = export->numbers,
                            .strides = export->numbers + tensor->ndim};
    return export;
}

DLManagedTensor *ebb_tensor_export(const struct ebb_tensor *tensor, enum ebb_exchange_mode mode) {
    struct request request = {.tensor = tensor, .site = __builtin_return_address(0)};
    DLTensor described;
    struct ebb_export *export = begin(&request, mode, &described);
    if (!export)
        return NULL;
    export->plain = (DLManagedTensor){described, export, delete_plain};
    return &export->plain;
}

DLManagedTensorVersioned *ebb_tensor_export_versioned(const struct ebb_tensor *tensor,
                                                      enum ebb_exchange_mode mode) {
    struct request request = {.tensor = tensor, .site = __builtin_return_address(0)};
    DLTensor described;
    struct ebb_export *export = begin(&request, mode, &described);
    if (!export)
        return NULL;
    export->versioned = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR, DLPACK_MINOR_WRITTEN},
                                                   .manager_ctx = export,
                                                   .deleter = delete_versioned,
                                                   .flags = request.copy ? DLPACK_COPIED : 0,
                                                   .dl_tensor = described};
    return &export->versioned;
}
