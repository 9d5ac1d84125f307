// SPDX-License-Identifier: Apache-2.0
/*
 * experts.c - a mixture of experts: each block follows the load of its expert, which is drawn anew
 * in each step. Plans of such steps add up loads that never come together.
 */
#include "kit/test.h"

enum { LAYERS = 4, EXPERTS = 8, KEPT = 3, STEPS = 120, WIDTH = 128,
       PAGES = 1 << 18 /* in 1 GiB */ };

/* Bytes that are alive in a step, and pages that held some; the most of all steps. */
struct held {
    size_t live, pages, most_live, most_pages;
    bool touched[PAGES];
};

struct block {
    unsigned char *at;
    size_t bytes;
};

static struct block take(struct held *held, ebb_region region, size_t bytes) {
    struct block block = {ebb_region_alloc(region, bytes, 64), bytes};
    assert_non_null(block.at);
    for (uintptr_t page = (uintptr_t)block.at / PAGE;
         page <= ((uintptr_t)block.at + bytes - 1) / PAGE; page++) {
        held->pages += !held->touched[page % PAGES];
        held->touched[page % PAGES] = true;
    }
    held->live += bytes;
    held->most_live = held->live > held->most_live ? held->live : held->most_live;
    return block;
}

static void drop(struct held *held, ebb_region region, struct block block) {
    assert_int_equal(ebb_region_release(region, block.at), 0);
    held->live -= block.bytes;
}

static unsigned draw(uint32_t *chance, unsigned most) {
    *chance = (uint32_t)(*chance * UINT64_C(1664525) + 1013904223);
    return (*chance >> 8) % most;
}

/* Two experts for each token of a layer; as even as `least` of 100 says. */
static void route(uint32_t *chance, size_t tokens, unsigned least, size_t loads[EXPERTS]) {
    size_t weights = 0;
    for (unsigned e = 0; e < EXPERTS; e++)
        weights += loads[e] = least + draw(chance, 101 - least);
    for (unsigned e = 0; e < EXPERTS; e++)
        loads[e] = 1 + 2 * tokens * loads[e] / weights;
}

/* Forth and back. */
static void take_step(struct held *held, ebb_region region, uint32_t *chance, size_t tokens,
                      unsigned least) {
    struct block kept[LAYERS][EXPERTS][KEPT];
    size_t loads[EXPERTS];
    for (unsigned l = 0; l < LAYERS; l++) {
        route(chance, tokens, least, loads);
        for (unsigned e = 0; e < EXPERTS; e++) {
            struct block gate = take(held, region, 4 * loads[e] * WIDTH);
            for (unsigned k = 0; k < KEPT; k++)
                kept[l][e][k] = take(held, region, (k == 1 ? 4 : 1) * loads[e] * WIDTH);
            drop(held, region, gate);
        }
    }
    for (unsigned l = LAYERS; l--;)
        for (unsigned e = EXPERTS; e--;)
            for (unsigned k = KEPT; k--;) {
                struct block gradient = take(held, region, kept[l][e][k].bytes);
                drop(held, region, kept[l][e][k]);
                drop(held, region, gradient);
            }
}

/* Of lengths that are all the same, or drawn as well. */
static void what_is_held_for_experts_is_little_more_than_is_alive(void **state) {
    static const unsigned least[] = {1, 50, 80};
    static struct held held;
    struct stage *stage = *state;
    for (unsigned i = 0; i < 2 * sizeof least / sizeof *least; i++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        uint32_t chance = i + 1;
        held = (struct held){0};
        for (unsigned k = 0; k < STEPS; k++) {
            size_t tokens = i % 2 ? 64 + draw(&chance, 193) : 256;
            ebb_step step = ebb_step_begin(site, 0);
            memset(held.touched, 0, sizeof held.touched);
            held.live = held.pages = 0;
            take_step(&held, step.region, &chance, tokens, least[i / 2]);
            held.most_pages = held.pages > held.most_pages ? held.pages : held.most_pages;
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_true(held.most_pages * PAGE <= held.most_live / 4 * 5);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(what_is_held_for_experts_is_little_more_than_is_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
