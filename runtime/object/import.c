// SPDX-License-Identifier: Apache-2.0
/*
 * import.c - tensors of a producer's bytes (see ebb/exchange.h).
 *
 *     | struct ebb_tensor | shape | strides | struct ebb_storage | struct import |   elements
 *                                               data ----------------------------> elsewhere
 *
 * Everything is read from the producer's struct once, into an offer on the stack, and checked
 * there; the producer is called when that has succeeded and nothing can fail any more. Invariant:
 * the loan of an import is set until the producer has it back, which happens once: when the
 * storage ends, or in the cleanup when the region does.
 *
 * Refuses what it cannot read rightly, and what a program could not use as it stands.
 */
#include "base/cancel.h"
#include "base/error.h"
#include "region/block.h"
#include "region/cleanup.h"
#include "object/copy.h"
#include "object/dlpack.h"
#include "object/exchange.h"

#include <string.h>

/* The producer's side of a foreign storage, which it follows. */
struct import {
    struct ebb_cleanup region_ends;
    struct loan loan;
};

/* What a producer offers. */
struct offer {
    struct loan loan;
    DLTensor tensor; /* as it was read; shape and strides are not used any more */
    uint64_t flags;
    enum ebb_exchange_mode mode;
    struct ebb_dtype dtype;
    int64_t shape[EBB_DIMENSIONS_MAX], strides[EBB_DIMENSIONS_MAX];
    size_t element;        /* bytes */
    size_t bytes;          /* of all elements, row-major */
    size_t before, behind; /* bytes that the strides reach before and behind the first one */
    char *first;           /* element; NULL: there is none */
    bool packed; /* elements of less than a byte, one behind the other */
    bool copy;
};

/* ---- giving back ---- */

void loan_return(struct loan loan) {
    DLManagedTensorVersioned *new = loan.managed;
    DLManagedTensor *old = loan.managed;
    int cancels = cancel_defer();
    if (new && loan.versioned && new->deleter)
        new->deleter(new);
    else if (old && !loan.versioned && old->deleter)
        old->deleter(old);
    cancel_restore(cancels);
}

static struct import *import_of(struct ebb_storage *storage) {
    return (struct import *)(void *)(storage + 1);
}

int import_check(const struct ebb_storage *storage) {
    const struct import *import = (const struct import *)(const void *)(storage + 1);
    if (!(storage->flags & STORAGE_FOREIGN) || import->loan.managed)
        return 0;
    return error_set(EBB_E_RELEASED, "%zu imported bytes at %p: their producer has them back",
                     storage->bytes, storage->data);
}

static struct loan take_loan(struct import *import) {
    struct loan loan = import->loan;
    import->loan.managed = NULL;
    return loan;
}

static int region_ends(void *data) {
    struct ebb_storage *storage = data;
    loan_return(take_loan(import_of(storage)));
    return 0;
}

static bool (*_Atomic known_as_counted)(struct loan loan);

void import_know_counted(bool (*is_counted)(struct loan loan)) {
    atomic_store(&known_as_counted, is_counted);
}

/* Of loans of the process that this one was forked from only those go back that are counted. */
struct loan import_end(struct ebb_storage *storage) {
    struct import *import = import_of(storage);
    bool (*is_counted)(struct loan loan) = atomic_load(&known_as_counted);
    bool is_lost = cleanup_is_lost(&import->region_ends);
    struct loan loan = take_loan(import);
    cleanup_delist(&import->region_ends);
    if (is_lost && !(is_counted && is_counted(loan)))
        loan.managed = NULL;
    return loan;
}

bool import_part(struct ebb_cleanup *cleanup) {
    if (cleanup->run != region_ends)
        return false;
    loan_return(import_end(cleanup->data));
    return true;
}

static void watch(struct ebb_storage *storage, struct region *host) {
    import_of(storage)->region_ends =
        (struct ebb_cleanup){.run = region_ends, .data = storage};
    cleanup_enlist(host, &import_of(storage)->region_ends);
}

void import_follow(struct ebb_storage *old, struct ebb_storage *fresh, struct region *host) {
    cleanup_delist(&import_of(old)->region_ends);
    watch(fresh, host);
}

