// SPDX-License-Identifier: Apache-2.0
/*
 * shape.c - steps that are never alike: their loops turn another number of times in each.
 *
 *     forth   hidden, two that are kept; the hidden one goes
 *     back    a gradient; what was kept goes, then the gradient; from the last trip to the first
 *
 * Invariant: the same `random` gives the same steps. What has a key has one size.
 */
#include "shape.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { KIB = 1 << 10, TRIPS_MOST = 128, KEYS_OF_A_BODY = 4 };

/* Lehmer's generator: 1 to 2^31 - 2. */
static uint32_t draw(uint32_t *random, uint32_t least, uint32_t most) {
    *random = (uint32_t)((uint64_t)*random * 48271 % 2147483647);
    return least + *random % (most - least + 1);
}

/* ---- events ---- */

static void add(struct script *script, struct event event) {
    if (script->count == script->limit) {
        script->limit = script->limit ? 2 * script->limit : 256;
        script->events = realloc(script->events, script->limit * sizeof *script->events);
        if (!script->events) {
            fputs("ebb-keys: no memory\n", stderr);
            exit(2);
        }
    }
    script->events[script->count++] = event;
}

static uint32_t come(struct script *script, uint32_t key, size_t bytes) {
    add(script, (struct event){script->blocks, key, bytes});
    return script->blocks++;
}

static void go(struct script *script, uint32_t block) {
    add(script, (struct event){.block = block});
}

void script_draw(struct script *script, const struct shape *shape, uint32_t *random) {
    script->count = script->blocks = 0;
    shape->draw(script, random);
}

void script_free(struct script *script) {
    free(script->events);
}

/* ---- bodies of loops ---- */

struct kept {
    uint32_t block[2];
};

/* The body's keys are `key` to `key` + 3. */
static struct kept forth(struct script *script, uint32_t key) {
    uint32_t hidden = come(script, key, 32 * KIB);
    struct kept kept = {{come(script, key + 1, 8 * KIB), come(script, key + 2, 24 * KIB)}};
    go(script, hidden);
    return kept;
}

static void back(struct script *script, uint32_t key, struct kept kept) {
    uint32_t gradient = come(script, key + 3, 32 * KIB);
    go(script, kept.block[0]);
    go(script, kept.block[1]);
    go(script, gradient);
}

static void forth_all(struct script *script, uint32_t key, uint32_t trips, struct kept *kept) {
    for (uint32_t i = 0; i < trips; i++)
        kept[i] = forth(script, key);
}

static void back_all(struct script *script, uint32_t key, uint32_t trips,
                     const struct kept *kept) {
    for (uint32_t i = trips; i > 0; i--)
        back(script, key, kept[i - 1]);
}

/* ---- shapes ---- */

static void draw_loop(struct script *script, uint32_t *random) {
    uint32_t trips = draw(random, 20, 100);
    struct kept kept[TRIPS_MOST];
    forth_all(script, 1, trips, kept);
    back_all(script, 1, trips, kept);
}

static void draw_two(struct script *script, uint32_t *random) {
    uint32_t first = draw(random, 10, 50), second = draw(random, 10, 50);
    struct kept kept[2][TRIPS_MOST];
    forth_all(script, 1, first, kept[0]);
    forth_all(script, 11, second, kept[1]);
    back_all(script, 11, second, kept[1]);
    back_all(script, 1, first, kept[0]);
}

/* The outer loop keeps a block of its own in each trip. */
static void draw_loops(struct script *script, uint32_t *random, bool ragged) {
    uint32_t outer = draw(random, 4, 12), inner = draw(random, 2, 10);
    struct kept kept[16][16];
    uint32_t trips[16], own[16];
    for (uint32_t i = 0; i < outer; i++) {
        trips[i] = ragged ? draw(random, 2, 10) : inner;
        own[i] = come(script, 1, 16 * KIB);
        forth_all(script, 11, trips[i], kept[i]);
    }
    for (uint32_t i = outer; i > 0; i--) {
        uint32_t gradient = come(script, 2, 16 * KIB);
        back_all(script, 11, trips[i - 1], kept[i - 1]);
        go(script, own[i - 1]);
        go(script, gradient);
    }
}

