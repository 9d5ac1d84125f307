// SPDX-License-Identifier: Apache-2.0
/*
 * copy.h - copies of strided elements, for everything that moves the bytes of tensors.
 *
 *     elements.c   copies and repetitions of elements
 *     bytes_*.c    copies of dense bytes
 *     overlap.c    whether elements share memory
 *
 * Nothing here allocates or fails: callers have checked that all elements lie in memory that may
 * be read or written.
 */
#ifndef EBB_OBJECT_COPY_H
#define EBB_OBJECT_COPY_H

#include <ebb/tensor.h>

/*
 * Copies the elements of a shape, `element_bytes` each, from one set of strides to another.
 * Strides count elements and are not negative; NULL means row-major. Source strides of 0 repeat
 * elements; no two elements of the destination may share a byte, nor may source and destination.
 * A shape with a 0 in it: nothing happens, and the pointers may be NULL.
 */
void copy_elements(void *to, const int64_t *to_strides, const void *from,
                   const int64_t *from_strides, const int64_t *shape, int ndim,
                   size_t element_bytes);

/* memcpy(), past the caches where the bytes would not fit and the processor gains by that. */
void copy_bytes(void *to, const void *from, size_t bytes);

/* The same for a part of bytes that would not fit all together. */
void copy_past_caches(void *to, const void *from, size_t bytes);

/* Writes `count` copies of the `bytes` at `from` one after the other to `to`. */
void copy_repeated(void *to, const void *from, size_t bytes, size_t count);

/* True if two elements of the tensor, at different places, share a byte. */
bool tensor_overlaps_itself(const struct ebb_tensor *tensor);

/* True if an element of the one shares a byte with an element of the other. */
bool tensors_overlap(const struct ebb_tensor *one, const struct ebb_tensor *other);

#endif
