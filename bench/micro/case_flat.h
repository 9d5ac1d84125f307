// SPDX-License-Identifier: Apache-2.0
/*
 * case_flat.h - does an allocation cost the same in a small region and in a huge one?
 *
 * flat_count: 10^2 to 10^7 blocks of 48 bytes in one step. `ns_untouched` allocates only,
 * `ns_written` also writes 8 bytes of each block; the latter meets the machine's caches, so it is
 * to be read against the floor's row at the same count.
 *
 * flat_bytes: steps of 1 KiB to 8 GiB in all. `ns_eighth` cuts them into 8 blocks of an eighth
 * each and never touches one, so that only placing them is timed. `ns_small` fills them with
 * blocks of 512 bytes, untouched too, up to 1 GiB.
 *
 * Both count the end of the step, and both warm up each size before timing it: fresh pages are
 * another subject.
 */
#ifndef MICRO_CASE_FLAT_H
#define MICRO_CASE_FLAT_H

#include "case_small.h"

#define FLAT_SMALL_BYTES ((size_t)512)
#define FLAT_TOTAL_MOST (UINT64_C(8) << 30)

struct flat {
    size_t count;
    size_t bytes; /* of each block */
    bool write;
    void **blocks; /* room for `count` pointers, only used by peers that do not forget */
};

MICRO_INLINE void flat_step(const struct peer_ops *ops, const struct flat *flat) {
    struct step step = {NULL, 0};
    struct held held = {flat->blocks, flat->count};
    bool write = flat->write;
    size_t bytes = flat->bytes;

    ops->begin(&step);
    for (size_t i = 0; i < flat->count; i++) {
        void *block = ops->alloc(&step, bytes);

        use_block(block);
        if (write)
            write_head(block, i);
        if (!ops->forgets)
            flat->blocks[i] = block;
    }
    use_memory();
    ops->end(&step, &held);
}

MICRO_INLINE double flat_ns_per_block(const struct peer_ops *ops, const struct flat *flat,
                                      uint64_t span_ns) {
    uint64_t begun;
    uint64_t spent;
    size_t steps = 0;

    flat_step(ops, flat);
    begun = clock_cpu_ns();
    do {
        size_t batch = flat->count < 10000 ? 10000 / flat->count : 1;

        for (size_t i = 0; i < batch; i++)
            flat_step(ops, flat);
        steps += batch;
        spent = clock_cpu_ns() - begun;
    } while (spent < span_ns);
    return (double)spent / (double)(steps * flat->count);
}

MICRO_INLINE void case_flat_count(const struct peer_ops *ops, struct round *round) {
    void **pointers = blocks_pointers();
    size_t most = round->quick ? BLOCKS_MOST / 10 : BLOCKS_MOST;

    for (size_t count = 100; count <= most; count *= 10) {
        struct flat flat = {count, MICRO_CONST_BYTES, false, pointers};

        round_add_at(round, "ns_untouched", 'n', count,
                     flat_ns_per_block(ops, &flat, round->span_ns / 4));
        flat.write = true;
        round_add_at(round, "ns_written", 'n', count,
                     flat_ns_per_block(ops, &flat, round->span_ns / 4));
    }
}

/* Eight times as much, and FLAT_TOTAL_MOST once before it is passed. */
static inline uint64_t flat_next(uint64_t total) {
    return total < FLAT_TOTAL_MOST && total * 8 > FLAT_TOTAL_MOST ? FLAT_TOTAL_MOST : total * 8;
}

MICRO_INLINE void case_flat_bytes(const struct peer_ops *ops, struct round *round) {
    void **pointers = blocks_pointers();
    uint64_t most_small = round->quick ? 64 << 20 : 1 << 30;

    for (uint64_t total = 1 << 10; total <= FLAT_TOTAL_MOST; total = flat_next(total)) {
        struct flat flat = {8, (size_t)(total / 8), false, pointers};

        round_add_at(round, "ns_eighth", 'b', total,
                     flat_ns_per_block(ops, &flat, round->span_ns / 4));
    }
    for (uint64_t total = 1 << 10; total <= most_small; total *= 4) {
        size_t count = (size_t)(total / FLAT_SMALL_BYTES);
        struct flat flat = {count, FLAT_SMALL_BYTES, false, pointers};

        round_add_at(round, "ns_small", 'b', total,
                     flat_ns_per_block(ops, &flat, round->span_ns / 4));
    }
}

#endif
