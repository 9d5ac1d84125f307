// SPDX-License-Identifier: Apache-2.0
/*
 * peer_talloc.c - Samba's talloc with a pool that is large enough for the whole step: its
 * children are freed after each step, which takes the pool back to its beginning.
 */
#include <stdlib.h>
#include <talloc.h>

#include "cases.h"

static void *talloc_root;

static void talloc_set_up(enum micro_case which) {
    size_t mib = which == CASE_CLOSE_N ? 192 : 32; /* headers of 96 bytes, too; 256 are refused */

    talloc_root = talloc_pool(NULL, mib << 20);
    if (talloc_root == NULL)
        abort();
}

MICRO_INLINE void talloc_begin(struct step *step) {
    step->place = talloc_root;
}

MICRO_INLINE void *talloc_alloc(struct step *step, size_t bytes) {
    return talloc_size(step->place, bytes);
}

MICRO_INLINE void talloc_release(struct step *step, void *block) {
    (void)step;
    talloc_free(block);
}

MICRO_INLINE void talloc_end(struct step *step, const struct held *held) {
    (void)held;
    talloc_free_children(step->place);
}

MICRO_INLINE void talloc_open(struct step *step) {
    step->place = talloc_pool(NULL, 1024);
}

MICRO_INLINE void talloc_close(struct step *step) {
    talloc_free(step->place);
}

static const struct peer_ops talloc_ops = {
    .begin = talloc_begin,
    .end = talloc_end,
    .alloc = talloc_alloc,
    .release = talloc_release,
    .open = talloc_open,
    .close = talloc_close,
    .forgets = true,
};

static void talloc_run(enum micro_case which, struct round *round) {
    cases_run(&talloc_ops, which, round);
}

const struct peer peer_talloc = {.set_up = talloc_set_up, .run = talloc_run};
