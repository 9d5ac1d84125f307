// SPDX-License-Identifier: Apache-2.0
/*
 * case_request.h - a request of a server: 300 blocks of 16 B to 8 KiB, 20 of 64 KiB to 1 MiB.
 *
 * Blocks die in mixed order during the request, the rest at its end. Three small ones outlive it
 * and are dropped 50 requests later, like a session's state. The first and last 8 bytes of each
 * block are written. A malloc keeps a survivor by not freeing it, an arena copies it to the heap,
 * ebb promotes it to the parent region.
 *
 * `p99_us` is over the requests of a round; `resident_bytes` is the process's memory at the
 * round's end, so that its rows over the rounds show a leak.
 */
#ifndef MICRO_CASE_REQUEST_H
#define MICRO_CASE_REQUEST_H

#include <stdlib.h>
#include <string.h>

#include "case_small.h"

#define REQUESTS_PER_ROUND ((size_t)1000)

/* Survivors of the last REQUEST_KEPT requests; the oldest is at `next`. */
struct request_kept {
    void *blocks[REQUEST_KEPT][REQUEST_SURVIVORS];
    size_t next;
};

MICRO_INLINE void *request_keep_one(const struct peer_ops *ops, struct step *step, void *block,
                                    size_t bytes) {
    if (ops->keep != NULL)
        return ops->keep(step, block, bytes);
    return memcpy(malloc(bytes), block, bytes);
}

MICRO_INLINE void request_drop(const struct peer_ops *ops, void *kept) {
    if (ops->drop == NULL)
        free(kept);
    else if (kept != NULL)
        ops->drop(kept);
}

MICRO_INLINE void request_keep(const struct peer_ops *ops, struct step *step, void **blocks,
                               struct request_kept *kept) {
    const struct request_plan *plan = blocks_request();
    void **slot = kept->blocks[kept->next];

    for (size_t i = 0; i < REQUEST_SURVIVORS; i++) {
        size_t survivor = plan->survivor[i];

        request_drop(ops, slot[i]);
        slot[i] = request_keep_one(ops, step, blocks[survivor], plan->bytes[survivor]);
        if (slot[i] == blocks[survivor])
            blocks[survivor] = NULL;
    }
    kept->next = (kept->next + 1) % REQUEST_KEPT;
}

MICRO_INLINE void request_run(const struct peer_ops *ops, const struct request_plan *plan,
                              struct request_kept *kept) {
    void *blocks[REQUEST_COUNT];
    struct step step = {NULL, 0};
    struct held held = {blocks, REQUEST_COUNT};

    ops->begin(&step);
    for (size_t i = 0; i < REQUEST_COUNT; i++) {
        blocks[i] = ops->alloc(&step, plan->bytes[i]);
        write_head(blocks[i], i);
        write_head((char *)blocks[i] + plan->bytes[i] / 8 * 8 - 8, i);
        for (size_t j = plan->dies_first[i]; j < plan->dies_first[i + 1]; j++) {
            if (ops->release != NULL)
                ops->release(&step, blocks[plan->dies[j]]);
            blocks[plan->dies[j]] = NULL;
        }
    }
    request_keep(ops, &step, blocks, kept);
    ops->end(&step, &held);
}

/* Sorts the spans. */
static inline double request_p99(double *spans) {
    clock_median(spans, REQUESTS_PER_ROUND);
    return spans[REQUESTS_PER_ROUND * 99 / 100];
}

MICRO_INLINE void case_request(const struct peer_ops *ops, struct round *round) {
    static struct request_kept kept;
    static double spans[REQUESTS_PER_ROUND];
    const struct request_plan *plan = blocks_request();
    uint64_t faults = clock_faults();
    uint64_t cpu = clock_cpu_ns();

    for (size_t i = 0; i < REQUESTS_PER_ROUND; i++) {
        uint64_t begun = clock_wall_ns();

        request_run(ops, plan, &kept);
        spans[i] = (double)(clock_wall_ns() - begun) / 1e3;
    }
    round_add(round, "us_per_request",
              (double)(clock_cpu_ns() - cpu) / 1e3 / (double)REQUESTS_PER_ROUND);
    round_add(round, "p99_us", request_p99(spans));
    round_add(round, "faults_per_request",
              (double)(clock_faults() - faults) / (double)REQUESTS_PER_ROUND);
    round_add(round, "resident_bytes", (double)clock_resident_bytes());
}

#endif
