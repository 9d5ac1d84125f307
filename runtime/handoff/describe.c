// SPDX-License-Identifier: Apache-2.0
/*
 * describe.c - tensors of a lease, as DLPack structs that hold it (see ebb/handoff.h).
 *
 *     | lease | DLManagedTensor... | shape | strides |     one block of the C library
 *
 * A loader makes one for each tensor of a batch, so this is one block, a few checks and one atomic
 * addition. Everything is checked against what was sent before anything is acquired; the numbers
 * may come from another process, and lie where it can still write: they are read once.
 */
#include "base/error.h"
#include "base/os.h"
#include "handoff/lease.h"
#include "object/dlpack.h"
#include "object/exchange.h"

#include <stdlib.h>
#include <string.h>

struct lease_export {
    struct ebb_lease *lease;
    union {
        DLManagedTensor plain;
        DLManagedTensorVersioned versioned;
    };
    int64_t numbers[]; /* shape, strides */
};

/* ---- ending ---- */

static void end(struct lease_export *export) {
    struct ebb_lease *lease = export->lease;
    free(export);
    ebb_lease_drop(lease);
}

static void delete_plain(DLManagedTensor *self) {
    if (self)
        end(self->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *self) {
    if (self)
        end(self->manager_ctx);
}

void lease_export_end(DLManagedTensor *managed) {
    end(managed->manager_ctx);
}

bool lease_is_lent(struct loan loan) {
    const DLManagedTensorVersioned *new = loan.managed;
    const DLManagedTensor *old = loan.managed;
    if (!loan.managed)
        return false;
    return loan.versioned ? new->deleter == delete_versioned : old->deleter == delete_plain;
}

/* ---- checking ---- */

/* Where there are no elements, too: consumers that misread them look before. */
static int check_strides(int ndim, const int64_t *strides) {
    for (int i = 0; strides && i < ndim; i++)
        if (strides[i] < 0)
            return error_set(EBB_E_EXCHANGE, "stride %lld of dimension %d is negative",
                             (long long)strides[i], i);
    return 0;
}

/* Bytes from the first element to behind the last one. */
static int measure_reach(struct ebb_dtype dtype, int ndim, const int64_t *shape,
                         const int64_t *strides, size_t *reach) {
    int64_t elements = 1, step;
    bool fits = true;
    for (int i = 0; i < ndim; i++)
        fits = fits && !__builtin_mul_overflow(shape[i] - 1, strides[i], &step) &&
               !__builtin_add_overflow(elements, step, &elements);
    if (fits && size_multiply((size_t)elements, ebb_dtype_bytes(dtype), reach))
        return 0;
    return error_set(EBB_E_SIZE, "strides of %d dimensions overflow with %zu bytes an element",
                     ndim, ebb_dtype_bytes(dtype));
}

int lease_measure(struct ebb_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                  size_t *bytes) {
    if (!tensor_measure(dtype, ndim, shape, bytes))
        return error_latest();
    int result = check_strides(ndim, strides);
    return result || !*bytes || !strides ? result
                                         : measure_reach(dtype, ndim, shape, strides, bytes);
}

int lease_check_align(struct ebb_dtype dtype, size_t offset) {
    if (offset % exchange_align(dtype) == 0)
        return 0;
    return error_set(EBB_E_EXCHANGE, "elements at %zu of a slot are not aligned to %zu", offset,
                     exchange_align(dtype));
}

static void *check(const struct ebb_lease *lease, size_t offset, struct ebb_dtype dtype, int ndim,
                   const int64_t *shape, const int64_t *strides) {
    size_t bytes;
    if (lease_measure(dtype, ndim, shape, strides, &bytes) != 0 ||
        exchange_check_dtype(dtype) != 0 || (bytes && lease_check_align(dtype, offset) != 0))
        return NULL;
    return ebb_lease_at(lease, offset, bytes);
}

/* ---- beginning ---- */

/* Strides of a tensor without elements may be more than a number holds: nobody goes that far. */
static void fill(int64_t *numbers, int ndim, const int64_t *shape, const int64_t *strides) {
    int64_t stride = 1, next;
    for (int i = ndim - 1; i >= 0; i--) {
        numbers[i] = shape[i];
        numbers[ndim + i] = strides ? strides[i] : stride;
        if (shape[i] && !__builtin_mul_overflow(stride, shape[i], &next))
            stride = next;
    }
}

/* The numbers as they are now, if there can be so many. */
static const int64_t *read_numbers(int64_t to[EBB_DIMENSIONS_MAX], int ndim,
                                   const int64_t *numbers) {
    if (numbers && ndim > 0 && ndim <= EBB_DIMENSIONS_MAX)
        memcpy(to, numbers, (size_t)ndim * sizeof *to);
    return numbers ? to : NULL;
}

static struct lease_export *begin(struct ebb_lease *lease, size_t offset, struct ebb_dtype dtype,
                                  int ndim, const int64_t *shape, const int64_t *strides,
                                  DLTensor *described) {
    int64_t sizes[EBB_DIMENSIONS_MAX], steps[EBB_DIMENSIONS_MAX];
    shape = read_numbers(sizes, ndim, shape);
    strides = read_numbers(steps, ndim, strides);
    void *data = lease ? check(lease, offset, dtype, ndim, shape, strides) : NULL;
    struct lease_export *export = NULL;
    if (!lease)
        error_set(EBB_E_ARGUMENT, "no lease to export from at %zu", offset);
    if (!data)
        return NULL;
    size_t bytes = sizeof *export + 2 * (size_t)ndim * sizeof(int64_t);
    if (os.allow(OS_EXPORT))
        export = malloc(bytes);
    if (!export) {
        error_set(EBB_E_MEMORY, "no memory for an export of %zu bytes", bytes);
        return NULL;
    }
    fill(export->numbers, ndim, shape, strides);
    export->lease = lease;
    ebb_lease_hold(lease);
    *described = (DLTensor){.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = ndim,
                            .dtype = {dtype.code, dtype.bits, 1},
                            .shape = export->numbers,
                            .strides = export->numbers + ndim};
    return export;
}

DLManagedTensor *ebb_lease_export(struct ebb_lease *lease, size_t offset, struct ebb_dtype dtype,
                                  int ndim, const int64_t *shape, const int64_t *strides) {
    DLTensor described;
    struct lease_export *export = begin(lease, offset, dtype, ndim, shape, strides, &described);
    if (!export)
        return NULL;
    export->plain = (DLManagedTensor){described, export, delete_plain};
    return &export->plain;
}

DLManagedTensorVersioned *ebb_lease_export_versioned(struct ebb_lease *lease, size_t offset,
                                                     struct ebb_dtype dtype, int ndim,
                                                     const int64_t *shape, const int64_t *strides) {
    DLTensor described;
    struct lease_export *export = begin(lease, offset, dtype, ndim, shape, strides, &described);
    if (!export)
        return NULL;
    export->versioned = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR, DLPACK_MINOR_WRITTEN},
                                                   .manager_ctx = export,
                                                   .deleter = delete_versioned,
                                                   .dl_tensor = described};
    return &export->versioned;
}