bool ebb_tensor_is_read_only(const struct ebb_tensor *tensor) {
    struct object_place place;
    return tensor_find(tensor, &place) && (tensor->storage->flags & STORAGE_READ_ONLY) != 0;
}

int tensor_check_writable(const struct ebb_tensor *tensor) {
    if (!(tensor->storage->flags & STORAGE_READ_ONLY))
        return 0;
    return error_set(EBB_E_EXCHANGE, "%lld elements at %p were imported read-only",
                     (long long)ebb_tensor_count(tensor), tensor->data);
}

/* ---- checking what is offered ---- */

static int check_version(DLPackVersion version) {
    if (version.major == DLPACK_MAJOR)
        return 0;
    return error_set(EBB_E_EXCHANGE, "DLPack %u.%u is offered, %d is understood", version.major,
                     version.minor, DLPACK_MAJOR);
}

/* Newer minor versions may have flags that need not be understood. */
static int check_flags(DLPackVersion version, uint64_t flags) {
    uint64_t known = version.minor ? DLPACK_FLAGS_KNOWN : DLPACK_FLAGS_FIRST;
    if (!(flags & ~known) || version.minor > DLPACK_MINOR_KNOWN)
        return 0;
    return error_set(EBB_E_EXCHANGE, "flags %#llx: DLPack %u.%u has none above %#llx",
                     (unsigned long long)flags, version.major, version.minor,
                     (unsigned long long)known);
}

static int check_device(DLDevice device) {
    bool pinned = device.device_type == kDLCUDAHost;
    if ((device.device_type == kDLCPU && device.device_id == 0) ||
        (pinned && device.device_id >= 0))
        return 0;
    return error_set(EBB_E_EXCHANGE, "device type %d, number %d: no memory of the host",
                     (int)device.device_type, device.device_id);
}

/*
 * Here each element has bytes of its own. Elements of less than a byte that the producer has packed
 * are taken apart into a copy; vectors of them are as they are here if they fill their bytes.
 */
static int check_dtype(struct offer *offer) {
    const DLDataType type = offer->tensor.dtype;
    bool padded = (offer->flags & DLPACK_PADDED) != 0;
    offer->dtype = (struct ebb_dtype){type.code, type.bits, type.lanes};
    offer->element = ebb_dtype_bytes(offer->dtype);
    if (!offer->element)
        return EBB_E_DTYPE;
    bool whole = type.bits * type.lanes % 8 == 0;
    if (type.bits % 8 == 0 || (type.lanes == 1 ? padded : whole && !padded))
        return 0;
    offer->packed = type.lanes == 1 && type.bits < 8 && offer->mode != EBB_EXCHANGE_SHARE;
    if (offer->packed)
        return 0;
    return error_set(EBB_E_EXCHANGE, "elements of %d times %d bits may be packed", type.lanes,
                     type.bits);
}

/* Copies shape and strides; dimensions that are not counted through have row-major strides. */
static int read_shape(struct offer *offer) {
    const DLTensor *tensor = &offer->tensor;
    size_t count = tensor->ndim > 0 && tensor->ndim <= EBB_DIMENSIONS_MAX ? (size_t)tensor->ndim
                                                                          : 0;
    if (tensor->shape)
        memcpy(offer->shape, tensor->shape, count * sizeof *offer->shape);
    if (!tensor_measure(offer->dtype, tensor->ndim, tensor->shape ? offer->shape : NULL,
                        &offer->bytes))
        return error_latest();
    int64_t stride = 1;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        bool counts = tensor->strides && offer->shape[i] > 1 && offer->bytes;
        offer->strides[i] = counts ? tensor->strides[i] : stride;
        stride *= offer->bytes ? offer->shape[i] : 1;
    }
    return 0;
}

/* Elements that share bytes must lie row-major. */
static int check_packed(const struct offer *offer) {
    int64_t stride = 1;
    for (int i = offer->tensor.ndim - 1; offer->packed && offer->bytes && i >= 0; i--) {
        if (offer->strides[i] != stride && offer->shape[i] > 1)
            return error_set(EBB_E_EXCHANGE, "packed elements of %d bits, stride %lld of dimension "
                             "%d is not %lld", offer->dtype.bits, (long long)offer->strides[i], i,
                             (long long)stride);
        stride *= offer->shape[i];
    }
    return 0;
}

