// SPDX-License-Identifier: Apache-2.0
/*
 * descriptor.h - a tensor as programs make it that know no regions: one block with a descriptor,
 * the shape, the strides and the elements.
 *
 * It holds what a caller reads of a tensor of ebb, and is checked as that is: dimensions are not
 * negative, sizes do not overflow, elements start at multiples of 64. It belongs to no list, is
 * counted nowhere, and who ends it is believed. Called, not inlined, as a library's would be.
 */
#ifndef MICRO_DESCRIPTOR_H
#define MICRO_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DESCRIPTOR_ALIGN ((size_t)64)

struct descriptor {
    void *data;
    size_t bytes;
    uint64_t references;
    uint8_t code, bits;
    uint16_t lanes;
    int32_t ndim;
    int64_t *shape;
    int64_t *strides;
};

/* Bytes of a block for a row-major tensor of float32; 0 if the shape is no good. */
size_t descriptor_block_bytes(int32_t ndim, const int64_t *shape);

/* Fills the descriptor in a block of that size. */
struct descriptor *descriptor_fill(void *block, int32_t ndim, const int64_t *shape);

#ifdef __cplusplus
}
#endif

#endif
