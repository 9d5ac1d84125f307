// SPDX-License-Identifier: Apache-2.0
/*
 * due_stops.c - what steps that go along tables stop for, how they go on, and for how long they are
 * left alone where they stop too often, or stray.
 */
#include "kit/dlpack.h"
#include "kit/walk.h"

#include <ebb/report.h>

/* That a step may have before its end. */
static unsigned stops_free(const struct walk *walk) {
    return 1 + walk->count / 12;
}

static void a_look_at_the_counters_is_a_stop_and_spans_are_known_then(void **state) {
    struct walk walk = begin_due(state, false);
    for (unsigned step = 0; step < 3; step++) {
        for (unsigned i = 1; i < 4; i++) {
            assert_int_equal(walk.track->due.stops, i - 1);
            walk_to(&walk, i * 10);
            look(&walk);
            assert_true(is_on(&walk));
        }
        walk_on(&walk);
        assert_int_equal(walk.track->due.stops, 4);
        assert_int_equal(walk.track->due.span_count, 4);
        assert_nothing_is_marked(walk.track);
        begin(&walk);
    }
    end(&walk);
    forget(&walk);
}

static void spans_are_known_where_they_end(void **state) {
    struct walk walk = begin_due(state, false);
    for (unsigned i = 1; i < BLOCKS; i++) {
        walk_to(&walk, i);
        look(&walk);
        assert_true(is_on(&walk));
        walk_to(&walk, BLOCKS);
        look(&walk);
        assert_false(is_on(&walk)); /* nothing is due */
        end(&walk);
        assert_int_equal(walk.track->due.stops, 2);
        assert_int_equal(walk.track->due.span_count, 2);
        begin(&walk);
    }
    end(&walk);
    forget(&walk);
}

static void a_step_goes_on_until_nothing_is_due(void **state) {
    if (EBB_POISON)
        skip();
    for (unsigned tail = 0; tail < 4; tail += 3) {
        struct walk walk = walk_in(*state, BLOCKS, BYTES);
        walk.tail = tail;
        walk.empties = !tail;
        learn_with(&walk, EBB_SITE_OPTIONS(.name = "tail"));
        begin(&walk);
        walk_to(&walk, BLOCKS - tail);
        look(&walk);
        assert_true(is_on(&walk)); /* blocks are due, or releases */
        walk_to(&walk, BLOCKS);
        if (walk.empties)
            empty(&walk);
        look(&walk);
        assert_false(is_on(&walk));
        assert_int_equal(walk.track->due.marked_slots, 0);
        assert_true(walk.track->due.unmarked);
        end(&walk);
        forget(&walk);
    }
}

/* In front of a block, and not passing it. */
static void ask_for_the_impossible(const struct walk *walk) {
    assert_no_block(ebb_region_alloc(walk->step.region, (size_t)1 << 46, ALIGN), EBB_E_MEMORY);
}

static void what_was_resized_is_counted_though_the_span_is_known(void **state) {
    struct walk walk = begin_due(state, false);
    for (unsigned step = 0; step < 5; step++) {
        walk_to(&walk, 14);
        if (step % 2) {
            walk.bytes[13] -= 16;
            assert_int_equal(ebb_region_resize(walk.step.region, walk.blocks[13], BYTES - 16), 0);
            pattern_fill(walk.blocks[13], BYTES - 16, 13);
            ask_for_the_impossible(&walk);
            assert_int_equal(walk.track->due.marked_slots, 14);
        } else {
            look(&walk);
        }
        assert_true(is_on(&walk));
        walk_to(&walk, 30);
        look(&walk);
        walk_on(&walk);
        walk.bytes[13] = BYTES;
        begin(&walk);
    }
    end(&walk);
    forget(&walk);
}

