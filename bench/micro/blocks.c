// SPDX-License-Identifier: Apache-2.0
/*
 * blocks.c - see blocks.h. The generator is xorshift64*, written out so that the lists are the
 * same on every machine.
 */
#include "blocks.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

/* Uniform in [0, 1). */
static double next_fraction(uint64_t *state) {
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static uint32_t log_uniform(uint64_t *state, double least, double most) {
    return (uint32_t)(least * exp(next_fraction(state) * log(most / least)));
}

const uint32_t *blocks_small10k(void) {
    static uint32_t bytes[SMALL10K_COUNT];
    uint64_t state = 0x9E3779B97F4A7C15u;

    if (bytes[0] == 0)
        for (size_t i = 0; i < SMALL10K_COUNT; i++)
            bytes[i] = (uint32_t)(16 + next_random(&state) % 497);
    return bytes;
}

const uint32_t *blocks_large(void) {
    static uint32_t bytes[LARGE_COUNT];
    uint64_t state = 0xD1B54A32D192ED03u;

    if (bytes[0] == 0)
        for (size_t i = 0; i < LARGE_COUNT; i++)
            bytes[i] = log_uniform(&state, 256, 4 << 20);
    return bytes;
}

static void fill_request_bytes(struct request_plan *plan, uint64_t *state) {
    for (size_t i = 0; i < REQUEST_COUNT; i++)
        plan->bytes[i] = i < REQUEST_SMALL_COUNT ? log_uniform(state, 16, 8 << 10)
                                                 : log_uniform(state, 64 << 10, 1 << 20);
    for (size_t i = REQUEST_COUNT - 1; i > 0; i--) {
        size_t other = next_random(state) % (i + 1);
        uint32_t bytes = plan->bytes[i];

        plan->bytes[i] = plan->bytes[other];
        plan->bytes[other] = bytes;
    }
}

/* Nine of ten blocks die within the request, most of them soon: after 0 to 63 further ones. */
static void fill_request_deaths(struct request_plan *plan, uint64_t *state) {
    uint16_t dies_at[REQUEST_COUNT];
    uint16_t listed = 0;
    size_t survivors = 0;

    for (size_t i = 0; i < REQUEST_COUNT; i++) {
        uint64_t draw = next_random(state) >> 32;
        size_t at = draw % 10 == 0 ? REQUEST_COUNT : i + (draw >> 8) % 64;
        bool small = plan->bytes[i] <= 8 << 10;

        dies_at[i] = (uint16_t)(at < REQUEST_COUNT ? at : REQUEST_COUNT);
        if (at >= REQUEST_COUNT && small && survivors < REQUEST_SURVIVORS)
            plan->survivor[survivors++] = (uint16_t)i;
    }
    for (size_t now = 0; now < REQUEST_COUNT; now++) {
        plan->dies_first[now] = listed;
        for (size_t i = 0; i <= now; i++)
            if (dies_at[i] == now)
                plan->dies[listed++] = (uint16_t)i;
    }
    plan->dies_first[REQUEST_COUNT] = listed;
}

const struct request_plan *blocks_request(void) {
    static struct request_plan plan;
    uint64_t state = 0xA0761D6478BD642Fu;

    if (plan.bytes[0] == 0) {
        fill_request_bytes(&plan, &state);
        fill_request_deaths(&plan, &state);
    }
    return &plan;
}

void **blocks_pointers(void) {
    static void *place;

    if (place == NULL)
        place = mmap(NULL, BLOCKS_MOST * sizeof(void *), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        abort();
    return (void **)place;
}
