// SPDX-License-Identifier: Apache-2.0
/*
 * heap.h - what the replayer needs from an allocator, and what it offers to it.
 *
 * There are three heaps: `malloc` (whatever serves the process's malloc: glibc, or a preloaded
 * peer), `empty` (does nothing: the cost of the loop itself) and `ebb`. The loop in loop.h is
 * compiled once for each of them, so that their calls are direct and inline functions inline;
 * that is why a heap offers whole passes here and not single operations.
 *
 * ebb's heap lives in a library of its own, ebb-heap.so, which is preloaded when ebb is to be
 * measured, exactly as the peers are: one program serves all.
 */
#ifndef EBB_BENCH_HEAP_H
#define EBB_BENCH_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "../script.h"

/* What ebb-heap.so needs from the program, and the program from it. */
#define HEAP_SHARED __attribute__((visibility("default")))

/* An object. `fill` is the value of all its bytes while blocks are touched. */
struct slot {
    void *block; /* NULL: no object here */
    uint64_t bytes : 56;
    uint64_t fill : 8;
};

struct account;

/* One replay of a script in this process. */
struct replay {
    const struct script *script;
    struct slot *slots;
    uint32_t until; /* a pass ends before this event */
    uint32_t pass;  /* number of the present one */
    void *context;  /* of the two functions below */
    void (*on_begin)(struct replay *replay, uint32_t step); /* last thing before a step */
    void (*on_end)(struct replay *replay, uint32_t step);   /* first thing after it */
    struct account *account; /* footprint only */
    uint64_t read_sum;       /* keeps the reads alive */
};

/* What a pass does besides calling the allocator. */
enum replay_mode {
    REPLAY_BARE,    /* nothing */
    REPLAY_TOUCH,   /* write every block when it is born, read it when it ends */
    REPLAY_ACCOUNT, /* tell `account` about every block; no touching */
    REPLAY_MODES,
};

typedef void replay_pass_fn(struct replay *replay);

struct heap {
    const char *name;
    replay_pass_fn *pass[REPLAY_MODES];
    /* Called once before the first pass; false: no memory for its tables. What else fails ends the
     * process (fault.h). */
    bool (*start)(const struct script *script);
    /* Called after each step of an untimed run; may be NULL. A later pass has steady steps that the
     * trace calls warm-up: what a step of its first pass was like comes again. */
    void (*sample)(bool steady, bool warmup);
    /* Prints the heap's own metrics, given the number of steady steps; may be NULL. */
    void (*report)(uint64_t steps);
};

extern const struct heap heap_malloc, heap_empty;

/* Defined by ebb-heap.so; NULL where that is not preloaded. */
HEAP_SHARED extern const struct heap heap_ebb __attribute__((weak));

#endif
