// SPDX-License-Identifier: Apache-2.0
/* instances.h - buffers to plan, drawn at random, and the slow way to check a plan of them. */
#ifndef KIT_INSTANCES_H
#define KIT_INSTANCES_H

#include "plan/packing.h"

/* Up to `bytes`, living up to `life` of `sections`; alignments up to 1 << `align_log2`. */
struct instance_shape {
    uint32_t sections, life;
    uint64_t bytes;
    unsigned align_log2;
};

/* The next number of a generator; the same seed draws the same. */
uint64_t instance_draw(uint64_t *seed);
void instance_fill(struct packing_buffer *buffers, uint32_t count, struct instance_shape shape,
                   uint64_t *seed);

/* Each pair looked at, with no sum that could wrap. */
bool instance_holds(const struct packing_buffer *buffers, const uint64_t *offsets, uint32_t count,
                    uint64_t height);
uint64_t instance_max_live(const struct packing_buffer *buffers, uint32_t count);

/* A workspace of the size that is promised, full of rubbish; ended with free(). */
void *instance_workspace(uint32_t count);

#endif
