// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/tensor.h - tensors: shaped views of bytes in a region.
 *
 * A tensor is an object (ebb/object.h). Its elements lie in a *storage*, which any number of
 * tensors share: views refer to the storage of the tensor they were made from. A tensor with its
 * storage is one block, so it is made by one bump if it is small, and goes to another region with
 * the pages under it, at the same address, if it is large:
 *
 *     | struct ebb_tensor | shape | strides | struct ebb_storage | elements ... |
 *                                                 ^     ^
 *     | struct ebb_tensor | shape | strides |     view  |
 *     | struct ebb_tensor | shape | strides |           view, of a region below
 *
 * Field names and the meaning of dtype, shape and strides are DLPack's. Strides count elements and
 * are never negative here. A tensor without dimensions is a scalar with one element; one with a
 * dimension of 0 has none. Elements start at multiples of EBB_TENSOR_ALIGN, those of tensors above
 * EBB_SMALL_MAX_BYTES at multiples of EBB_STORAGE_ALIGN.
 *
 * A view may be made in the region of its storage or below it. Ending a tensor ends the storage
 * with the last tensor that sees it; ending the storage's region ends all.
 *
 * One thread at a time for the regions concerned.
 */
#ifndef EBB_TENSOR_H
#define EBB_TENSOR_H

#include <ebb/object.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EBB_DIMENSIONS_MAX 32
#define EBB_TENSOR_ALIGN 64ul   /* bytes */
#define EBB_STORAGE_ALIGN 256ul /* bytes; what DLPack asks of what is exchanged */

/* DLPack's type codes. */
enum ebb_dtype_code {
    EBB_INT = 0,
    EBB_UINT = 1,
    EBB_FLOAT = 2,
    EBB_OPAQUE = 3,
    EBB_BFLOAT = 4,
    EBB_COMPLEX = 5,
    EBB_BOOL = 6
};

/*
 * DLPack's DLDataType: an element has `lanes` times `bits`, rounded up to bytes, from the low bits
 * on. So int4 takes a byte for each, of which the upper half means nothing, int4x2 one for two.
 */
struct ebb_dtype {
    uint8_t code; /* enum ebb_dtype_code */
    uint8_t bits; /* 1 to 128 */
    uint16_t lanes; /* at least 1 */
};

/* The bytes behind one or more tensors. Read `data`, `bytes` and `tensors`; the rest is ebb's. */
struct ebb_storage {
    void *data;
    size_t bytes;
    uint64_t tensors;            /* count of live tensors that see it */
    void *block;                 /* the block that this struct lies in */
    struct ebb_storage *forward; /* while something happens to many */
    struct ebb_export *exports;  /* that were not given back (ebb/exchange.h) */
    uint32_t flags;
    uint32_t gathered;           /* while something happens to many: how many of its tensors */
};

struct ebb_tensor {
    struct ebb_object object;
    void *data;                  /* first element */
    struct ebb_storage *storage;
    struct ebb_dtype dtype;
    int32_t ndim;                /* 0 to EBB_DIMENSIONS_MAX */
    int64_t *shape;              /* [ndim], behind this struct */
    int64_t *strides;            /* [ndim], in elements, behind the shape */
};

/* The type of tensors; kind 0 of all counters. */
EBB_API extern struct ebb_type ebb_type_tensor;
#define EBB_OBJECT_TENSOR 0u

/* Bytes of one element, or 0 with EBB_E_DTYPE if the type is none. Any thread. */
EBB_API size_t ebb_dtype_bytes(struct ebb_dtype dtype);

/* True if code, bits and lanes are the same. Any thread. */
static inline bool ebb_dtype_equal(struct ebb_dtype a, struct ebb_dtype b) {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/*
 * A tensor with a storage of its own, row-major, contents undefined. `shape` has `ndim` entries
 * and is copied; it may be NULL if ndim is 0. Valid until: ebb_object_end(), the end of its
 * owner. NULL on failure: EBB_E_DTYPE, EBB_E_SHAPE (negative or too many dimensions), EBB_E_SIZE
 * (its bytes overflow), and the errors of ebb_region_alloc().
 */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_new(ebb_region region, struct ebb_dtype dtype,
                                                        int ndim, const int64_t *shape);

/* The same with all bytes zero. */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_new_zeroed(ebb_region region, struct ebb_dtype dtype, int ndim, const int64_t *shape);

/* The same with a copy of the row-major elements at `elements`; where there are none, that may be
 * NULL. Else EBB_E_ARGUMENT. */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_from(ebb_region region, struct ebb_dtype dtype,
                                                         int ndim, const int64_t *shape,
                                                         const void *elements);

/*
 * Another view of the storage of `base`, in `region`, which is that of the storage or below it:
 * `shape` and `strides` [ndim], its first element `offset` elements behind that of `base`. Every
 * element must lie in the storage. NULL on failure: EBB_E_SHAPE (strides that are NULL or negative,
 * also where there are no elements, or outside of the storage, with the numbers),
 * EBB_E_NOT_ANCESTOR, and as ebb_tensor_new(). All other views (ebb/view.h) are made with this one.
 */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_view(ebb_region region,
                                                         const struct ebb_tensor *base, int ndim,
                                                         const int64_t *shape,
                                                         const int64_t *strides, int64_t offset);

/*
 * A new tensor that takes over memory, place and owner of `tensor`, which is empty afterwards: to
 * end it again does nothing but fail. No counter moves. How a parameter takes over the tensor it
 * is made from (TorchSharp's Parameter). NULL on failure: EBB_E_MEMBER, EBB_E_BORROWED, those of
 * ebb_object_as() for what is no tensor, and those of ebb_region_alloc(), for its head is a block
 * of its own.
 */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_take(struct ebb_tensor *tensor);

/* The next three read a live tensor as it is: nothing is checked, nothing fails. */

/* Count of elements; the product of the shape. */
EBB_API int64_t ebb_tensor_count(const struct ebb_tensor *tensor);

/* Bytes of all elements. */
EBB_API size_t ebb_tensor_bytes(const struct ebb_tensor *tensor);

/* True if the elements lie row-major without gaps. */
EBB_API bool ebb_tensor_is_contiguous(const struct ebb_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