static void draw_nested(struct script *script, uint32_t *random) {
    draw_loops(script, random, false);
}

static void draw_ragged(struct script *script, uint32_t *random) {
    draw_loops(script, random, true);
}

/* As in inference: what a trip of the outer loop made goes at its end, but for a result. */
static void draw_items(struct script *script, uint32_t *random) {
    uint32_t outer = draw(random, 4, 12);
    for (uint32_t i = 0; i < outer; i++) {
        uint32_t inner = draw(random, 2, 10);
        struct kept kept[16];
        uint32_t input = come(script, 1, 64 * KIB);
        forth_all(script, 11, inner, kept);
        (void)come(script, 2, 4 * KIB);
        for (uint32_t k = 0; k < inner; k++) {
            go(script, kept[k].block[0]);
            go(script, kept[k].block[1]);
        }
        go(script, input);
    }
}

/* Nothing goes back. */
static void draw_forward(struct script *script, uint32_t *random) {
    struct kept kept[TRIPS_MOST];
    forth_all(script, 1, draw(random, 20, 100), kept);
}

/* One of four is left out. */
static void draw_layers_of(struct script *script, uint32_t *random, bool own) {
    enum { LAYERS = 48 };
    struct kept kept[LAYERS];
    uint32_t keys[LAYERS], count = 0;
    for (uint32_t i = 0; i < LAYERS; i++) {
        if (draw(random, 1, 4) == 1)
            continue;
        keys[count] = own ? 1 + i * KEYS_OF_A_BODY : 1;
        kept[count] = forth(script, keys[count]);
        count++;
    }
    for (; count > 0; count--)
        back(script, keys[count - 1], kept[count - 1]);
}

static void draw_layers(struct script *script, uint32_t *random) {
    draw_layers_of(script, random, false);
}

static void draw_own(struct script *script, uint32_t *random) {
    draw_layers_of(script, random, true);
}

/* A test after each trip, which may be the last one; what follows has keys of its own. */
static void draw_exits(struct script *script, uint32_t *random) {
    uint32_t trips = draw(random, 20, 60), tests[TRIPS_MOST];
    struct kept kept[TRIPS_MOST];
    for (uint32_t i = 0; i < trips; i++) {
        kept[i] = forth(script, 1);
        tests[i] = come(script, 11, 4 * KIB);
    }
    uint32_t loss = come(script, 12, 64 * KIB);
    for (uint32_t i = trips; i > 0; i--) {
        go(script, tests[i - 1]);
        back(script, 1, kept[i - 1]);
    }
    go(script, loss);
}

/* A node has none or two below it. */
static void grow(struct script *script, uint32_t *random, uint32_t depth) {
    struct kept kept;
    if (depth == 0 || draw(random, 1, 4) == 1) {
        kept = forth(script, 1);
        back(script, 1, kept);
        return;
    }
    kept = forth(script, 11);
    grow(script, random, depth - 1);
    grow(script, random, depth - 1);
    back(script, 11, kept);
}

static void draw_tree(struct script *script, uint32_t *random) {
    grow(script, random, 6);
}

/* One of three programs, by chance. */
static void draw_kinds(struct script *script, uint32_t *random) {
    uint32_t kind = draw(random, 0, 2), trips = draw(random, 20, 40);
    struct kept kept[TRIPS_MOST];
    forth_all(script, 1 + 10 * kind, trips, kept);
    back_all(script, 1 + 10 * kind, trips, kept);
}

const struct shape shapes[] = {
    {"loop", draw_loop},     {"two", draw_two},       {"nested", draw_nested},
    {"ragged", draw_ragged}, {"items", draw_items},   {"forward", draw_forward},
    {"layers", draw_layers}, {"own-keys", draw_own},  {"exits", draw_exits},
    {"tree", draw_tree},     {"kinds", draw_kinds},
};
const size_t shape_count = sizeof shapes / sizeof *shapes;
