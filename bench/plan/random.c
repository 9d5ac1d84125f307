// SPDX-License-Identifier: Apache-2.0
/*
 * random.c - steps without any pattern, made up: the planner's hardest case.
 *
 * So many buffers are alive at once; a new one takes the place of one that is drawn, of a size that
 * is drawn from 1 to 65 KiB. No order is good for all such steps, so as many are tried as the bound
 * of work lets.
 *
 * Invariant: the same counts give the same steps. A birth and a death a section.
 */
#include <stdlib.h>

#include "buffers.h"
#include "instance.h"

enum { STEPS = 4, LEAST_BYTES = 1 << 10, MOST_BYTES = 65 << 10 };

/* Lehmer's generator: 1 to 2^31 - 2. */
static uint32_t draw(uint32_t *random, uint32_t below) {
    *random = (uint32_t)((uint64_t)*random * 48271 % 2147483647);
    return *random % below;
}

static struct instance step_of(uint32_t count, uint32_t alive, uint32_t *random) {
    struct instance instance = {.count = count};
    uint32_t *places = buffer_resize(NULL, alive, sizeof *places); /* who is alive in each */
    instance.buffers = buffer_resize(NULL, count, sizeof *instance.buffers);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = i < alive ? i : draw(random, alive);
        if (i >= alive)
            instance.buffers[places[place]].upper = i;
        places[place] = i;
        instance.buffers[i] = (struct packing_buffer){
            .lower = i, .upper = count, .align = 64,
            .bytes = LEAST_BYTES + draw(random, MOST_BYTES - LEAST_BYTES + 1)};
    }
    free(places);
    return instance;
}

void random_make(struct instances *instances, uint32_t count, uint32_t alive) {
    uint32_t random = 1;
    instances->instance = buffer_resize(NULL, STEPS, sizeof *instances->instance);
    instances->count = STEPS;
    for (size_t i = 0; i < STEPS; i++)
        instances->instance[i] = step_of(count, alive, &random);
}