static void another_size_is_a_stop_and_due_the_next_time(void **state) {
    struct walk walk = begin_due(state, false);
    walk_to(&walk, 10);
    look(&walk);
    walk_on(&walk); /* two spans are known */
    begin(&walk);
    walk.bytes[20] -= 100;
    walk_to(&walk, 20);
    assert_int_equal(walk.track->due.stops, 0);
    walk_to(&walk, 21);
    assert_true(is_on(&walk));
    assert_int_equal(walk.track->due.stops, 1);
    assert_int_equal(walk.track->due.marked_slots, 21);
    assert_int_equal(walk.track->due.span_count, 0);
    walk_on(&walk);
    begin(&walk);
    walk_to(&walk, BLOCKS);
    assert_int_equal(walk.track->due.stops, 0);
    assert_int_equal(stats_of(walk.step.region).requested.total, BLOCKS * BYTES - 100);
    end(&walk);
    forget(&walk);
}

static void another_alignment_is_a_stop_and_spans_stay(void **state) {
    struct walk walk = begin_due(state, false);
    walk_to(&walk, 20);
    walk.blocks[20] = block_of(walk.step.region, BYTES, ALIGN / 2);
    assert_int_equal((uintptr_t)walk.blocks[20], walk.track->slots[20].addr);
    assert_true(is_on(&walk));
    assert_int_equal(walk.track->due.span_count, 1);
    end(&walk);
    forget(&walk);
}

static void who_releases_early_but_in_turn_goes_on(void **state) {
    struct walk walk = begin_due(state, false);
    walk_to(&walk, 20);
    go(&walk, 15);
    assert_true(is_on(&walk));
    assert_int_equal(walk.track->due.stops, 1);
    come(&walk, 20);
    assert_int_equal(walk.track->due.stops, 1);
    walk_to(&walk, BLOCKS);
    assert_int_equal(walk.track->due.stops, 2); /* where it was due */
    assert_int_equal(stats_of(walk.step.region).blocks.current, WINDOW);
    assert_int_equal(stats_of(walk.step.region).blocks.total, BLOCKS);
    end(&walk);
    assert_int_equal(walk.track->due.fails, 0);
    forget(&walk);
}

/* They are not due again where they were, in this step. */
static void what_was_released_early_is_not_released_twice(void **state) {
    for (unsigned early = 1; early <= 5; early++) {
        struct walk walk = begin_due(state, false);
        void *gone[5];
        walk_to(&walk, 20);
        for (unsigned i = 0; i < early; i++) {
            gone[i] = walk.blocks[15 + i];
            go(&walk, 15 + i);
        }
        for (unsigned i = 0; i < early; i++) {
            come(&walk, 20 + i);
            assert_true(EBB_POISON || i > 0 || is_on(&walk)); /* what is refused is no event */
            if (gone[i] != walk.blocks[20 + i])
                assert_refused(ebb_region_release(walk.step.region, gone[i]), EBB_E_RELEASED);
        }
        look(&walk);
        walk_to(&walk, BLOCKS);
        struct ebb_region_stats stats = stats_of(walk.step.region);
        assert_int_equal(stats.blocks.current, WINDOW);
        assert_int_equal(stats.blocks.total, BLOCKS);
        assert_int_equal(ebb_check_pool(walk.pool), 0);
        end(&walk);
        walk_once(&walk);
        forget(&walk);
    }
}

static void nothing_is_due_to_an_older_handle(void **state) {
    struct walk walk = begin_due(state, false);
    ebb_region old = {walk.step.region.lane, walk.step.region.generation - 2};
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_no_block(ebb_region_alloc(old, walk.bytes[i], ALIGN), EBB_E_STALE);
        come(&walk, i);
        if (i < WINDOW)
            continue;
        assert_refused(ebb_region_release(old, walk.blocks[i - WINDOW]), EBB_E_STALE);
        go(&walk, i - WINDOW);
    }
    assert_int_equal(walk.track->due.stops, 0);
    end(&walk);
    forget(&walk);
}

/* Where a survivor is expected, and so much that the arena is taken over. */
static void who_outgrows_the_plan_finds_what_is_alive(void **state) {
    struct walk walk = begin_due(state, true);
    walk_to(&walk, 16);
    assert_true(survives(&walk, 16) && is_on(&walk));
    void *more[BLOCKS] = {block_of(walk.step.region, 3 * BYTES, ALIGN)};
    assert_true(walk.track->taken_over && !is_on(&walk));
    assert_int_equal(walk.track->cursor, 17);
    for (unsigned i = 1; i < BLOCKS; i++)
        more[i] = block_of(walk.step.region, BYTES, ALIGN);
    for (unsigned i = 11; i < 16; i++)
        go(&walk, i);
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_true(pattern_holds(more[i], i ? BYTES : 3 * BYTES, i ? BYTES : 3 * BYTES));
    assert_int_equal(ebb_check_pool(walk.pool), 0);
    promote_all(&walk);
    end(&walk);
    forget(&walk);
}

