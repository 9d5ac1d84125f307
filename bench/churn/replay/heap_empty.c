// SPDX-License-Identifier: Apache-2.0
/*
 * heap_empty.c - a heap that does nothing: what the loop of a replay costs by itself.
 *
 * Only bare passes: its blocks have an address but no memory.
 */
#include "regionless.h"

static char nowhere[16];

static inline void *take(uint16_t region, size_t bytes, size_t align) {
    (void)region;
    (void)bytes;
    (void)align;
    return nowhere;
}

static inline void *resize(uint16_t region, void *block, size_t bytes) {
    (void)region;
    (void)bytes;
    return block;
}

static inline void *move(uint16_t owner, uint16_t region, void *block, size_t old, size_t bytes) {
    (void)owner;
    (void)region;
    (void)old;
    (void)bytes;
    return block;
}

static inline void give(uint16_t owner, void *block) {
    (void)owner;
    (void)block;
}

static const struct heap_ops ops = {take, take, resize, move, give, open_nothing, close_nothing};

static void pass_bare(struct replay *replay) {
    loop_pass(replay, &ops, REPLAY_BARE);
}

const struct heap heap_empty = {
    .name = "empty",
    .pass = {[REPLAY_BARE] = pass_bare},
    .start = start_nothing,
};
