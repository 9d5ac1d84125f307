// SPDX-License-Identifier: Apache-2.0
/*
 * peer_malloc.c - malloc and free of the process: glibc's, or those of the library that the
 * parent put into LD_PRELOAD. The step ends by freeing its blocks one by one, oldest first.
 */
#include <stdlib.h>

#include "cases.h"

MICRO_INLINE void malloc_begin(struct step *step) {
    (void)step;
}

MICRO_INLINE void *malloc_alloc(struct step *step, size_t bytes) {
    (void)step;
    return malloc(bytes);
}

MICRO_INLINE void malloc_release(struct step *step, void *block) {
    (void)step;
    free(block);
}

MICRO_INLINE void malloc_end(struct step *step, const struct held *held) {
    (void)step;
    for (size_t i = 0; i < held->count; i++)
        free(held->blocks[i]);
}

MICRO_INLINE void *malloc_keep(struct step *step, void *block, size_t bytes) {
    (void)step;
    (void)bytes;
    return block;
}

static const struct peer_ops malloc_ops = {
    .begin = malloc_begin,
    .end = malloc_end,
    .alloc = malloc_alloc,
    .release = malloc_release,
    .keep = malloc_keep,
    .drop = free,
};

static void malloc_run(enum micro_case which, struct round *round) {
    cases_run(&malloc_ops, which, round);
}

const struct peer peer_malloc = {.run = malloc_run};