/* How far the elements reach from the first one, to both sides. */
static int measure_reach(struct offer *offer) {
    int64_t reach[2] = {0, 1}, step; /* before the first element, from its start to behind all */
    bool fits = true;
    for (int i = 0; i < offer->tensor.ndim && offer->bytes; i++) {
        int64_t stride = offer->strides[i], steps = offer->shape[i] - 1;
        bool back = stride < 0;
        fits = fits && stride != INT64_MIN &&
               !__builtin_mul_overflow(steps, back ? -stride : stride, &step) &&
               !__builtin_add_overflow(reach[!back], step, &reach[!back]);
    }
    if (fits && size_multiply((size_t)reach[0], offer->element, &offer->before) &&
        size_multiply((size_t)reach[1], offer->element, &offer->behind))
        return 0;
    return error_set(EBB_E_SIZE, "strides of %d dimensions overflow with %zu bytes an element",
                     offer->tensor.ndim, offer->element);
}

/* No object of a program is larger than PTRDIFF_MAX bytes, so no offset into one is. */
static int find_first(struct offer *offer) {
    uintptr_t data = (uintptr_t)offer->tensor.data, first, end;
    uint64_t offset = offer->tensor.byte_offset;
    if (!offer->bytes)
        return 0;
    if (!data)
        return error_set(EBB_E_EXCHANGE, "%zu bytes of elements at NULL", offer->bytes);
    if (offset > PTRDIFF_MAX || __builtin_add_overflow(data, offset, &first) ||
        __builtin_add_overflow(first, offer->behind, &end) || first < offer->before)
        return error_set(EBB_E_SIZE, "%zu bytes before and %zu behind %p + %llu overflow",
                         offer->before, offer->behind, offer->tensor.data,
                         (unsigned long long)offset);
    offer->first = (char *)first;
    return 0;
}

/* Each number of it for itself: complex ones have two, and there are as many as lanes. */
size_t exchange_align(struct ebb_dtype dtype) {
    size_t bytes = ((size_t)dtype.bits + 7) / 8;
    if (dtype.code == EBB_COMPLEX)
        bytes /= 2;
    return size_is_power_of_two(bytes) ? bytes : 1;
}

/* Whether the elements are used where they are. */
static int choose(struct offer *offer) {
    size_t align = exchange_align(offer->dtype);
    bool aligned = (uintptr_t)offer->first % align == 0;
    offer->copy = offer->mode == EBB_EXCHANGE_COPY ||
                  (offer->bytes && (offer->packed || offer->before || !aligned));
    if (!offer->copy || offer->mode != EBB_EXCHANGE_SHARE)
        return 0;
    if (offer->before)
        return error_set(EBB_E_EXCHANGE, "negative strides reach %zu bytes before %p: needs a copy",
                         offer->before, (void *)offer->first);
    return error_set(EBB_E_EXCHANGE, "elements at %p are not aligned to %zu: need a copy",
                     (void *)offer->first, align);
}

static int check(struct offer *offer) {
    int result = check_device(offer->tensor.device);
    if (!result)
        result = check_dtype(offer);
    if (!result)
        result = read_shape(offer);
    if (!result)
        result = check_packed(offer);
    if (!result)
        result = measure_reach(offer);
    if (!result)
        result = find_first(offer);
    return result ? result : choose(offer);
}

/* ---- making ---- */

/* Dimensions with negative strides are counted through, from `dimension` on. */
static void copy_turned(const struct ebb_tensor *tensor, const struct offer *offer, int dimension,
                        char *to, const char *from) {
    int64_t shape[EBB_DIMENSIONS_MAX];
    int ndim = tensor->ndim;
    while (dimension < ndim && offer->strides[dimension] >= 0)
        dimension++;
    if (dimension < ndim) {
        int64_t bytes = (int64_t)offer->element;
        for (int64_t i = 0; i < offer->shape[dimension]; i++)
            copy_turned(tensor, offer, dimension + 1,
                        to + i * tensor->strides[dimension] * bytes,
                        from + i * offer->strides[dimension] * bytes);
        return;
    }
    for (int i = 0; i < ndim; i++)
        shape[i] = offer->strides[i] < 0 ? 1 : offer->shape[i];
    copy_elements(to, tensor->strides, from, offer->strides, shape, ndim, offer->element);
}

