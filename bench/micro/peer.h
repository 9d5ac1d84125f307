// SPDX-License-Identifier: Apache-2.0
/*
 * peer.h - what a competitor of the micro benchmarks looks like.
 *
 * A peer gives the operations below; the cases (case_<name>.h) are loops over them. Each peer's
 * file builds its own copy of every loop: it passes the address of a `static const` table to
 * functions that are always inlined, so the compiler sees through the pointers, and an allocation
 * that is inline in the peer's header is inline in the loop. A call per object that only the
 * harness makes would be half of what is measured here.
 *
 * A peer lives in a process of its own. Operations that a peer does not have are NULL, and the
 * cases that need them report nothing for it.
 */
#ifndef MICRO_PEER_H
#define MICRO_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICRO_INLINE static inline __attribute__((always_inline))

enum micro_case {
    CASE_SMALL10K,
    CASE_CONST,
    CASE_OPEN_CLOSE,
    CASE_CLOSE_N,
    CASE_FLAT_COUNT,
    CASE_FLAT_BYTES,
    CASE_LARGE,
    CASE_REQUEST,
    CASE_RELEASE,
    CASE_PROMOTE,
    CASE_TENSOR,
    CASE_PROMOTE_OBJECTS,
    CASE_PLANNED,
    CASE_COUNT
};

/* The step that is running: two words, kept in registers by the loops. What they mean is the
 * peer's own: a cursor, an arena, a handle with its generation. */
struct step {
    void *place;
    uint64_t serial;
};

/* Blocks of a step, in the order of their allocation; NULL where one was released early. */
struct held {
    void **blocks;
    size_t count;
};

struct peer_ops {
    /* A step in the steady state: what the peer does before its first and after its last
     * allocation. `end` frees everything that is still in `held`. */
    void (*begin)(struct step *step);
    void (*end)(struct step *step, const struct held *held);
    void *(*alloc)(struct step *step, size_t bytes); /* at a multiple of 16, or the peer's own */
    void (*release)(struct step *step, void *block); /* one block early */
    /* An arena from nothing, and back to nothing. */
    void (*open)(struct step *step);
    void (*close)(struct step *step);
    /* Makes a block outlive its step, returns where it lives now; `drop` ends it later.
     * NULL: the block is copied to the heap. */
    void *(*keep)(struct step *step, void *block, size_t bytes);
    void (*drop)(void *kept);
    /* A tensor of float32 as an object of the step; its elements begin at *data. NULL: a block
     * that the case fills as it goes without objects. */
    void *(*tensor_new)(struct step *step, int32_t ndim, const int64_t *shape, void **data);
    void (*tensor_end)(struct step *step, void *tensor); /* one tensor early */
    /* A whole step of the cases small10k and const, for peers whose language has a loop of its
     * own; `bytes` NULL: all blocks are MICRO_CONST_BYTES; `blocks` NULL: the pointers are
     * forgotten. NULL: the harness's loop. */
    void (*whole)(const uint32_t *bytes, void **blocks, size_t count);
    bool forgets; /* `end` needs no list of blocks */
};

#define MICRO_CONST_BYTES ((size_t)48)

struct round;

struct peer {
    void (*set_up)(enum micro_case which); /* once, before the first round; NULL: nothing */
    void (*run)(enum micro_case which, struct round *round); /* one round of one case */
};

/* Defined where the peer's library was found when ebb was built; weak, so absent ones are NULL. */
extern const struct peer peer_floor;
extern const struct peer peer_floor_in_memory;
extern const struct peer peer_malloc;
extern const struct peer peer_apr __attribute__((weak));
extern const struct peer peer_bumpalo __attribute__((weak));
extern const struct peer peer_ebb __attribute__((weak));
extern const struct peer peer_obstack __attribute__((weak));
extern const struct peer peer_pmr __attribute__((weak));
extern const struct peer peer_talloc __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
