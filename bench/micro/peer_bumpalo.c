// SPDX-License-Identifier: Apache-2.0
/*
 * peer_bumpalo.c - the C half of bumpalo.rs. Steps of small10k and const run in Rust; in the
 * other cases each allocation is a call into it, which their larger blocks do not notice.
 */
#include "cases.h"

struct bump;

struct bump *bumpalo_new(size_t bytes);
void bumpalo_drop(struct bump *bump);
void *bumpalo_alloc(struct bump *bump, size_t bytes);
void bumpalo_reset(struct bump *bump);
void bumpalo_step(struct bump *bump, const uint32_t *bytes, void **blocks, size_t count);

static struct bump *bumpalo_root;

static void bumpalo_set_up(enum micro_case which) {
    size_t mib = which == CASE_LARGE ? 256 : which == CASE_CLOSE_N ? 64 : 32;

    bumpalo_root = bumpalo_new(mib << 20);
}

MICRO_INLINE void bumpalo_begin(struct step *step) {
    step->place = bumpalo_root;
}

MICRO_INLINE void *bumpalo_block(struct step *step, size_t bytes) {
    return bumpalo_alloc((struct bump *)step->place, bytes);
}

MICRO_INLINE void bumpalo_end(struct step *step, const struct held *held) {
    (void)held;
    bumpalo_reset((struct bump *)step->place);
}

MICRO_INLINE void bumpalo_open(struct step *step) {
    step->place = bumpalo_new(0);
}

MICRO_INLINE void bumpalo_close(struct step *step) {
    bumpalo_drop((struct bump *)step->place);
}

MICRO_INLINE void bumpalo_whole(const uint32_t *bytes, void **blocks, size_t count) {
    bumpalo_step(bumpalo_root, bytes, blocks, count);
}

static const struct peer_ops bumpalo_ops = {
    .begin = bumpalo_begin,
    .end = bumpalo_end,
    .alloc = bumpalo_block,
    .open = bumpalo_open,
    .close = bumpalo_close,
    .whole = bumpalo_whole,
    .forgets = true,
};

static void bumpalo_run(enum micro_case which, struct round *round) {
    cases_run(&bumpalo_ops, which, round);
}

const struct peer peer_bumpalo = {.set_up = bumpalo_set_up, .run = bumpalo_run};
