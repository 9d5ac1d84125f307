// SPDX-License-Identifier: Apache-2.0
/* peer_torch.cpp - torch's caching allocator, called as its tensors call it, without a tensor. */
#include "peer.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

static bool start() {
    if (c10::cuda::device_count() < 1)
        return false;
    c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
    c10::cuda::set_device(0);
    return true;
}

static void nothing() {}

static void *take(size_t bytes) {
    return c10::cuda::CUDACachingAllocator::raw_alloc(bytes);
}

static void give_back(void *block) {
    c10::cuda::CUDACachingAllocator::raw_delete(block);
}

const peer peer_torch = {"torch", start, nothing, take, give_back, false, nothing};
