// SPDX-License-Identifier: Apache-2.0
/*
 * due_tables.c - the tables of a step that repeats to the letter: when there are any, what they
 * have, and what needs no look at anything else.
 */
#include "kit/walk.h"

static void nothing_but_a_pointer_moves_for_what_is_due(void **state) {
    struct walk walk = begin_due(state, false);
    struct track before = *walk.track, *track = walk.track;
    const struct ebb_lane *lane = walk.step.region.lane;
    const struct ebb_due *due = track->due.events;
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_ptr_equal(lane->due, due++);
        come(&walk, i);
        assert_ptr_equal(lane->due, due);
        if (i < WINDOW)
            continue;
        go(&walk, i - WINDOW);
        assert_ptr_equal(lane->due, ++due);
    }
    assert_memory_equal(track, &before, sizeof before);
    end(&walk);
    forget(&walk);
}

/* Requests that are like the one that is due only in parts. */
static void ask_for_what_is_like_it(ebb_region region, uint64_t due) {
    size_t align = due >> 32, bytes = (uint32_t)due;
    assert_no_block(ebb_region_alloc(region, bytes, align | (size_t)1 << 32), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(region, bytes, align | (size_t)1 << 63), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(region, due, 0), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(region, due, align), EBB_E_POOL_LIMIT);
}

/* And what is like nothing at all, which may be due as well. */
static void ask_for_nothing(ebb_region region) {
    const struct ebb_due *due = region.lane->due;
    assert_no_block(ebb_region_alloc(region, 0, 0), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(region, due_nothing.request, 0), EBB_E_ALIGNMENT);
    assert_int_equal(ebb_region_release(region, NULL), 0);
    assert_true(region.lane->due == due || region.lane->due == &due_nothing);
}

static void only_what_is_due_is_taken_for_it(void **state) {
    for (unsigned released = 0; released < 2 && !EBB_POISON; released++) {
        struct walk walk = begin_due(state, false);
        ebb_region region = walk.step.region;
        walk_to(&walk, 20);
        if (released)
            come(&walk, 20);
        struct ebb_due due = *region.lane->due;
        assert_int_equal(due.request == 0, released);
        assert_int_equal(ebb_pool_set_reserved_limit(walk.pool, 64 * MIB), 0); /* not 256 GiB */
        for (unsigned turn = 0; turn < 2; turn++) { /* while it is due, and nothing is */
            if (released)
                assert_refused(ebb_region_release(region, (void *)(due.addr + 1)), EBB_E_INTERIOR);
            else
                ask_for_what_is_like_it(region, due.request);
            ask_for_nothing(region);
            assert_true(ebb_region_mark(region).serial);
            assert_ptr_equal(region.lane->due, &due_nothing);
        }
        if (released)
            go(&walk, 15);
        walk_to(&walk, BLOCKS);
        assert_int_equal(stats_of(region).blocks.total, BLOCKS);
        assert_int_equal(stats_of(region).blocks.current, WINDOW);
        walk_on(&walk);
        forget(&walk);
    }
}

/* Nor is a block released where it is allocated, which has the same address. */
static void a_place_is_not_released_before_its_block_has_come(void **state) {
    struct walk walk = begin_due(state, false);
    walk_to(&walk, 20);
    void *place = (void *)walk.track->slots[20].addr;
    bool is_free = true;
    for (unsigned i = 0; i < 20; i++)
        is_free &= walk.blocks[i] != place;
    if (is_free && !EBB_POISON)
        assert_refused(ebb_region_release(walk.step.region, place), EBB_E_RELEASED);
    walk_on(&walk);
    forget(&walk);
}

static void a_whole_step_is_marked_once_after_another_and_never_again(void **state) {
    struct walk walk = begin_due(state, false);
    walk_on(&walk);
    assert_nothing_is_marked(walk.track);
    begin(&walk);
    walk_to(&walk, BLOCKS / 2);
    assert_int_equal(ebb_region_block_bytes(walk.step.region, walk.blocks[BLOCKS / 2 - 1]), BYTES);
    assert_true(!is_on(&walk) && walk.track->open); /* as a plan serves without tables */
    walk_on(&walk);
    assert_false(walk.track->due.sizes_right);
    for (unsigned i = 0; i < 3; i++) {
        walk_once(&walk);
        assert_true(walk.track->due.sizes_right);
        assert_int_equal(walk.track->slots[BLOCKS - 1].mark == walk.track->epoch, !i);
        assert_int_equal(walk.track->due.fails, 0);
    }
    assert_nothing_is_marked(walk.track);
    forget(&walk);
}

