// SPDX-License-Identifier: Apache-2.0
/*
 * peer_apr.c - Apache's pools: one pool, cleared after each step. Its allocator keeps the nodes,
 * which is its default. Blocks are aligned to 8, not 16: sizes are rounded up to 16 by hand.
 */
#include <apr_general.h>
#include <apr_pools.h>

#include "cases.h"

static apr_pool_t *apr_root;

static void apr_set_up(enum micro_case which) {
    (void)which;
    apr_initialize();
    apr_pool_create(&apr_root, NULL);
}

MICRO_INLINE void apr_begin(struct step *step) {
    step->place = apr_root;
}

MICRO_INLINE void *apr_alloc(struct step *step, size_t bytes) {
    return apr_palloc((apr_pool_t *)step->place, (bytes + 15) & ~(size_t)15);
}

MICRO_INLINE void apr_end(struct step *step, const struct held *held) {
    (void)held;
    apr_pool_clear((apr_pool_t *)step->place);
}

MICRO_INLINE void apr_open(struct step *step) {
    apr_pool_t *pool = NULL;

    apr_pool_create(&pool, apr_root);
    step->place = pool;
}

MICRO_INLINE void apr_close(struct step *step) {
    apr_pool_destroy((apr_pool_t *)step->place);
}

static const struct peer_ops apr_ops = {
    .begin = apr_begin,
    .end = apr_end,
    .alloc = apr_alloc,
    .open = apr_open,
    .close = apr_close,
    .forgets = true,
};

static void apr_run(enum micro_case which, struct round *round) {
    cases_run(&apr_ops, which, round);
}

const struct peer peer_apr = {.set_up = apr_set_up, .run = apr_run};
