// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/view.h - other views of a tensor's elements: no byte is copied.
 *
 * Each function makes a new tensor in `region`, which is the region of the storage or below it,
 * with ebb_tensor_view(). What is written through one view is read through all others. A view is
 * valid until ebb_object_end(), the end of its owner, or the end of the storage's region; it keeps
 * the storage, and needs not the tensor that it was made from.
 *
 * Dimensions are numbered from 0. Nothing counts from the end: a negative dimension or index is
 * refused, as is one that is too large; ranges are not cut to what is there. Views of tensors
 * without elements have none either.
 *
 * All return NULL on failure: EBB_E_SHAPE with the numbers where an argument does not fit the
 * tensor's shape, and the errors of ebb_tensor_view(). All take constant time. One thread at a
 * time for the regions concerned. Source of the semantics: torch's functions of the same names,
 * less negative and clamped indices.
 */
#ifndef EBB_VIEW_H
#define EBB_VIEW_H

#include <ebb/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every `step`-th index of one dimension, from `start` up to, but without `stop`. */
struct ebb_slice {
    int dim;
    int64_t start; /* 0 to stop */
    int64_t stop;  /* at most the size of the dimension */
    int64_t step;  /* at least 1; 0: 1 */
};

/* The part of the tensor that the slice says; as many dimensions as before. */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_slice(ebb_region region, const struct ebb_tensor *tensor, struct ebb_slice slice);

/* What lies at one index of a dimension; the dimension is gone. */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_select(ebb_region region, const struct ebb_tensor *tensor, int dim, int64_t index);

/* Two dimensions change places; they may be the same. */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_transpose(ebb_region region, const struct ebb_tensor *tensor, int first, int second);

/*
 * Dimension i of the result is dimension dims[i] of the tensor; `dims` has as many entries as the
 * tensor has dimensions, each once, else EBB_E_PERMUTATION. EBB_E_ARGUMENT: there are none.
 */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_permute(ebb_region region, const struct ebb_tensor *tensor, const int *dims);

/*
 * The same elements in the same row-major order under another shape [ndim] of the same count. One
 * size may be -1: it follows from the others, unless one of them is 0. EBB_E_VIEW if the strides
 * do not allow that without a copy: ebb_tensor_contiguous() makes one.
 */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_reshape(ebb_region region, const struct ebb_tensor *tensor, int ndim,
                   const int64_t *shape);

/*
 * Dimensions of size 1 repeated to the sizes in `shape` [ndim], by strides of 0; the other sizes
 * stay as they are. The shape may have more dimensions than the tensor: they come first. Not a
 * destination for copies: its elements share memory.
 */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_expand(ebb_region region, const struct ebb_tensor *tensor, int ndim,
                  const int64_t *shape);

/* Without dimension `dim`, which must be of size 1. */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_squeeze(ebb_region region, const struct ebb_tensor *tensor, int dim);

/* With a dimension of size 1 more, which becomes number `dim`: 0 to the count of dimensions. */
EBB_API EBB_NODISCARD struct ebb_tensor *
ebb_tensor_unsqueeze(ebb_region region, const struct ebb_tensor *tensor, int dim);

#ifdef __cplusplus
}
#endif

#endif
