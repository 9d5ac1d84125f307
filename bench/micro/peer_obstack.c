// SPDX-License-Identifier: Apache-2.0
/*
 * peer_obstack.c - glibc's obstacks, with chunks of 4 MiB and blocks aligned to 16. Freeing the
 * first block of a step frees all of it and keeps the first chunk.
 */
#include <obstack.h>
#include <stdlib.h>

#include "cases.h"

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

static struct obstack obstack_root;
static void *obstack_first;

static void obstack_set_up(enum micro_case which) {
    (void)which;
    obstack_specify_allocation(&obstack_root, 4 << 20, 16, obstack_chunk_alloc,
                               obstack_chunk_free);
    obstack_first = obstack_alloc(&obstack_root, 16);
}

MICRO_INLINE void obstack_reopen(struct step *step) {
    step->place = &obstack_root;
}

MICRO_INLINE void *obstack_block(struct step *step, size_t bytes) {
    struct obstack *stack = (struct obstack *)step->place;

    return obstack_alloc(stack, (int)bytes);
}

MICRO_INLINE void obstack_end(struct step *step, const struct held *held) {
    struct obstack *stack = (struct obstack *)step->place;

    (void)held;
    obstack_free(stack, obstack_first);
    obstack_first = obstack_alloc(stack, 16);
}

MICRO_INLINE void obstack_open(struct step *step) {
    static struct obstack stack;

    obstack_init(&stack);
    step->place = &stack;
}

MICRO_INLINE void obstack_close(struct step *step) {
    struct obstack *stack = (struct obstack *)step->place;

    obstack_free(stack, NULL);
}

static const struct peer_ops obstack_ops = {
    .begin = obstack_reopen,
    .end = obstack_end,
    .alloc = obstack_block,
    .open = obstack_open,
    .close = obstack_close,
    .forgets = true,
};

static void obstack_run(enum micro_case which, struct round *round) {
    cases_run(&obstack_ops, which, round);
}

const struct peer peer_obstack = {.set_up = obstack_set_up, .run = obstack_run};
