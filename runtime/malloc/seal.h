// SPDX-License-Identifier: Apache-2.0
/*
 * seal.h - what stands around a block of the hardened library.
 *
 *     | lead ... | struct seal | the program's bytes | tail |
 *                              ^ a multiple of the alignment
 *
 * The seal's hash is of the block's address, its size, the state and a secret of the process; the
 * tail is of the same, without the state. So what the program writes is neither by chance, nor if
 * it is copied from another block; and a block that was freed has not the hash of one that is
 * alive, whatever becomes of its bytes.
 */
#ifndef EBB_MALLOC_SEAL_H
#define EBB_MALLOC_SEAL_H

#include "base/hidden.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SEAL_TAIL ((size_t)16)

struct seal {
    uint64_t facts; /* bytes of the program << 8 | logarithm of the lead, the seal's own in it */
    uint64_t hash;
};

enum seal_state { SEAL_LIVE = 1, SEAL_FREED = 2 };

/* 0: it is not drawn yet. */
extern HIDDEN _Atomic(uint64_t) seal_secret;

/* Draws the secret, unless another thread has, and returns it. */
uint64_t seal_draw_secret(void);

static inline uint64_t seal_own_secret(void) {
    uint64_t secret = atomic_load_explicit(&seal_secret, memory_order_relaxed);
    return __builtin_expect(secret != 0, 1) ? secret : seal_draw_secret();
}

/* A hash, in which products are modulo 2^64 (tests/integer.ignore knows it by this name). */
static inline uint64_t mix(uint64_t number) {
    number = (number ^ number >> 32) * 0xD6E8FEB86659FD93u;
    number = (number ^ number >> 32) * 0xD6E8FEB86659FD93u;
    return number ^ number >> 32;
}

static inline struct seal *seal_of(const void *block) {
    return (struct seal *)(uintptr_t)block - 1;
}

static inline size_t seal_bytes(const struct seal *seal) {
    return seal->facts >> 8;
}

/* What the heap below knows the block by. */
static inline char *seal_place(char *block) {
    return block - ((size_t)1 << (seal_of(block)->facts & 255));
}

/* The hash that a block with these facts has in the state. */
static inline uint64_t seal_hash(const void *block, const struct seal *seal,
                                 enum seal_state state) {
    return mix(mix((uintptr_t)block ^ seal_own_secret()) ^ seal->facts) + (uint64_t)state;
}

static inline void seal_write_tail(const void *block, size_t bytes, unsigned char tail[SEAL_TAIL]) {
    uint64_t words[2] = {mix(~(uintptr_t)block ^ seal_own_secret()),
                         mix(bytes ^ seal_own_secret())};
    memcpy(tail, words, SEAL_TAIL);
}

static inline bool seal_has_tail(const void *block, size_t bytes) {
    unsigned char tail[SEAL_TAIL];
    seal_write_tail(block, bytes, tail);
    return memcmp((const char *)block + bytes, tail, SEAL_TAIL) == 0;
}

#endif
