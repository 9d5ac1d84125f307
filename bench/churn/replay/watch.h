// SPDX-License-Identifier: Apache-2.0
/*
 * watch.h - the kinds of run: what is looked at while a script is replayed.
 *
 *     time       time per step, blocks touched; nothing else is done meanwhile
 *     bare       time per event, blocks not touched, less the cost of the loop
 *     count      page faults per step, resident memory, the heap's own counters; traced for
 *                system calls by `trace`
 *     footprint  pages that hold the step's objects, against bytes alive
 *     spike      time and resident memory of every single step
 *
 * Each kind runs in a process of its own, so that none disturbs another.
 */
#ifndef EBB_BENCH_WATCH_H
#define EBB_BENCH_WATCH_H

#include "account.h"
#include "heap.h"
#include "ledger.h"

struct run {
    const struct script *script;
    const struct heap *heap;
    struct replay replay;
    uint32_t passes, until, limit_percent;
    uint64_t base_resident; /* bytes, before the heap is started */
    struct ledger first, second; /* what a kind counts per step */
    struct account account;
};

struct watch {
    const char *kind;
    enum replay_mode mode;
    bool (*make)(struct run *run); /* false: no memory */
    void (*on_begin)(struct replay *replay, uint32_t step);
    void (*on_end)(struct replay *replay, uint32_t step);
    void (*report)(struct run *run);
};

extern const struct watch watch_time, watch_bare, watch_count, watch_footprint, watch_spike;

/* Nanoseconds of the monotonic clock. */
uint64_t watch_now(void);

#endif