static void who_skips_a_slot_has_strayed(void **state) {
    struct walk walk = begin_due(state, false);
    walk_to(&walk, 20);
    void *block = block_of(walk.step.region, BYTES + PAGE, ALIGN);
    assert_false(is_on(&walk));
    assert_true(walk.track->due.strayed);
    assert_int_equal(ebb_region_release(walk.step.region, block), 0);
    assert_false(is_on(&walk));
    end(&walk);
    forget(&walk);
}

/* ---- left alone ---- */

/* Steps that stop so often, but for their end, are not worth it. */
static void stop_often(struct walk *walk, unsigned stops) {
    for (unsigned i = 0; i < stops; i++) {
        assert_true(is_on(walk));
        walk_to(walk, 2 * i + 2);
        look(walk);
    }
    assert_int_equal(is_on(walk), stops <= stops_free(walk));
    assert_int_equal(walk->track->open, !is_on(walk)); /* as a plan serves without tables */
    walk_on(walk);
}

static void as_many_stops_as_there_may_be_are_no_failure(void **state) {
    if (EBB_POISON)
        skip();
    for (unsigned count = BLOCKS - 1; count <= BLOCKS; count++) {
        struct walk walk = learn(*state, count, BYTES, false);
        begin(&walk);
        stop_often(&walk, stops_free(&walk));
        assert_int_equal(walk.track->due.fails, 0);
        begin(&walk);
        stop_often(&walk, stops_free(&walk) + 1);
        assert_int_equal(walk.track->due.fails, 1);
        forget(&walk);
    }
}

/* Steps until one goes along the tables, which is begun then. */
static unsigned steps_left_alone(struct walk *walk) {
    unsigned steps = 0;
    for (begin(walk); !is_on(walk); begin(walk), steps++)
        walk_on(walk);
    return steps;
}

static void births_count_where_stops_are_too_many(void **state) {
    struct walk walk = begin_due(state, true);
    for (unsigned looks = 1; looks <= 2; looks++) {
        for (unsigned i = looks; i > 0; i--) {
            walk_to(&walk, BLOCKS - i);
            look(&walk);
            assert_int_equal(is_on(&walk), i == looks); /* four were born, of six */
        }
        walk_on(&walk);
        assert_int_equal(walk.track->due.fails, looks - 1);
        begin(&walk);
    }
    end(&walk);
    forget(&walk);
}

static void who_fails_is_left_alone_for_twice_as_many_steps_each_time(void **state) {
    struct walk walk = begin_due(state, false);
    for (unsigned i = 1; i < 9; i++) {
        stop_often(&walk, stops_free(&walk) + 1);
        assert_int_equal(steps_left_alone(&walk), 1u << (i < 6 ? i : 6));
    }
    walk_on(&walk);
    begin(&walk);
    stop_often(&walk, stops_free(&walk) + 1); /* one was worth it */
    assert_int_equal(steps_left_alone(&walk), 2);
    end(&walk);
    forget(&walk);
}

static void who_releases_out_of_turn_has_strayed(void **state) {
    struct walk walk = begin_due(state, false);
    walk_to(&walk, 20);
    go(&walk, 17);
    assert_true(!is_on(&walk) && walk.track->due.strayed);
    for (unsigned i = 20; i < BLOCKS; i++) {
        come(&walk, i);
        if (walk.blocks[i - WINDOW])
            go(&walk, i - WINDOW);
        assert_false(is_on(&walk));
    }
    end(&walk);
    assert_int_equal(walk.track->due.fails, 1);
    assert_int_equal(steps_left_alone(&walk), 2);
    walk_on(&walk);
    assert_int_equal(walk.track->due.fails, 0);
    forget(&walk);
}

