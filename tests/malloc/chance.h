// SPDX-License-Identifier: Apache-2.0
/* chance.h - for chance.c: numbers and sizes that a seed gives, and contents that one gives. */
#ifndef MALLOC_CHANCE_H
#define MALLOC_CHANCE_H

#include "malloc/acts.h"

#include <inttypes.h>
#include <stdint.h>

#define UNTOUCHED 77 /* errno, before and after a call that goes well */

static bool is_served; /* by libebb-malloc */

/* splitmix64, which passes what tests of chance there are. */
static inline uint64_t mix(uint64_t seed) {
    seed += UINT64_C(0x9E3779B97F4A7C15);
    seed = (seed ^ (seed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    seed = (seed ^ (seed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return seed ^ (seed >> 31);
}

static inline uint64_t draw(uint64_t *chance) {
    return mix((*chance)++);
}

static inline size_t below(uint64_t *chance, size_t limit) {
    return (size_t)(draw(chance) % limit);
}

static inline uint64_t number_in(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    char *end = NULL;
    uint64_t number = text ? strtoull(text, &end, 0) : otherwise;
    EXPECT(!text || (*text && !*end));
    return number;
}

/* Around where one way to allocate ends and another begins, too. */
static inline size_t draw_any(uint64_t *chance) {
    static const size_t bounds[] = {16, 2048, 8176, 14336, 32768, 57344, 65536};
    switch (below(chance, 16)) {
    case 0:
        return below(chance, 50);
    case 1:
    case 2:
        return below(chance, 3000);
    case 3:
        return below(chance, 40000);
    case 4:
        return bounds[below(chance, 7)] - 16 + below(chance, 32);
    case 5:
        return below(chance, 60) ? below(chance, 9000) : (1 << 20) - 64 + below(chance, 2 << 20);
    case 6:
    case 7:
    case 8:
        return (size_t)16 << below(chance, 6);
    default:
        return below(chance, 300);
    }
}

struct block {
    unsigned char *at; /* NULL: there is none */
    size_t bytes, usable, align;
    size_t written; /* of the contents, from the beginning */
    uint64_t seed;
    unsigned site; /* if it is a scope's */
};

/* Word for word: blocks lie at multiples of 8. */
static inline void write_contents(struct block *block) {
    uint64_t *words = (void *)block->at, last;
    size_t count = block->written / sizeof *words;
    for (size_t i = 0; i < count; i++)
        words[i] = mix(block->seed + i);
    last = mix(block->seed + count);
    memcpy(words + count, &last, block->written % sizeof last);
}

static inline void check_contents(const struct block *block, size_t bytes) {
    const uint64_t *words = (const void *)block->at;
    uint64_t count = bytes / sizeof *words, last = mix(block->seed + count);
    for (size_t i = 0; i < count; i++)
        EXPECT(words[i] == mix(block->seed + i));
    EXPECT(memcmp(words + count, &last, bytes % sizeof last) == 0);
}

#endif