static void a_step_that_ends_early_is_marked(void **state) {
    struct walk walk = begin_due(state, false);
    walk_to(&walk, 2);
    assert_int_equal(ebb_region_block_bytes(walk.step.region, walk.blocks[0]), BYTES);
    walk_on(&walk); /* slots have no right sizes */
    begin(&walk);
    walk_to(&walk, BLOCKS / 2);
    end(&walk);
    assert_false(walk.track->due.sizes_right);
    forget(&walk);
}

static void births_are_no_stops_and_need_no_marks(void **state) {
    struct walk walk = begin_due(state, true);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_true(is_on(&walk));
        walk_to(&walk, i + 1);
        assert_int_equal(walk.track->due.marked_slots, 0);
        if (survives(&walk, i))
            assert_ptr_equal(ebb_region_of(walk.blocks[i]).lane, walk.root.lane);
    }
    assert_int_equal(walk.track->due.stops, 0);
    promote_all(&walk);
    assert_int_equal(walk.track->due.marked_slots, 0);
    assert_true(is_on(&walk));
    end(&walk);
    assert_nothing_is_marked(walk.track);
    forget(&walk);
}

/* The parent has it, but not at once. */
static void a_birth_of_another_alignment_is_a_stop(void **state) {
    struct walk walk = begin_due(state, true);
    walk_to(&walk, 4);
    walk.blocks[walk.came++] = block_of(walk.step.region, BYTES, ALIGN / 2);
    assert_ptr_equal(ebb_region_of(walk.blocks[4]).lane, walk.root.lane);
    assert_true(is_on(&walk));
    assert_int_equal(walk.track->due.stops, 1);
    assert_int_equal(ebb_region_release(walk.step.region, walk.blocks[4]), 0);
    walk.blocks[4] = NULL;
    walk_on(&walk);
    forget(&walk);
}

static void what_is_known_of_births_stays_if_others_are_marked(void **state) {
    struct walk walk = begin_due(state, true);
    walk_to(&walk, 20);
    uint32_t bytes = walk.track->slots[4].bytes;
    assert_int_equal(ebb_region_block_bytes(walk.step.region, walk.blocks[19]), BYTES);
    assert_int_equal(walk.track->slots[4].bytes, bytes);
    assert_int_equal(ebb_check_pool(walk.pool), 0);
    walk_on(&walk);
    forget(&walk);
}

static void survivors_that_are_left_to_the_lanes_are_stops_too(void **state) {
    struct stage *stage = *state;
    struct walk walk = walk_in(stage, BLOCKS, BYTES);
    walk.keeps = true;
    learn_with(&walk, EBB_SITE_OPTIONS(.name = "left", .tenure_none = true));
    for (begin(&walk); walk.came < BLOCKS; walk_to(&walk, walk.came + 1))
        assert_true(EBB_POISON || is_on(&walk));
    assert_true(EBB_POISON || walk.track->due.marked_slots == 0);
    promote_all(&walk);
    end(&walk);
    forget(&walk);
}

static void what_lies_in_the_lanes_goes_without_marks(void **state) {
    struct stage *stage = *state;
    struct walk walk = walk_in(stage, BLOCKS, BYTES);
    walk.keeps = true;
    learn_with(&walk, EBB_SITE_OPTIONS(.name = "left", .tenure_none = true));
    begin(&walk);
    walk_to(&walk, 20);
    go(&walk, 4);
    assert_true(EBB_POISON || is_on(&walk));
    walk_on(&walk);
    assert_true(EBB_POISON || walk.track->due.marked_slots == 0);
    forget(&walk);
}

