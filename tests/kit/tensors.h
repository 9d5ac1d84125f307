// SPDX-License-Identifier: Apache-2.0
/* tensors.h - tensors for tests: some with known elements, and what must hold of others. */
#ifndef KIT_TENSORS_H
#define KIT_TENSORS_H

#include "kit/test.h"

#define SIZES(...) (const int64_t[]){__VA_ARGS__}
/* The arguments ndim and shape of a call. */
#define SHAPE(...) (int)(sizeof SIZES(__VA_ARGS__) / sizeof(int64_t)), SIZES(__VA_ARGS__)

extern const struct ebb_dtype BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64,
    FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128;

/* An int32 tensor whose elements are 0, 1, 2 ... in row-major order. */
struct ebb_tensor *counting(ebb_region region, int ndim, const int64_t *shape);

/* The element at a row-major place, whatever the strides; int32. */
int32_t element_at(const struct ebb_tensor *tensor, int64_t place);
/* Address of that element, of any dtype. */
void *place_of(const struct ebb_tensor *tensor, int64_t place);

/* The tensor has this shape. */
void assert_shape(const struct ebb_tensor *tensor, int ndim, const int64_t *shape);
/* Its int32 elements, in row-major order, are these, and no more. */
void assert_elements(const struct ebb_tensor *tensor, const int32_t *elements, size_t count);
#define ASSERT_ELEMENTS(tensor, ...) \
    assert_elements(tensor, (const int32_t[]){__VA_ARGS__}, \
                    sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

/* Everything that can be counted about a region. */
struct counted {
    struct ebb_region_stats stats;
    struct ebb_object_counts objects, process;
};

struct counted counted_of(ebb_region region);
/* Nothing was made, ended or allocated since. */
void assert_nothing_changed(ebb_region region, const struct counted *before);

#endif