/* Packed elements get a byte each. */
static void take_apart(const struct offer *offer, unsigned char *to) {
    const unsigned char *from = (const unsigned char *)offer->first;
    size_t bits = offer->dtype.bits;
    for (size_t i = 0, at = 0; i < offer->bytes; i++, at += bits) {
        unsigned two = from[at / 8];
        if (at % 8 + bits > 8)
            two |= (unsigned)from[at / 8 + 1] << 8;
        to[i] = (unsigned char)(two >> at % 8 & ((1u << bits) - 1));
    }
}

/* The producer may do anything meanwhile but end the copy, or who has it. */
static struct ebb_tensor *copy_offer(struct region *host, const struct offer *offer) {
    struct ebb_tensor *tensor =
        ebb_tensor_new(region_handle(host), offer->dtype, offer->tensor.ndim, offer->shape);
    if (!tensor)
        return NULL;
    if (offer->packed)
        take_apart(offer, tensor->data);
    else
        copy_turned(tensor, offer, 0, tensor->data, offer->first);
    region_begin_work(host);
    tensor->object.state |= OBJECT_GATHERED;
    loan_return(offer->loan);
    tensor->object.state &= ~OBJECT_GATHERED;
    region_end_work(host);
    return tensor;
}

static struct ebb_tensor *share_offer(struct region *host, const struct offer *offer,
                                      const void *site) {
    int ndim = offer->tensor.ndim;
    size_t numbers = (size_t)ndim * sizeof(int64_t), head = tensor_head_bytes(ndim);
    size_t bytes = head + sizeof(struct ebb_storage) + sizeof(struct import);
    struct ebb_tensor *tensor = block_allocate_private(host, bytes, EBB_GRANULE, site);
    if (!tensor)
        return NULL;
    tensor_begin(host, tensor, offer->dtype, ndim);
    memcpy(tensor->shape, offer->shape, numbers);
    memcpy(tensor->strides, offer->strides, numbers);
    tensor->data = offer->first;
    tensor->storage = tensor_own_storage(tensor);
    *tensor->storage = (struct ebb_storage){.data = offer->first,
                                            .bytes = offer->bytes ? offer->behind : 0,
                                            .tensors = 1,
                                            .block = tensor,
                                            .flags = STORAGE_FOREIGN};
    if (offer->flags & DLPACK_READ_ONLY)
        tensor->storage->flags |= STORAGE_READ_ONLY;
    *import_of(tensor->storage) = (struct import){.loan = offer->loan};
    watch(tensor->storage, host);
    return tensor;
}

static struct ebb_tensor *import(ebb_region handle, struct offer *offer, const void *site) {
    struct region *host = object_host_for(handle);
    if (!host || exchange_check_mode(offer->mode) != 0 || check(offer) != 0)
        return NULL;
    return offer->copy ? copy_offer(host, offer) : share_offer(host, offer, site);
}

static struct ebb_tensor *refuse_nothing(void) {
    error_set(EBB_E_EXCHANGE, "import of a NULL struct");
    return NULL;
}

struct ebb_tensor *ebb_tensor_import(ebb_region region, DLManagedTensor *managed,
                                     enum ebb_exchange_mode mode) {
    if (!managed)
        return refuse_nothing();
    struct offer offer = {
        .loan = {managed, false}, .tensor = managed->dl_tensor, .mode = mode};
    return import(region, &offer, __builtin_return_address(0));
}

struct ebb_tensor *ebb_tensor_import_versioned(ebb_region region,
                                               DLManagedTensorVersioned *managed,
                                               enum ebb_exchange_mode mode) {
    if (!managed)
        return refuse_nothing();
    DLPackVersion version = managed->version;
    if (check_version(version) != 0)
        return NULL;
    struct offer offer = {.loan = {managed, true},
                          .tensor = managed->dl_tensor,
                          .flags = managed->flags,
                          .mode = mode};
    if (check_flags(version, offer.flags) != 0)
        return NULL;
    return import(region, &offer, __builtin_return_address(0));
}