/* As the pool tells it, which stops nobody. */
static void assert_pool_has(const struct walk *walk, uint64_t came, uint64_t blocks) {
    struct ebb_pool_stats stats = pool_stats_of(walk->pool);
    uint64_t room = walk->track->slots[0].room;
    assert_int_equal(stats.blocks.current, blocks);
    assert_int_equal(stats.blocks.total, came);
    assert_int_equal(stats.requested.current, blocks * BYTES);
    assert_int_equal(stats.requested.total, came * BYTES);
    assert_int_equal(stats.used.current, blocks * room);
    assert_int_equal(stats.used.total, came * room);
}

static void who_reads_the_pool_counts_what_is_not_counted(void **state) {
    for (unsigned keeps = 0; keeps < 2; keeps++) {
        struct walk walk = begin_due(state, keeps);
        uint64_t before = pool_stats_of(walk.pool).blocks.total, live = 0;
        for (unsigned i = 0; i < BLOCKS; i++) {
            come(&walk, i);
            assert_pool_has(&walk, before + i + 1, ++live);
            if (!goes_with(&walk, i))
                continue;
            go(&walk, i - WINDOW);
            assert_pool_has(&walk, before + i + 1, --live);
        }
        assert_int_equal(walk.track->due.stops, 0);
        promote_all(&walk);
        end(&walk);
        forget(&walk);
    }
}

/* The most that was alive at once, as asked for, or in rooms. */
static size_t most_alive(const struct walk *walk, bool rooms) {
    size_t most = 0;
    for (unsigned i = WINDOW; i < BLOCKS; i++) {
        size_t sum = 0;
        for (unsigned k = i - WINDOW; k <= i; k++)
            sum += rooms ? walk->track->slots[k].room : walk->bytes[k];
        most = sum > most ? sum : most;
    }
    return most;
}

static void the_most_may_have_been_between_two_stops(void **state) {
    struct stage *stage = *state;
    struct walk walk = walk_in(stage, BLOCKS, BYTES);
    draw_sizes(&walk);
    learn_with(&walk, EBB_SITE_OPTIONS(.name = "waves"));
    begin(&walk);
    walk_to(&walk, BLOCKS);
    if (!EBB_POISON)
        assert_true(is_on(&walk) && walk.track->due.stops == 0);
    struct ebb_region_stats stats = stats_of(walk.step.region);
    assert_int_equal(stats.requested.peak, most_alive(&walk, false));
    assert_true(EBB_POISON || stats.used.peak == most_alive(&walk, true));
    end(&walk);
    forget(&walk);
}

/* ---- tables ---- */

static void a_step_of_few_blocks_has_none(void **state) {
    for (unsigned count = 31; count <= 32; count++) {
        struct walk walk = learn(*state, count, BYTES, false);
        begin(&walk);
        assert_int_equal(is_on(&walk), !EBB_POISON && count == 32);
        walk_on(&walk);
        forget(&walk);
    }
}

static void tables_have_an_eighth_of_the_height_at_most(void **state) {
    for (unsigned count = 40; count < 60 && !EBB_POISON; count++) {
        struct walk large = learn(*state, count, 3 * BYTES, false);
        size_t bytes = bytes_of_tables(&large.track->due);
        for (unsigned pages = 2; pages < 6; pages++) {
            struct walk walk = learn(*state, count, (pages * PAGE / (WINDOW + 1)) & ~63u, false);
            assert_int_equal(walk.track->plan->height_bytes, pages * PAGE);
            assert_int_equal(walk.track->due.events != NULL, 8 * bytes <= pages * PAGE);
            assert_int_equal(walk.track->due.too_large, 8 * bytes > pages * PAGE);
            forget(&walk);
        }
        forget(&large);
    }
}

/* Steps that have no memory for them are left alone as those are that were not worth it. */
static void who_finds_no_memory_for_tables_does_not_ask_at_each_step(void **state) {
    if (EBB_POISON)
        skip();
    struct walk walk = walk_in(*state, BLOCKS, BYTES);
    walk.site = ebb_site_create(EBB_SITE_OPTIONS(.name = "poor", .pool = walk.pool));
    do
        walk_once(&walk);
    while (!walk.track || !walk.track->due.in_order);
    assert_null(walk.track->due.events);
    (void)ebb_pool_trim(plan_pool(), 0);
    size_t owned = pool_stats_of(plan_pool()).owned;
    assert_int_equal(ebb_pool_set_reserved_limit(plan_pool(), owned), 0);
    for (unsigned i = 0; i < 1 + 2 + 1 + 4; i++) {
        begin(&walk);
        assert_false(is_on(&walk));
        assert_int_equal(walk.track->due.fails, i < 1 + 2 ? 1 : 2);
        walk_on(&walk);
    }
    assert_int_equal(ebb_pool_set_reserved_limit(plan_pool(), 0), 0);
    begin(&walk);
    assert_true(is_on(&walk));
    walk_on(&walk);
    assert_int_equal(walk.track->due.fails, 0);
    forget(&walk);
}

