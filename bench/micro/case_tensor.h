// SPDX-License-Identifier: Apache-2.0
/*
 * case_tensor.h - small tensors as objects: float32, 4x3x2, made and ended.
 *
 * `ns_alone` makes one and ends it, 1,000 times in a step; `ns_thousand` makes 1,000 and then ends
 * them, oldest first; in `ns_step` the end of the step ends the 1,000. All are nanoseconds per
 * tensor, its end and its share of the step included. The first element of each is written.
 *
 * ebb's tensors are objects of the region. The other peers fill a descriptor (descriptor.h) in one
 * block with the elements.
 */
#ifndef MICRO_CASE_TENSOR_H
#define MICRO_CASE_TENSOR_H

#include "case_small.h"
#include "descriptor.h"

#define TENSOR_COUNT ((size_t)1000)
#define TENSOR_NDIM 3

enum tensor_end { TENSOR_END_AT_ONCE, TENSOR_END_AFTER, TENSOR_END_WITH_STEP };

static const int64_t tensor_shape[TENSOR_NDIM] = {4, 3, 2};

/* A tensor; *data is where its elements begin. */
MICRO_INLINE void *tensor_make(const struct peer_ops *ops, struct step *step, void **data) {
    struct descriptor *tensor;

    if (ops->tensor_new != NULL)
        return ops->tensor_new(step, TENSOR_NDIM, tensor_shape, data);
    tensor = descriptor_fill(ops->alloc(step, descriptor_block_bytes(TENSOR_NDIM, tensor_shape)),
                             TENSOR_NDIM, tensor_shape);
    *data = tensor->data;
    return tensor;
}

MICRO_INLINE void tensor_end(const struct peer_ops *ops, struct step *step, void *tensor) {
    if (ops->tensor_end != NULL)
        ops->tensor_end(step, tensor);
    else
        ops->release(step, tensor);
}

MICRO_INLINE void tensor_step(const struct peer_ops *ops, enum tensor_end end) {
    static void *tensors[TENSOR_COUNT];
    struct step step = {NULL, 0};
    struct held held = {tensors, end == TENSOR_END_WITH_STEP ? TENSOR_COUNT : 0};

    ops->begin(&step);
    for (size_t i = 0; i < TENSOR_COUNT; i++) {
        void *data = NULL;

        tensors[i] = tensor_make(ops, &step, &data);
        write_head(data, i);
        use_block(data);
        if (end == TENSOR_END_AT_ONCE)
            tensor_end(ops, &step, tensors[i]);
    }
    use_memory();
    for (size_t i = 0; end == TENSOR_END_AFTER && i < TENSOR_COUNT; i++)
        tensor_end(ops, &step, tensors[i]);
    ops->end(&step, &held);
}

MICRO_INLINE double tensor_ns(const struct peer_ops *ops, enum tensor_end end, uint64_t span_ns) {
    uint64_t begun = clock_cpu_ns();
    uint64_t spent;
    size_t steps = 0;

    do {
        for (size_t i = 0; i < 8; i++) /* to read the clock is 1.2 us where it is a call */
            tensor_step(ops, end);
        steps += 8;
        spent = clock_cpu_ns() - begun;
    } while (spent < span_ns);
    return (double)spent / (double)(steps * TENSOR_COUNT);
}

MICRO_INLINE void case_tensor(const struct peer_ops *ops, struct round *round) {
    if (ops->tensor_end != NULL || ops->release != NULL) {
        round_add(round, "ns_alone", tensor_ns(ops, TENSOR_END_AT_ONCE, round->span_ns));
        round_add(round, "ns_thousand", tensor_ns(ops, TENSOR_END_AFTER, round->span_ns));
    }
    round_add(round, "ns_step", tensor_ns(ops, TENSOR_END_WITH_STEP, round->span_ns));
}

#endif
