// SPDX-License-Identifier: Apache-2.0
/*
 * heap_malloc.c - the process's malloc as a heap: glibc's, or that of a preloaded peer.
 *
 * Regions mean nothing here: opening and closing does nothing, and survivors simply live on.
 * Aligned blocks come from posix_memalign, as PyTorch asks for them. realloc to zero bytes asks
 * for one, since realloc(p, 0) frees.
 */
#include <stdlib.h>

#include "regionless.h"

static inline void *take(uint16_t region, size_t bytes, size_t align) {
    (void)region;
    if (align <= (size_t)1 << SCRIPT_ALIGN_LOG2)
        return malloc(bytes);
    void *block = NULL;
    return posix_memalign(&block, align, bytes) == 0 ? block : NULL;
}

static inline void *take_zeroed(uint16_t region, size_t bytes, size_t align) {
    (void)region;
    (void)align; /* calloc lines ask for the default */
    return calloc(1, bytes);
}

static inline void *resize(uint16_t region, void *block, size_t bytes) {
    (void)region;
    return realloc(block, bytes ? bytes : 1);
}

static inline void *move(uint16_t owner, uint16_t region, void *block, size_t old, size_t bytes) {
    (void)owner;
    (void)old;
    return resize(region, block, bytes);
}

static inline void give(uint16_t owner, void *block) {
    (void)owner;
    free(block);
}

static const struct heap_ops ops = {take, take_zeroed, resize,       move,
                                    give, open_nothing, close_nothing};

static void pass_bare(struct replay *replay) {
    loop_pass(replay, &ops, REPLAY_BARE);
}

static void pass_touch(struct replay *replay) {
    loop_pass(replay, &ops, REPLAY_TOUCH);
}

static void pass_account(struct replay *replay) {
    loop_pass(replay, &ops, REPLAY_ACCOUNT);
}

const struct heap heap_malloc = {
    .name = "malloc",
    .pass = {pass_bare, pass_touch, pass_account},
    .start = start_nothing,
};
