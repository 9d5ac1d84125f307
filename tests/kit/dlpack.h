// SPDX-License-Identifier: Apache-2.0
/* dlpack.h - tensors as tests exchange them. Needs the folder of the runtime's private headers. */
#ifndef KIT_DLPACK_H
#define KIT_DLPACK_H

#include "kit/test.h"
#include "object/dlpack.h"

static const struct ebb_dtype float32 = {EBB_FLOAT, 32, 1};
static const struct ebb_dtype bytes8 = {EBB_UINT, 8, 1};

/* A tensor of `bytes` bytes with the pattern of its size. */
static inline struct ebb_tensor *tensor_of_bytes(ebb_region region, size_t bytes) {
    struct ebb_tensor *tensor = ebb_tensor_new(region, bytes8, 1, &(int64_t){(int64_t)bytes});
    assert_non_null(tensor);
    pattern_fill(tensor->data, bytes, (unsigned)bytes);
    return tensor;
}

/* An export that shares the bytes. */
static inline DLManagedTensor *share(const struct ebb_tensor *tensor) {
    DLManagedTensor *managed = ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE);
    if (!managed)
        print_error("%s\n", ebb_last_error_text());
    assert_non_null(managed);
    return managed;
}

static inline void give_back(DLManagedTensor *managed) {
    managed->deleter(managed);
}

/* True if an export of tensor_of_bytes() can be read and is right. */
static inline bool export_holds(const DLManagedTensor *managed) {
    size_t bytes = (size_t)managed->dl_tensor.shape[0];
    return pattern_holds(managed->dl_tensor.data, bytes, (unsigned)bytes);
}

/* Takes all cached pages and writes over them: whoever still reads there, reads wrong. */
static inline void overwrite_cached(const struct stage *stage) {
    ebb_region region = OPEN(.name = "scribbler", .pool = stage->pool);
    uint64_t cached = pool_stats_of(stage->pool).cached;
    for (size_t bytes = 0; bytes < cached + MIB; bytes += 60 * KIB) {
        void *block = ebb_region_alloc(region, 60 * KIB, 64);
        assert_non_null(block);
        memset(block, 0xAA, 60 * KIB);
    }
    assert_int_equal(ebb_region_close(region), 0);
    ebb_pool_trim(stage->pool, cached); /* else there is more to be written every time */
    ebb_check_pool(stage->pool);
}

#endif
