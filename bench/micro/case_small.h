// SPDX-License-Identifier: Apache-2.0
/*
 * case_small.h - a step of 10,000 small objects: allocate, write the first 8 bytes, end the step.
 *
 * small10k has sizes of 16 to 512 bytes, const one size of 48 that the compiler knows. The loop
 * remembers every pointer, as whoever uses 10,000 objects must, and the end of the step belongs
 * to the time: the frees of a malloc, the reset of an arena, ebb's close and next open.
 *
 * Peers that can end a step without being told each block are measured a second time in a loop
 * that forgets the pointers (`ns_per_object_forgotten`): the least work that can be timed at all.
 */
#ifndef MICRO_CASE_SMALL_H
#define MICRO_CASE_SMALL_H

#include "blocks.h"
#include "clock.h"
#include "peer.h"
#include "round.h"

/* Makes the compiler believe that someone uses the block. */
MICRO_INLINE void use_block(void *block) {
    __asm__ volatile("" : : "r"(block));
}

/* ... and that all memory may have been read and written. */
MICRO_INLINE void use_memory(void) {
    __asm__ volatile("" : : : "memory");
}

MICRO_INLINE void write_head(void *block, uint64_t value) {
    *(uint64_t *)block = value;
}

MICRO_INLINE void small_step(const struct peer_ops *ops, const uint32_t *bytes, void **blocks,
                             bool remember) {
    struct step step = {NULL, 0};
    struct held held = {blocks, SMALL10K_COUNT};

    ops->begin(&step);
    for (size_t i = 0; i < SMALL10K_COUNT; i++) {
        void *block = ops->alloc(&step, bytes != NULL ? bytes[i] : MICRO_CONST_BYTES);

        write_head(block, i);
        use_block(block);
        if (remember)
            blocks[i] = block;
    }
    use_memory();
    ops->end(&step, &held);
}

MICRO_INLINE double small_ns_per_object(const struct peer_ops *ops, const uint32_t *bytes,
                                        bool remember, uint64_t span_ns) {
    static void *blocks[SMALL10K_COUNT];
    uint64_t begun = clock_cpu_ns();
    uint64_t spent;
    size_t steps = 0;

    do {
        for (size_t i = 0; i < 8; i++)
            if (ops->whole != NULL)
                ops->whole(bytes, remember ? blocks : NULL, SMALL10K_COUNT);
            else
                small_step(ops, bytes, blocks, remember);
        steps += 8;
        spent = clock_cpu_ns() - begun;
    } while (spent < span_ns);
    return (double)spent / (double)(steps * SMALL10K_COUNT);
}

MICRO_INLINE void case_small10k(const struct peer_ops *ops, struct round *round) {
    const uint32_t *bytes = blocks_small10k();

    round_add(round, "ns_per_object", small_ns_per_object(ops, bytes, true, round->span_ns));
    if (ops->forgets)
        round_add(round, "ns_per_object_forgotten",
                  small_ns_per_object(ops, bytes, false, round->span_ns));
}

MICRO_INLINE void case_const(const struct peer_ops *ops, struct round *round) {
    round_add(round, "ns_per_object", small_ns_per_object(ops, NULL, true, round->span_ns));
    if (ops->forgets)
        round_add(round, "ns_per_object_forgotten",
                  small_ns_per_object(ops, NULL, false, round->span_ns));
}

#endif