static void who_has_other_sizes_altogether_is_left_alone_once(void **state) {
    struct walk walk = begin_due(state, false);
    walk_on(&walk);
    draw_sizes(&walk);
    walk_once(&walk);
    assert_int_equal(walk.track->due.fails, 1);
    assert_int_equal(steps_left_alone(&walk), 2);
    walk_to(&walk, BLOCKS);
    assert_true(is_on(&walk));
    assert_int_equal(walk.track->due.stops, 0);
    end(&walk);
    forget(&walk);
}

static void nobody_stays_left_alone_with_a_new_plan(void **state) {
    struct walk walk = begin_due(state, false);
    stop_often(&walk, stops_free(&walk) + 1);
    const struct plan *plan = walk.track->plan;
    for (walk.count = BLOCKS + 8; walk.track->plan == plan; walk_once(&walk))
        for (unsigned i = BLOCKS; i < walk.count; i++)
            walk.bytes[i] = BYTES;
    assert_int_equal(walk.track->due.fails, 0);
    forget(&walk);
}

/* Each region of a ring learns for itself. */
static void begin_in_ring(struct walk *walk) {
    for (begin(walk); !EBB_POISON && !is_on(walk); begin(walk))
        walk_on(walk);
}

/* The region of a step that ended is read, and what is alive there goes. */
static void who_reads_an_ended_step_finds_what_is_there(void **state) {
    struct stage *stage = *state;
    struct walk walk = walk_in(stage, BLOCKS, BYTES);
    learn_with(&walk, EBB_SITE_OPTIONS(.name = "ring", .ring = 1));
    begin_in_ring(&walk);
    walk_to(&walk, BLOCKS);
    ebb_region region = walk.step.region;
    assert_int_equal(ebb_step_end(walk.step), 0);
    for (unsigned i = BLOCKS - WINDOW; i < BLOCKS; i++) {
        assert_int_equal(ebb_region_block_bytes(region, walk.blocks[i]), BYTES);
        assert_true(pattern_holds(walk.blocks[i], BYTES, i));
        assert_int_equal(ebb_region_release(region, walk.blocks[i]), 0);
        assert_refused(ebb_region_release(region, walk.blocks[i]), EBB_E_RELEASED);
    }
    assert_int_equal(stats_of(region).blocks.current, 0);
    assert_int_equal(walk.track->due.fails, 0);
    forget(&walk);
}

enum { LESS = BYTES - 1000, LITTLE = 96 };

/* In front of a small block without a place in the arena, for which there is memory in the parent.
 * Others are smaller than when their places were made. */
static struct walk walk_to_a_survivor(struct stage *stage, struct ebb_site_options *options) {
    struct walk walk = walk_in(stage, BLOCKS, BYTES);
    walk.keeps = true;
    for (unsigned i = 0; i < BLOCKS; i++)
        walk.bytes[i] = survives(&walk, i) ? LITTLE : BYTES;
    learn_with(&walk, options);
    for (unsigned i = 0; i < BLOCKS; i++)
        walk.bytes[i] = survives(&walk, i) ? LITTLE : LESS;
    for (unsigned i = 0; i < 2; i++) /* each region of a ring */
        walk_once(&walk);
    begin_in_ring(&walk);
    assert_int_equal(ebb_region_release(walk.root, block_of(walk.root, LITTLE, ALIGN)), 0);
    walk_to(&walk, 4);
    assert_true(survives(&walk, 4) && is_on(&walk) && walk.track->due.sizes_right);
    assert_true(walk.track->slots[5].room >= BYTES);
    return walk;
}

