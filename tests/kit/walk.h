// SPDX-License-Identifier: Apache-2.0
/*
 * walk.h - a step that repeats to the letter, until a test does something else with it.
 *
 * The blocks of a walk are alive in a window: each but the first few comes, then the one that came
 * WINDOW before goes. So the last WINDOW are alive at the end.
 */
#ifndef KIT_WALK_H
#define KIT_WALK_H

#include "kit/tables.h"

#include "base/poison.h"

#include <ebb/step.h>

enum { BLOCKS = 48, BLOCKS_MOST = 64, WINDOW = 5, BYTES = 6000, ALIGN = 64, LEARNING = 5 };

struct walk {
    ebb_pool *pool;
    ebb_region root;
    ebb_site *site;
    ebb_step step;
    struct track *track; /* of the step; NULL: it has none */
    unsigned count, came;
    bool keeps;    /* each twelfth block is promoted at the end */
    bool empties;  /* then all others go */
    unsigned tail; /* so many blocks come last, and none goes with them */
    size_t bytes[BLOCKS_MOST];
    void *blocks[BLOCKS_MOST];
};

static inline void begin_under(struct walk *walk, ebb_region root) {
    walk->step = ebb_step_begin_under(walk->site, root, 0);
    assert_true(ebb_region_is_open(walk->step.region));
    walk->track = track_of(walk->step);
    walk->came = 0;
}

static inline void begin(struct walk *walk) {
    begin_under(walk, walk->root);
}

static inline bool survives(const struct walk *walk, unsigned i) {
    return walk->keeps && i % 12 == 4;
}

static inline bool is_on(const struct walk *walk) {
    return walk->track && walk->track->due.on;
}

static inline void come(struct walk *walk, unsigned i) {
    walk->blocks[i] = ebb_region_alloc(walk->step.region, walk->bytes[i], ALIGN);
    assert_non_null(walk->blocks[i]);
    pattern_fill(walk->blocks[i], walk->bytes[i], i);
    walk->came = i + 1;
}

static inline void go(struct walk *walk, unsigned i) {
    assert_true(pattern_holds(walk->blocks[i], walk->bytes[i], i));
    assert_int_equal(ebb_region_release(walk->step.region, walk->blocks[i]), 0);
    walk->blocks[i] = NULL;
}

static inline bool goes_with(const struct walk *walk, unsigned i) {
    return i >= WINDOW && i < walk->count - walk->tail && !survives(walk, i - WINDOW);
}

static inline void walk_to(struct walk *walk, unsigned end) {
    for (unsigned i = walk->came; i < end; i++) {
        come(walk, i);
        if (goes_with(walk, i))
            go(walk, i - WINDOW);
    }
}

static inline void promote(struct walk *walk, unsigned i) {
    struct ebb_survivor survivor = survivor_of(walk->blocks[i], EBB_PROMOTE_AUTO);
    assert_int_equal(ebb_promote(walk->step.region, walk->root, &survivor, 1, NULL), 0);
    assert_true(pattern_holds(survivor.block, walk->bytes[i], i));
    assert_int_equal(ebb_region_release(walk->root, survivor.block), 0);
    walk->blocks[i] = NULL;
}

static inline void promote_all(struct walk *walk) {
    for (unsigned i = 0; i < walk->came; i++)
        if (survives(walk, i) && walk->blocks[i])
            promote(walk, i);
}

static inline void end(struct walk *walk) {
    assert_int_equal(ebb_step_end(walk->step), 0);
    if (walk->track && !walk->track->region) /* it is in no ring */
        assert_tables_hold(walk->track);
}

static inline void empty(struct walk *walk) {
    for (unsigned i = 0; i < walk->came; i++)
        if (walk->blocks[i])
            go(walk, i);
}

/* To its end, as always. */
static inline void walk_on(struct walk *walk) {
    walk_to(walk, walk->count);
    promote_all(walk);
    if (walk->empties)
        empty(walk);
    end(walk);
}

static inline void walk_once(struct walk *walk) {
    begin(walk);
    walk_on(walk);
}

static inline void look(const struct walk *walk) {
    struct ebb_region_stats stats = stats_of(walk->step.region);
    unsigned live = 0;
    size_t bytes = 0;
    for (unsigned i = 0; i < walk->came; i++)
        if (walk->blocks[i] && !survives(walk, i)) {
            live++;
            bytes += walk->bytes[i];
        }
    assert_int_equal(stats.blocks.current, live);
    assert_int_equal(stats.requested.current, bytes);
}

static inline struct walk walk_in(const struct stage *stage, unsigned count, size_t bytes) {
    struct walk walk = {.pool = stage->pool, .root = stage->root, .count = count};
    for (unsigned i = 0; i < count; i++)
        walk.bytes[i] = bytes;
    return walk;
}

/* It goes along tables if it can. */
static inline void learn_with(struct walk *walk, struct ebb_site_options *options) {
    options->pool = walk->pool;
    walk->site = ebb_site_create(options);
    for (unsigned i = 0; i < LEARNING; i++)
        walk_once(walk);
}

static inline struct walk learn(struct stage *stage, unsigned count, size_t bytes, bool keeps) {
    struct walk walk = walk_in(stage, count, bytes);
    walk.keeps = keeps;
    learn_with(&walk, EBB_SITE_OPTIONS(.name = "walk"));
    return walk;
}

/* Most tests: such a walk; none in builds where every block is seen. */
static inline struct walk begin_due(void **state, bool keeps) {
    if (EBB_POISON)
        skip();
    struct walk walk = learn(*state, BLOCKS, BYTES, keeps);
    begin(&walk);
    assert_true(is_on(&walk));
    return walk;
}

static inline void forget(struct walk *walk) {
    assert_int_equal(ebb_site_destroy(walk->site), 0);
}

/* Smaller and smaller, larger and larger, and smaller again. */
static inline void draw_sizes(struct walk *walk) {
    for (unsigned i = 0; i < BLOCKS; i++)
        walk->bytes[i] = BYTES - 64 * (i < 20 ? 20 - i : i - 20);
}

static inline void assert_nothing_is_marked(const struct track *track) {
    for (uint32_t i = 0; i < track->plan->slot_count; i++)
        assert_true(track->slots[i].mark != track->epoch);
}

#endif