static void numbers_of_steps_may_start_anew(void **state) {
    struct walk walk = begin_due(state, false);
    walk_on(&walk);
    walk.track->epoch = UINT32_MAX;
    for (unsigned i = 0; i < 3; i++)
        walk_once(&walk);
    forget(&walk);
}

static void plans_with_keys_have_none(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    struct track *track = NULL;
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        track = track_of(step);
        assert_true(!track || !track->due.on);
        for (unsigned k = 0; k < BLOCKS; k++)
            assert_non_null(ebb_step_alloc(step, BYTES, ALIGN, k % 8 + 1));
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_non_null(track->plan->by_key);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void plans_without_small_blocks_have_none(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    bool coarse = false;
    for (unsigned i = 0; i < 3 * LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        const struct track *track = track_of(step);
        coarse |= track && track->coarse;
        assert_true(!track || !track->coarse || !track->due.on);
        for (unsigned k = 0; k < BLOCKS + i; k++)
            block_of(step.region, k < BLOCKS ? BYTES : 32, 16);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_true(coarse);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A step in another pool, where the arena is elsewhere. */
static ebb_pool *open_other(ebb_region *root) {
    ebb_pool *pool = POOL(.name = "other");
    *root = OPEN(.pool = pool);
    return pool;
}

static void close_other(ebb_pool *pool, ebb_region root) {
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

static void tables_follow_the_arena(void **state) {
    struct walk walk = begin_due(state, false);
    ebb_region other;
    ebb_pool *pool = open_other(&other);
    walk_on(&walk);
    uintptr_t here = walk.track->base;
    begin_under(&walk, other);
    assert_true(is_on(&walk));
    assert_true(walk.track->base != here);
    assert_int_equal(walk.track->due.base, walk.track->base);
    walk_on(&walk);
    forget(&walk);
    close_other(pool, other);
}

static void what_comes_elsewhere_is_not_noted_in_tables_of_here(void **state) {
    struct walk walk = begin_due(state, false);
    ebb_region other;
    ebb_pool *pool = open_other(&other);
    walk_to(&walk, BLOCKS / 2);
    end(&walk); /* too early: its sizes make no tables */
    begin_under(&walk, other);
    assert_false(is_on(&walk));
    walk_to(&walk, 20);
    walk.bytes[20] -= 100;
    walk.blocks[20] = ebb_region_alloc(walk.step.region, walk.bytes[20], ALIGN / 2);
    assert_int_equal((uintptr_t)walk.blocks[20], walk.track->slots[20].addr);
    pattern_fill(walk.blocks[20], walk.bytes[20], 20);
    walk.came++;
    if (goes_with(&walk, 20))
        go(&walk, 20 - WINDOW);
    walk_on(&walk);
    begin(&walk);
    assert_true(is_on(&walk));
    walk_on(&walk);
    forget(&walk);
    close_other(pool, other);
}

static void sizes_that_tables_learn_late_are_no_span_s(void **state) {
    struct walk walk = begin_due(state, false);
    ebb_region other;
    ebb_pool *pool = open_other(&other);
    for (unsigned step = 0; step < 3; step++) {
        walk_to(&walk, 10);
        if (step == 1) { /* without tables from here on */
            assert_int_equal(ebb_region_block_bytes(walk.step.region, walk.blocks[9]), BYTES);
            walk.bytes[28] -= 16;
        } else {
            look(&walk);
        }
        walk_to(&walk, 30);
        look(&walk);
        walk_on(&walk);
        begin_under(&walk, step ? other : walk.root);
        assert_true(is_on(&walk));
    }
    end(&walk);
    forget(&walk);
    close_other(pool, other);
}

/* ---- above and below ---- */

enum { LAYERS = 120, GRADIENTS = 2, LATE = 4, LARGE = 128 << 10, SMALL = 2 << 10 };

struct pass {
    struct stage *stage;
    ebb_site *site;
    ebb_step step;
    void *gradients[GRADIENTS]; /* of the last step */
    bool due;                   /* this one goes along tables */
    unsigned guests;
};

static void *block_in_pass(const struct pass *pass, size_t bytes) {
    void *block = block_of(pass->step.region, bytes, 64);
    assert_int_equal(track_of(pass->step) && track_of(pass->step)->due.on, pass->due);
    return block;
}

/* The last ones go before gradients come: while these are not there, they can be guests. */
static size_t layer_bytes(unsigned i) {
    return i < LAYERS - GRADIENTS ? SMALL : LARGE;
}

static void release_layer(struct pass *pass, void *layer, size_t bytes) {
    pass->guests += ebb_region_of(layer).lane == pass->stage->root.lane;
    assert_true(pattern_holds(layer, bytes, (unsigned)bytes));
    assert_int_equal(ebb_region_release(pass->step.region, layer), 0);
    assert_int_equal(track_of(pass->step) && track_of(pass->step)->due.on, pass->due);
}

static void backward(struct pass *pass, void **layers, void **gradients) {
    unsigned made = 0;
    for (unsigned i = LAYERS; i-- > 0; release_layer(pass, layers[i], layer_bytes(i)))
        if (i < LAYERS - LATE && made < GRADIENTS)
            gradients[made++] = block_in_pass(pass, LARGE);
}

static void take_pass(struct pass *pass) {
    void *layers[LAYERS], *gradients[GRADIENTS];
    struct ebb_survivor survivors[GRADIENTS];
    pass->step = ebb_step_begin_under(pass->site, pass->stage->root, 0);
    pass->guests = 0;
    struct track *track = track_of(pass->step);
    pass->due = track && track->due.on;
    for (unsigned i = 0; i < GRADIENTS; i++)
        assert_int_equal(ebb_region_release(pass->stage->root, pass->gradients[i]), 0);
    for (unsigned i = 0; i < LAYERS; i++)
        layers[i] = block_in_pass(pass, layer_bytes(i));
    backward(pass, layers, gradients);
    for (unsigned i = 0; i < GRADIENTS; i++)
        survivors[i] = survivor_of(gradients[i], EBB_PROMOTE_AUTO);
    assert_int_equal(ebb_step_end_keeping(pass->step, pass->stage->root, survivors, GRADIENTS,
                                          NULL, NULL), 0);
    for (unsigned i = 0; i < GRADIENTS; i++)
        pass->gradients[i] = survivors[i].block;
    if (track)
        assert_tables_hold(track);
}

static void guests_come_and_go_and_the_step_goes_on(void **state) {
    struct pass pass = {.stage = *state};
    pass.site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pass.stage->pool));
    for (unsigned i = 0; i < 2 * LEARNING; i++)
        take_pass(&pass);
    assert_true(pass.due || EBB_POISON);
    assert_int_equal(pass.guests, GRADIENTS);
    for (unsigned i = 0; i < GRADIENTS; i++)
        assert_int_equal(ebb_region_release(pass.stage->root, pass.gradients[i]), 0);
    assert_int_equal(ebb_site_destroy(pass.site), 0);
}

/* A block that the library is called for. */
static void come_zeroed(struct walk *walk, unsigned i) {
    walk->blocks[i] = ebb_region_alloc_zeroed(walk->step.region, walk->bytes[i], ALIGN);
    assert_non_null(walk->blocks[i]);
    pattern_fill(walk->blocks[i], walk->bytes[i], i);
    walk->came = i + 1;
}

/* A step below the walk has a block that it promotes, and that is due there before. */
static void take_step_below(struct walk *walk, ebb_site *below, bool born) {
    ebb_step step = ebb_step_begin_under(below, walk->step.region, 0);
    void *block = block_of(step.region, BYTES, ALIGN);
    if (born) {
        assert_ptr_equal(ebb_region_of(block).lane, walk->step.region.lane);
        assert_false(is_on(walk));
        assert_refused(ebb_region_release(walk->step.region, block), EBB_E_FOREIGN);
    }
    come_zeroed(walk, walk->came);
    assert_true(!is_on(walk) || !born);
    if (born)
        assert_refused(ebb_region_release(walk->step.region, block), EBB_E_FOREIGN);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_AUTO);
    assert_int_equal(ebb_step_end_keeping(step, walk->step.region, &survivor, 1, NULL, NULL), 0);
    assert_true(pattern_holds(survivor.block, BYTES, BYTES));
    assert_int_equal(ebb_region_release(walk->step.region, survivor.block), 0);
    go(walk, walk->came - 1 - WINDOW);
}

static void nothing_is_due_while_steps_below_have_blocks_here(void **state) {
    struct stage *stage = *state;
    struct walk walk = walk_in(stage, BLOCKS, BYTES);
    walk.site = ebb_site_create(EBB_SITE_OPTIONS(.name = "above", .pool = stage->pool));
    ebb_site *below = ebb_site_create(EBB_SITE_OPTIONS(.name = "below", .pool = stage->pool));
    bool on = false;
    for (unsigned i = 0; i < 3 * LEARNING; i++) {
        begin(&walk);
        walk_to(&walk, BLOCKS / 2);
        on = is_on(&walk);
        take_step_below(&walk, below, i >= LEARNING);
        walk_on(&walk);
    }
    assert_true(on || EBB_POISON);
    assert_int_equal(ebb_site_destroy(below), 0);
    forget(&walk);
}

/* Who asks at the end how many blocks are lost looks at no counter in the middle. */
static void who_asks_what_is_lost_has_as_many_stops(void **state) {
    struct walk walk = begin_due(state, false);
    for (unsigned asks = 0; asks < 2; asks++) {
        uint64_t lost = WINDOW;
        for (unsigned i = 0; i < 1 + BLOCKS / 12; i++) {
            walk_to(&walk, i + 1);
            look(&walk);
        }
        walk_to(&walk, BLOCKS);
        assert_true(is_on(&walk));
        assert_int_equal(ebb_step_end_keeping(walk.step, walk.root, NULL, 0, NULL,
                                              asks ? &lost : NULL), 0);
        assert_int_equal(lost, WINDOW);
        assert_int_equal(walk.track->due.fails, 0);
        begin(&walk);
    }
    end(&walk);
    forget(&walk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(nothing_but_a_pointer_moves_for_what_is_due),
        STAGED(only_what_is_due_is_taken_for_it),
        STAGED(a_place_is_not_released_before_its_block_has_come),
        STAGED(a_whole_step_is_marked_once_after_another_and_never_again),
        STAGED(a_step_that_ends_early_is_marked),
        STAGED(births_are_no_stops_and_need_no_marks),
        STAGED(a_birth_of_another_alignment_is_a_stop),
        STAGED(who_asks_what_is_lost_has_as_many_stops),
        STAGED(what_is_known_of_births_stays_if_others_are_marked),
        STAGED(survivors_that_are_left_to_the_lanes_are_stops_too),
        STAGED(what_lies_in_the_lanes_goes_without_marks),
        STAGED(who_reads_the_pool_counts_what_is_not_counted),
        STAGED(the_most_may_have_been_between_two_stops),
        STAGED(a_step_of_few_blocks_has_none),
        STAGED(tables_have_an_eighth_of_the_height_at_most),
        STAGED(who_finds_no_memory_for_tables_does_not_ask_at_each_step),
        STAGED(numbers_of_steps_may_start_anew),
        STAGED(plans_with_keys_have_none),
        STAGED(plans_without_small_blocks_have_none),
        STAGED(tables_follow_the_arena),
        STAGED(what_comes_elsewhere_is_not_noted_in_tables_of_here),
        STAGED(sizes_that_tables_learn_late_are_no_span_s),
        STAGED(guests_come_and_go_and_the_step_goes_on),
        STAGED(nothing_is_due_while_steps_below_have_blocks_here),
    };
    return cmocka_run_group_tests_name("due_tables", tests, NULL, NULL);
}
