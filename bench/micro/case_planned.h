// SPDX-License-Identifier: Apache-2.0
/*
 * case_planned.h - a step that repeats: 2,000 blocks of 2 to 62 KiB, of which 24 are alive at once.
 *
 * Each block is released, as the oldest, before one more is allocated; none is touched. What is
 * reported is the time of an event, an allocation or a release. The floor has no releases: its
 * events are the loop and a bump. With ebb the step is one of a site that has learnt it
 * (`ns_event`), and then one of a site that does not learn (`ns_event_unplanned`).
 */
#ifndef MICRO_CASE_PLANNED_H
#define MICRO_CASE_PLANNED_H

#include "case_small.h"

#define PLANNED_COUNT ((size_t)2000)
#define PLANNED_ALIVE ((size_t)24)
#define PLANNED_WARM 8 /* steps that a site learns from */

MICRO_INLINE void planned_step(const struct peer_ops *ops, const uint32_t *bytes) {
    void *blocks[PLANNED_ALIVE] = {NULL};
    struct step step = {NULL, 0};
    struct held held = {blocks, PLANNED_ALIVE};

    ops->begin(&step);
    for (size_t i = 0, at = 0; i < PLANNED_COUNT; i++) {
        if (ops->release != NULL && blocks[at] != NULL)
            ops->release(&step, blocks[at]);
        blocks[at] = ops->alloc(&step, bytes[i]);
        use_block(blocks[at]);
        at = at + 1 == PLANNED_ALIVE ? 0 : at + 1;
    }
    ops->end(&step, &held);
}

MICRO_INLINE double planned_event_ns(const struct peer_ops *ops, uint64_t span_ns) {
    static uint32_t bytes[PLANNED_COUNT];
    uint32_t random = 1;
    uint64_t begun;
    uint64_t spent;
    size_t events = 0;

    for (size_t i = 0; i < PLANNED_COUNT; i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = 2048 + (random >> 16) % 60 * 1024;
    }
    for (int i = 0; i < PLANNED_WARM; i++)
        planned_step(ops, bytes);
    begun = clock_cpu_ns();
    do {
        planned_step(ops, bytes);
        events += 2 * PLANNED_COUNT;
        spent = clock_cpu_ns() - begun;
    } while (spent < span_ns);
    return (double)spent / (double)events;
}

MICRO_INLINE void case_planned(const struct peer_ops *ops, struct round *round) {
    round_add(round, "ns_event", planned_event_ns(ops, round->span_ns));
}

#endif
