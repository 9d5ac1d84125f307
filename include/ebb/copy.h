// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/copy.h - elements go from tensor to tensor, change their dtype, or become one value.
 *
 * Nothing is broadcast, rounded or cut off: shapes and dtypes must agree, and a number that the
 * dtype does not hold exactly is an error. All checks come before the first byte is written. A
 * tensor whose own elements share memory, such as an expanded one, is no destination.
 *
 * Early release: a storage is released when the last tensor that sees it ends (ebb_object_end()),
 * and only then, since no tensor may be left without its elements. A small view of a large storage
 * keeps all of it: make it contiguous, then end the view.
 *
 * One thread at a time for the regions concerned. Arguments that are no live tensors are refused
 * as by ebb_object_end().
 */
#ifndef EBB_COPY_H
#define EBB_COPY_H

#include <ebb/tensor.h>
#include <ebb/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Copies the elements of `source` to `destination`, which has the same shape and dtype; strides
 * of both may be any. Where both are dense, one memcpy(). A tensor copied to the same elements
 * stays as it is. Errors: EBB_E_DTYPE, EBB_E_SHAPE (with the dimension and both sizes),
 * EBB_E_OVERLAP (elements of the two share memory, or those of the destination do),
 * EBB_E_EXCHANGE (the destination was imported read-only).
 */
EBB_API int ebb_tensor_copy(struct ebb_tensor *destination, const struct ebb_tensor *source);

/*
 * A copy in a storage of its own in `region`, row-major; always a copy. Valid until:
 * ebb_object_end(), the end of its owner. NULL on failure, as ebb_tensor_new().
 */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_contiguous(ebb_region region,
                                                               const struct ebb_tensor *tensor);

/* A tensor of the same shape and dtype, row-major, contents undefined; as ebb_tensor_new(). */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_like(ebb_region region,
                                                         const struct ebb_tensor *tensor);

/*
 * Sets all elements to the value. Errors: EBB_E_VALUE (the dtype does not hold it exactly, with
 * both), EBB_E_DTYPE (not one of bool, int and uint of 1 to 8, 16, 32, 64 bits, float16, bfloat16,
 * float32, float64, complex64, complex128, or elements above 256 bytes; of several lanes each gets
 * the value), EBB_E_ARGUMENT (no kind of value), EBB_E_OVERLAP (the tensor's elements share
 * memory), EBB_E_EXCHANGE (it was imported read-only).
 */
EBB_API int ebb_tensor_fill(struct ebb_tensor *tensor, struct ebb_value value);

/*
 * A row-major copy in `region` with the same numbers in another dtype. Each must be held exactly,
 * as ebb/value.h says: EBB_E_VALUE names the first one that is not, by its row-major place and
 * lane, and nothing was made. Those of a dimension with a stride of 0 are looked at once before
 * that is known, however many there are. Valid until: ebb_object_end(), the end of its owner. NULL
 * on failure: EBB_E_VALUE, EBB_E_DTYPE (as for ebb_tensor_fill(), unless both dtypes are the same;
 * or their lanes differ), and as ebb_tensor_new().
 */
EBB_API EBB_NODISCARD struct ebb_tensor *ebb_tensor_convert(ebb_region region,
                                                            const struct ebb_tensor *tensor,
                                                            struct ebb_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
