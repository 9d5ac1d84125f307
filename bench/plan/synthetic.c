// SPDX-License-Identifier: Apache-2.0
/*
 * synthetic.c - the training step of a language model, made up: for how planning time grows.
 *
 * Forward, each layer makes activations that its backward pass needs, temporaries that the next
 * operations need, and small statistics; backward, gradients that live shortly and gradients of
 * parameters that live to the end, where the optimizer has its temporaries.
 *
 *     forward    layer 0, 1, ... n - 1       saved: to the layer's backward pass
 *     backward   layer n - 1, ... 1, 0       gradients of parameters: to the end
 *
 * Invariant: the same count gives the same step. One section an operation.
 */
#include "buffers.h"
#include "instance.h"

enum { FORWARD = 24, BACKWARD = 28, LAYER = FORWARD + BACKWARD };

static const uint64_t activation[] = {196608, 589824, 786432, 98304, 1536, 196608};
static const uint64_t parameter[] = {589824, 2359296, 1769472, 3072, 3072, 9216};

enum { KINDS = sizeof activation / sizeof *activation };

static struct packing_buffer buffer_of(uint32_t lower, uint32_t upper, uint64_t bytes) {
    return (struct packing_buffer){.lower = lower, .upper = upper,
                                   .align = bytes >= 1024 ? 64 : 16, .bytes = bytes};
}

/* Of each three, one is saved, one needed by the next two operations, one is a small statistic. */
static struct packing_buffer forward(uint32_t layer, uint32_t layers, uint32_t i) {
    uint32_t now = layer * FORWARD + i;
    uint32_t backward = layers * FORWARD + (layers - 1 - layer) * BACKWARD;
    uint64_t bytes = activation[(i / 3 + layer % 2) % KINDS];
    if (i % 3 == 0)
        return buffer_of(now, backward + BACKWARD - i, bytes);
    if (i % 3 == 1)
        return buffer_of(now, now + 2 + i % 2, bytes);
    return buffer_of(now, i % 2 ? now + 4 : backward + 2, 16 * (1 + i + layer % 7));
}

static struct packing_buffer backward(uint32_t layer, uint32_t layers, uint32_t i) {
    uint32_t now = layers * FORWARD + (layers - 1 - layer) * BACKWARD + i;
    if (i % 4 == 0)
        return buffer_of(now, layers * LAYER, parameter[(i / 4 + layer % 3) % KINDS]);
    if (i % 4 == 1)
        return buffer_of(now, now + 5, activation[i / 4 % KINDS]);
    return buffer_of(now, now + 2, i % 4 == 2 ? activation[(i / 4 + 1) % KINDS] : 16 * i);
}

void synthetic_make(struct instances *instances, uint32_t count) {
    uint32_t layers = count / LAYER + (count < LAYER);
    struct instance instance = {.count = layers * LAYER};
    instance.buffers = buffer_resize(NULL, instance.count, sizeof *instance.buffers);
    struct packing_buffer *next = instance.buffers;
    for (uint32_t layer = 0; layer < layers; layer++)
        for (uint32_t i = 0; i < FORWARD; i++)
            *next++ = forward(layer, layers, i);
    for (uint32_t layer = layers; layer > 0; layer--)
        for (uint32_t i = 0; i < BACKWARD; i++)
            *next++ = backward(layer - 1, layers, i);
    instances->instance = buffer_resize(NULL, 1, sizeof instance);
    instances->instance[0] = instance;
    instances->count = 1;
}
