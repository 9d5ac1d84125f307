// SPDX-License-Identifier: Apache-2.0
#include "kit/instances.h"

#include <stdlib.h>
#include <string.h>

uint64_t instance_draw(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

void instance_fill(struct packing_buffer *buffers, uint32_t count, struct instance_shape shape,
                   uint64_t *seed) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lower = (uint32_t)(instance_draw(seed) % shape.sections);
        buffers[i] = (struct packing_buffer){
            .lower = lower, .upper = lower + 1 + (uint32_t)(instance_draw(seed) % shape.life),
            .align = 1u << instance_draw(seed) % (shape.align_log2 + 1),
            .bytes = instance_draw(seed) % (shape.bytes + 1)};
    }
}

static bool are_apart(const struct packing_buffer *a, uint64_t at_a,
                      const struct packing_buffer *b, uint64_t at_b) {
    if (a->upper <= b->lower || b->upper <= a->lower || a->bytes == 0 || b->bytes == 0)
        return true;
    return at_a <= at_b ? at_b - at_a >= a->bytes : at_a - at_b >= b->bytes;
}

bool instance_holds(const struct packing_buffer *buffers, const uint64_t *offsets, uint32_t count,
                    uint64_t height) {
    for (uint32_t i = 0; i < count; i++) {
        const struct packing_buffer *buffer = &buffers[i];
        if (offsets[i] > height || height - offsets[i] < buffer->bytes ||
            offsets[i] % buffer->align != 0)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (!are_apart(buffer, offsets[i], &buffers[j], offsets[j]))
                return false;
    }
    return true;
}

uint64_t instance_max_live(const struct packing_buffer *buffers, uint32_t count) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t live = 0;
        for (uint32_t j = 0; j < count; j++)
            if (buffers[j].lower <= buffers[i].lower && buffers[i].lower < buffers[j].upper)
                live += buffers[j].bytes;
        most = live > most ? live : most;
    }
    return most;
}

void *instance_workspace(uint32_t count) {
    size_t bytes;
    if (!packing_workspace_bytes(count, &bytes))
        abort();
    void *workspace = malloc(bytes);
    if (!workspace)
        abort();
    return memset(workspace, 0xa5, bytes);
}
