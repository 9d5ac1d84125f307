// SPDX-License-Identifier: Apache-2.0
/*
 * leaks.h - who allocates in scopes what outlives them.
 *
 * A key stands for the place in the program that calls malloc() and for the size, roughly. A key
 * whose blocks survived LEAKS_SURE scopes, within the last few hundred, and the next ones as well
 * (suspects.h), is a leak: its blocks are allocated in the general heap, so that nothing more is
 * counted of it. Counts are halved now and then, and the third time it has another chance. Being
 * wrong costs a little time, nothing else, so threads count without locks and may lose a count.
 */
#ifndef EBB_MALLOC_LEAKS_H
#define EBB_MALLOC_LEAKS_H

#include "base/hidden.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEAKS_KEYS 8192u
#define LEAKS_SURE 3u
#define LEAKS_MOST 12u      /* the count of a leak: the third halving leaves less than sure */
#define LEAKS_HALVING 1024u /* scopes that ended with survivors, between halvings */

extern HIDDEN struct leaks {
    _Atomic(uint8_t) count[LEAKS_KEYS]; /* of the scopes that the key has survived */
} leaks;

static inline uint32_t leaks_key(const void *caller, size_t bytes) {
    /* cheap, since every allocation in a scope asks */
    uint32_t place = (uint32_t)(uintptr_t)caller, class = (uint32_t)bytes & ~63u;
    return (place + 8 * class) * 0x9E3779B1u >> 19;
}

static inline bool leaks_is_sure(uint32_t key) {
    /* relaxed: see above */
    return atomic_load_explicit(&leaks.count[key], memory_order_relaxed) >= LEAKS_SURE;
}

/* A block of that key has survived. To be called once a key and scope. */
void leaks_note(uint32_t key);

/* A scope had such survivors. */
void leaks_turn(void);

/* How many keys are leaks. */
size_t leaks_count(void);

#endif