/* For the one that was to come, and one that would fit where the next one was to. */
static void who_asks_in_an_ended_step_is_served_nothing_of_the_plan(void **state) {
    for (unsigned left = 0; left < 2 && !EBB_POISON; left++) {
        struct walk walk = walk_to_a_survivor(
            *state, EBB_SITE_OPTIONS(.name = "ring", .ring = 1, .tenure_none = left != 0));
        ebb_region region = walk.step.region;
        assert_int_equal(ebb_step_end(walk.step), 0);
        void *first = block_of(region, LITTLE, ALIGN);
        void *second = block_of(region, BYTES, ALIGN);
        assert_ptr_equal(ebb_region_of(first).lane, region.lane);
        assert_true((uintptr_t)second != walk.track->slots[5].addr);
        assert_int_equal(ebb_region_block_bytes(region, second), BYTES);
        assert_int_equal(ebb_check_pool(walk.pool), 0);
        assert_int_equal(stats_of(region).requested.current, BYTES + 4 * LESS + LITTLE);
        assert_int_equal(ebb_region_release(region, first), 0);
        assert_int_equal(ebb_region_release(region, second), 0);
        for (unsigned i = 0; i < 4; i++) {
            assert_true(pattern_holds(walk.blocks[i], walk.bytes[i], i));
            assert_int_equal(ebb_region_release(region, walk.blocks[i]), 0);
        }
        assert_int_equal(stats_of(region).requested.current, 0);
        assert_int_equal(stats_of(region).blocks.current, 0);
        forget(&walk);
    }
}

struct last_wish {
    struct ebb_cleanup node;
    ebb_region region;
    bool ran;
};

/* The same, while the region closes. */
static int ask_at_last(void *data) {
    struct last_wish *wish = data;
    block_of(wish->region, LITTLE, ALIGN);
    unsigned char *block = block_of(wish->region, BYTES, ALIGN);
    assert_int_equal(ebb_region_block_bytes(wish->region, block), BYTES);
    block = ebb_region_realloc(wish->region, block, 4 * BYTES, ALIGN);
    assert_true(pattern_holds(block, BYTES, BYTES));
    wish->ran = true;
    return 0;
}

static void who_asks_while_a_step_closes_is_served_nothing_of_the_plan(void **state) {
    for (unsigned left = 0; left < 2 && !EBB_POISON; left++) {
        struct walk walk = walk_to_a_survivor(
            *state, EBB_SITE_OPTIONS(.name = "last", .tenure_none = left != 0));
        struct last_wish wish = {.node = {.run = ask_at_last, .data = &wish},
                                 .region = walk.step.region};
        assert_int_equal(ebb_cleanup_add(walk.step.region, &wish.node), 0);
        uint64_t before = stats_of(walk.root).blocks.total;
        end(&walk);
        assert_true(wish.ran);
        assert_int_equal(stats_of(walk.root).blocks.total, before);
        assert_int_equal(pool_stats_of(walk.pool).requested.current, 0);
        assert_int_equal(ebb_check_pool(walk.pool), 0);
        walk_once(&walk);
        forget(&walk);
    }
}

/* ---- what else happens ---- */

static void no_block_of_nothing_is_due_at_an_odd_alignment(void **state) {
    struct walk walk = begin_due(state, true);
    for (unsigned i = 0; i <= BLOCKS; i++) {
        assert_no_block(ebb_region_alloc(walk.step.region, 0, 0), EBB_E_ALIGNMENT);
        assert_int_equal(ebb_region_release(walk.step.region, NULL), 0);
        assert_true(is_on(&walk) || i == BLOCKS);
        walk_to(&walk, i < BLOCKS ? i + 1 : i);
    }
    promote_all(&walk);
    end(&walk);
    forget(&walk);
}

static int no_writer(void *context, const char *text, size_t bytes) {
    *(size_t *)context += bytes;
    return 0;
}

enum odd { RESETS, CLOSES, SEALS, MARKS, REPORTS, ODD };

static void do_odd(struct walk *walk, enum odd odd) {
    ebb_region region = walk->step.region;
    size_t written = 0;
    if (odd == RESETS)
        assert_int_equal(ebb_region_reset(region, 0), 0);
    if (odd == CLOSES)
        assert_int_equal(ebb_region_close(region), 0);
    if (odd == SEALS)
        assert_int_equal(ebb_region_seal(region), 0);
    if (odd == MARKS)
        assert_int_equal(ebb_region_rewind(region, ebb_region_mark(region)), 0);
    if (odd == REPORTS)
        assert_int_equal(ebb_report_leaks(region, EBB_REPORT_TEXT, no_writer, &written), 0);
    assert_int_equal(written != 0, odd == REPORTS);
}

