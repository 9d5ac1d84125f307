// SPDX-License-Identifier: Apache-2.0
/* tensors.c - see tensors.h. */
#include "kit/tensors.h"

const struct ebb_dtype BOOL = {EBB_BOOL, 8, 1}, INT8 = {EBB_INT, 8, 1}, INT16 = {EBB_INT, 16, 1},
                       INT32 = {EBB_INT, 32, 1}, INT64 = {EBB_INT, 64, 1},
                       UINT8 = {EBB_UINT, 8, 1}, UINT16 = {EBB_UINT, 16, 1},
                       UINT32 = {EBB_UINT, 32, 1}, UINT64 = {EBB_UINT, 64, 1},
                       FLOAT16 = {EBB_FLOAT, 16, 1}, BFLOAT16 = {EBB_BFLOAT, 16, 1},
                       FLOAT32 = {EBB_FLOAT, 32, 1}, FLOAT64 = {EBB_FLOAT, 64, 1},
                       COMPLEX64 = {EBB_COMPLEX, 64, 1}, COMPLEX128 = {EBB_COMPLEX, 128, 1};

struct ebb_tensor *counting(ebb_region region, int ndim, const int64_t *shape) {
    struct ebb_tensor *tensor = ebb_tensor_new(region, INT32, ndim, shape);
    assert_non_null(tensor);
    int32_t *elements = tensor->data;
    for (int64_t i = 0; i < ebb_tensor_count(tensor); i++)
        elements[i] = (int32_t)i;
    return tensor;
}

void *place_of(const struct ebb_tensor *tensor, int64_t place) {
    int64_t offset = 0;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        offset += place % tensor->shape[i] * tensor->strides[i];
        place /= tensor->shape[i];
    }
    return (char *)tensor->data + offset * (int64_t)ebb_dtype_bytes(tensor->dtype);
}

int32_t element_at(const struct ebb_tensor *tensor, int64_t place) {
    return *(int32_t *)place_of(tensor, place);
}

void assert_shape(const struct ebb_tensor *tensor, int ndim, const int64_t *shape) {
    assert_non_null(tensor);
    assert_int_equal(tensor->ndim, ndim);
    for (int i = 0; i < ndim; i++)
        assert_int_equal(tensor->shape[i], shape[i]);
}

void assert_elements(const struct ebb_tensor *tensor, const int32_t *elements, size_t count) {
    assert_non_null(tensor);
    assert_int_equal(ebb_tensor_count(tensor), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(element_at(tensor, (int64_t)i), elements[i]);
}

struct counted counted_of(ebb_region region) {
    struct counted counted;
    memset(&counted, 0, sizeof counted);
    counted.stats = stats_of(region);
    assert_int_equal(ebb_region_read_objects(region, EBB_OBJECT_ALL, &counted.objects), 0);
    assert_int_equal(ebb_process_read_objects(EBB_OBJECT_ALL, &counted.process), 0);
    return counted;
}

void assert_nothing_changed(ebb_region region, const struct counted *before) {
    struct counted after = counted_of(region);
    assert_memory_equal(before, &after, sizeof after);
}
