// SPDX-License-Identifier: Apache-2.0
/*
 * alias.c - results in the memory of existing tensors (see ebb/alias.h).
 *
 * Invariant: an alias lies within the bytes of the tensor that it was made from, not merely within
 * its storage. Refuses storages that others see, unless the caller vouches for them, and those that
 * were imported read-only.
 */
#include "base/error.h"
#include "object/exchange.h"

#include <ebb/alias.h>

/* Numbers are aligned to their size; what is odd, or of many lanes, to a byte. */
static size_t alignment_of(struct ebb_dtype dtype) {
    size_t bytes = ebb_dtype_bytes(dtype), align = 1;
    if (dtype.code == EBB_COMPLEX && bytes > 1)
        bytes /= 2;
    while (align < 16 && bytes % (2 * align) == 0)
        align *= 2;
    return align;
}

/* Whether a result of so many bytes can lie where `existing` does: 0 or why not. */
static int check_place(const struct ebb_tensor *existing, struct ebb_dtype dtype, size_t bytes,
                       bool shared) {
    struct ebb_storage *storage = existing->storage;
    bool exported = storage_is_exported(storage);
    size_t align = alignment_of(dtype);
    int result = tensor_check_writable(existing);
    if (result)
        return result;
    if (!shared && (storage->tensors > 1 || exported))
        return error_set(EBB_E_OVERLAP, "%llu tensors%s see the storage of %zu bytes",
                         (unsigned long long)storage->tensors,
                         exported ? " and exports" : "", storage->bytes);
    if (!ebb_tensor_is_contiguous(existing))
        return error_set(EBB_E_VIEW, "a result of %zu bytes in a tensor that is not contiguous",
                         bytes);
    if (bytes > ebb_tensor_bytes(existing))
        return error_set(EBB_E_NO_ROOM, "a result of %zu bytes in a tensor of %zu", bytes,
                         ebb_tensor_bytes(existing));
    if ((uintptr_t)existing->data % align)
        return error_set(EBB_E_VIEW, "elements at %p, no multiple of %zu bytes", existing->data,
                         align);
    return 0;
}

static void stride_row_major(int ndim, const int64_t *shape, int64_t *strides) {
    int64_t stride = 1, next;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        if (shape[i] && !__builtin_mul_overflow(stride, shape[i], &next))
            stride = next;
    }
}

static int find_reason(const struct region *region, const struct ebb_tensor *existing,
                       struct ebb_dtype dtype, size_t bytes, bool shared) {
    if (!tensor_is_visible(existing, region))
        return EBB_E_NOT_ANCESTOR;
    return check_place(existing, dtype, bytes, shared);
}

static struct ebb_tensor *see(struct region *region, const struct ebb_tensor *existing,
                              struct ebb_dtype dtype, int ndim, const int64_t *shape) {
    int64_t strides[EBB_DIMENSIONS_MAX];
    stride_row_major(ndim, shape, strides);
    const struct ebb_tensor form = {.data = existing->data,
                                    .dtype = dtype,
                                    .ndim = ndim,
                                    .shape = (int64_t *)shape,
                                    .strides = strides};
    return tensor_see(region, existing, &form);
}

struct ebb_tensor *ebb_tensor_alias(ebb_region handle, const struct ebb_tensor *existing,
                                    struct ebb_dtype dtype, int ndim, const int64_t *shape,
                                    struct ebb_alias *alias) {
    struct region *region = object_host_for(handle);
    struct object_place place;
    size_t bytes;
    if (!region || !tensor_find_readable(existing, &place) ||
        !tensor_measure(dtype, ndim, shape, &bytes))
        return NULL;
    if (alias && alias->size != sizeof *alias) {
        error_set(EBB_E_ARGUMENT, "a struct ebb_alias of %zu bytes, not %zu", alias->size,
                  sizeof *alias);
        return NULL;
    }
    bool fall_back = alias && alias->fall_back;
    if (fall_back)
        error_mute();
    int reason = find_reason(region, existing, dtype, bytes, alias && alias->shared);
    if (fall_back)
        error_unmute();
    if (reason && !fall_back)
        return NULL;
    struct ebb_tensor *result = reason ? ebb_tensor_new(handle, dtype, ndim, shape)
                                       : see(region, existing, dtype, ndim, shape);
    if (result && alias)
        alias->reason = reason;
    return result;
}