static void whatever_happens_in_the_middle_finds_what_is_there(void **state) {
    for (enum odd odd = RESETS; odd < ODD; odd++) {
        struct walk walk = begin_due(state, false);
        struct ebb_lane *lane = walk.step.region.lane;
        walk_to(&walk, 20);
        do_odd(&walk, odd);
        assert_true(lane->due == &due_nothing);
        if (odd != CLOSES) {
            struct ebb_region_stats stats = stats_of(walk.step.region);
            assert_int_equal(stats.blocks.current, odd == RESETS ? 0 : WINDOW);
            assert_int_equal(stats.blocks.peak, WINDOW + 1);
            assert_int_equal(stats.blocks.total, 20);
        }
        assert_int_equal(ebb_check_pool(walk.pool), 0);
        for (unsigned i = 15; i < 20 && odd > SEALS; i++)
            go(&walk, i);
        (void)ebb_step_end(walk.step);
        assert_tables_hold(walk.track);
        walk_once(&walk);
        forget(&walk);
    }
}

static DLManagedTensor *export_one(ebb_step step, const struct ebb_tensor *tensor) {
    DLManagedTensor *managed = share(tensor);
    assert_refused(ebb_region_release(step.region, tensor->storage->block), EBB_E_BUSY);
    assert_true(export_holds(managed));
    return managed;
}

/* Of tensors; one ends, or is exported meanwhile, where the step goes along tables. */
static void take_tensors(ebb_site *site, ebb_region parent, unsigned ends, unsigned exported) {
    struct ebb_tensor *tensors[BLOCKS];
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    const struct track *track = track_of(step);
    DLManagedTensor *managed = NULL;
    for (unsigned i = 0; i < BLOCKS; i++) {
        tensors[i] = tensor_of_bytes(step.region, BYTES);
        if (i != ends && i != exported)
            continue;
        assert_true(EBB_POISON || track->due.on);
        if (i == ends)
            assert_int_equal(ebb_object_end(tensors[i - 1]), 0);
        else
            managed = export_one(step, tensors[i]);
        assert_false(track->due.on);
    }
    if (managed)
        give_back(managed);
    assert_int_equal(ebb_step_end(step), 0);
    if (track)
        assert_tables_hold(track);
}

static void objects_are_found_where_nothing_is_marked(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < LEARNING; i++)
        take_tensors(site, stage->root, BLOCKS, BLOCKS);
    take_tensors(site, stage->root, BLOCKS, 20);
    take_tensors(site, stage->root, BLOCKS, BLOCKS);
    take_tensors(site, stage->root, 20, BLOCKS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_look_at_the_counters_is_a_stop_and_spans_are_known_then),
        STAGED(spans_are_known_where_they_end),
        STAGED(a_step_goes_on_until_nothing_is_due),
        STAGED(what_was_resized_is_counted_though_the_span_is_known),
        STAGED(another_size_is_a_stop_and_due_the_next_time),
        STAGED(another_alignment_is_a_stop_and_spans_stay),
        STAGED(who_releases_early_but_in_turn_goes_on),
        STAGED(what_was_released_early_is_not_released_twice),
        STAGED(nothing_is_due_to_an_older_handle),
        STAGED(who_outgrows_the_plan_finds_what_is_alive),
        STAGED(who_skips_a_slot_has_strayed),
        STAGED(as_many_stops_as_there_may_be_are_no_failure),
        STAGED(births_count_where_stops_are_too_many),
        STAGED(who_fails_is_left_alone_for_twice_as_many_steps_each_time),
        STAGED(who_releases_out_of_turn_has_strayed),
        STAGED(who_has_other_sizes_altogether_is_left_alone_once),
        STAGED(nobody_stays_left_alone_with_a_new_plan),
        STAGED(who_reads_an_ended_step_finds_what_is_there),
        STAGED(who_asks_in_an_ended_step_is_served_nothing_of_the_plan),
        STAGED(who_asks_while_a_step_closes_is_served_nothing_of_the_plan),
        STAGED(no_block_of_nothing_is_due_at_an_odd_alignment),
        STAGED(objects_are_found_where_nothing_is_marked),
        STAGED(whatever_happens_in_the_middle_finds_what_is_there),
    };
    return cmocka_run_group_tests_name("due_stops", tests, NULL, NULL);
}
