// SPDX-License-Identifier: Apache-2.0
/*
 * course.c - what a site makes of steps from which no ordinary plan follows: sizes that never come
 * together, records that were broken off, steps in which nothing can be placed.
 */
#include "kit/passes.h"

#include "step/site.h"

static void take_step(ebb_site *site, size_t first, size_t second) {
    ebb_step step = ebb_step_begin(site, 0);
    block_of(step.region, first, 64);
    block_of(step.region, second, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

static void assert_one_plan(ebb_site *site, size_t height) {
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.plans, 1);
    assert_int_equal(stats.plan_height, height);
    assert_int_equal(stats.plan_max_live, height);
}

/* Two blocks that live to the end; which one is large alternates. */
static void sizes_that_never_come_together_make_no_plan_for_both(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    take_step(site, 64 * KIB, 2 * MIB);
    take_step(site, 2 * MIB, 64 * KIB);
    assert_one_plan(site, 2 * MIB + 64 * KIB); /* not 4 MiB */
    take_step(site, 2 * MIB, 64 * KIB);
    assert_int_equal(site_stats(site).hits, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The same, but not much: one plan for both. */
static void sizes_that_differ_a_little_share_a_plan(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    take_step(site, 60 * KIB, 64 * KIB);
    take_step(site, 64 * KIB, 60 * KIB);
    assert_one_plan(site, 128 * KIB);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* None of the first steps is like another; the longest of them leads all that follow. There are
 * three where a small block comes, and else two. */
static void the_longest_of_the_first_loops_is_planned(void **state) {
    static const unsigned trips[] = {9, 20, 5, 20, 12, 20, 20, 3};
    struct stage *stage = *state;
    for (unsigned small = 0; small < 2; small++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        for (unsigned i = 0; i < sizeof trips / sizeof *trips; i++) {
            ebb_step step = begin(site, stage->root);
            assert_true(!small || ebb_step_alloc(step, 100, 16, 3));
            for (unsigned k = 0; k < trips[i]; k++) {
                assert_non_null(ebb_step_alloc(step, 5000, 64, 1));
                assert_non_null(ebb_step_alloc(step, 3000, 64, 2));
            }
            assert_int_equal(ebb_step_end(step), 0);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_int_equal(stats.recorded_steps, 2 + small);
        assert_int_equal(stats.hits, small ? 5 + 2 * (20 + 12 + 20 + 20 + 3)
                                           : 2 * (5 + 20 + 12 + 20 + 20 + 3));
        assert_int_equal(stats.missed, 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

static void take_loops(ebb_site *site, ebb_region parent, unsigned trips) {
    ebb_step step = begin(site, parent);
    for (unsigned k = 0; k < trips; k++) {
        void *hidden = ebb_step_alloc(step, 5000, 64, 1);
        assert_non_null(ebb_step_alloc(step, 3000, 64, 2));
        assert_int_equal(ebb_region_release(step.region, hidden), 0);
    }
    for (unsigned k = 0; k < trips; k++)
        assert_non_null(ebb_step_alloc(step, 7000, 64, 3));
    assert_int_equal(ebb_step_end(step), 0);
}

/* The first steps are as short as any, and alike; others are up to twice as long. With these seeds
 * no more than 84 to 90 % were served once. */
static void most_blocks_of_loops_are_served_whatever_came_first(void **state) {
    enum { STEPS = 1000, FIRST = 3, LEAST = 10, MORE = 10 };
    static const uint32_t seeds[] = {18, 26, 48};
    struct stage *stage = *state;
    for (unsigned i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        uint32_t chance = seeds[i];
        for (unsigned k = 0; k < STEPS; k++) {
            chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
            unsigned more = k < FIRST ? 0 : (chance >> 16) % (MORE + 1);
            take_loops(site, stage->root, LEAST + more);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_true(stats.hits * 100 >= stats.allocations * 95);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* A step that is hardly any now and then: the plan is of the others, whichever came last. */
static void hardly_any_step_makes_no_plan(void **state) {
    enum { STEPS = 60 };
    struct stage *stage = *state;
    for (unsigned last = 0; last < 2; last++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        uint32_t chance = 1;
        for (unsigned i = 0; i < STEPS; i++) {
            ebb_step step = ebb_step_begin(site, 0);
            chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
            if (i % 2 != last)
                for (unsigned k = 0; k < 20; k++)
                    block_of(step.region, 8000, 64);
            else
                for (unsigned k = 0; k < 1 + (chance >> 16) % 4; k++)
                    block_of(step.region, 200, 16);
            assert_int_equal(ebb_step_end(step), 0);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_true(stats.hit_bytes * 100 >= stats.allocated_bytes * 85);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* What came after a reset is not all that came: no plan is made of it, and nobody records that each
 * time. */
static void a_record_that_was_broken_off_makes_no_plan(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 64; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        block_of(step.region, 5000, 64);
        block_of(step.region, 3000, 64);
        assert_int_equal(ebb_region_reset(step.region, 0), 0);
        block_of(step.region, 2000, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).plans, 0);
    assert_int_equal(site_stats(site).planned_steps, 0);
    /* at first, after 16 steps, and 32 */
    assert_int_equal(site_stats(site).recorded_steps, LEARN_FIRST + 2 + 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* All blocks survive, so that there is nothing to place. Nobody records them each time for it. */
static void a_plan_that_cannot_be_made_is_not_tried_each_time(void **state) {
    struct stage *stage = *state;
    ebb_site *site =
        ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .tenure_none = true));
    for (unsigned i = 0; i < 64; i++) {
        ebb_step step = begin(site, stage->root);
        struct ebb_survivor survivor = survivor_of(block_of(step.region, 3000, 64),
                                                   EBB_PROMOTE_COPY);
        assert_int_equal(ebb_promote(step.region, stage->root, &survivor, 1, NULL), 0);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    }
    assert_int_equal(site_stats(site).plans, 0);
    assert_int_equal(site_stats(site).recorded_steps, 2 + 3); /* one each time */
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The same after steps that a plan was made of: it goes when nothing takes its place. */
static void a_plan_that_is_of_no_use_any_more_goes_though_no_other_can_be_made(void **state) {
    struct stage *stage = *state;
    ebb_site *site =
        ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .tenure_none = true));
    for (unsigned i = 0; i < 4; i++)
        take_step(site, 3000, 5000);
    for (unsigned i = 0; i < 200; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 0);
        struct ebb_survivor survivor = survivor_of(block_of(step.region, 2000, 64),
                                                   EBB_PROMOTE_COPY);
        assert_int_equal(
            ebb_step_end_keeping(step, stage->root, &survivor, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    }
    assert_int_equal(site_stats(site).plans, 1);
    assert_true(site_stats(site).suspended);
    assert_in_range(site_stats(site).recorded_steps, 4, 20);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Half of the blocks, each time others. What they will do no record can tell. */
static void survivors_by_chance_are_not_learnt_for_ever(void **state) {
    enum { BLOCKS = 40 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    uint32_t chance = 1;
    for (unsigned i = 0; i < 500; i++) {
        struct ebb_survivor kept[BLOCKS];
        size_t count = 0;
        ebb_step step = begin(site, stage->root);
        for (unsigned block = 0; block < BLOCKS; block++) {
            kept[count].block = block_of(step.region, 3000, 64);
            chance = (uint32_t)(chance * UINT64_C(1664525) + 1013904223);
            count += chance >> 31;
        }
        for (size_t k = 0; k < count; k++)
            kept[k] = survivor_of(kept[k].block, EBB_PROMOTE_COPY);
        assert_int_equal(
            ebb_step_end_keeping(step, stage->root, kept, count, NULL, NULL), 0);
        for (size_t k = 0; k < count; k++)
            assert_int_equal(ebb_region_release(stage->root, kept[k].block), 0);
    }
    assert_in_range(site_stats(site).recorded_steps, 4, 40);
    assert_in_range(site_stats(site).plans, 2, 20);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* In the parent it might have to move, which asks for a place that no plan has. */
static void a_survivor_that_grows_is_not_born_above(void **state) {
    enum { STEPS = 6, BLOCKS = 8 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < STEPS; i++) {
        void *gone = block_of(stage->root, 3000, 64), *behind = block_of(stage->root, 3000, 64);
        assert_int_equal(ebb_region_release(stage->root, gone), 0);
        ebb_step step = begin(site, stage->root);
        void *block = block_of(step.region, 3000, 64);
        assert_ptr_equal(ebb_region_realloc(step.region, block, 6000, 64), block);
        for (unsigned k = 0; k < BLOCKS; k++)
            block_of(step.region, 2000 + 500 * k, 64);
        struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_COPY);
        assert_int_equal(
            ebb_step_end_keeping(step, stage->root, &survivor, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
        assert_int_equal(ebb_region_release(stage->root, behind), 0);
    }
    assert_int_equal(site_stats(site).hits, (STEPS - 2) * BLOCKS);
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_coarse_plan_is_known_as_such_by_who_inherits_it(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (uint64_t tag = 0; tag < 2; tag++) {
        for (unsigned i = 0; i < 4; i++)
            take_loose_step(site, tag, 3 + i);
        const struct course *course = &site->courses[tag];
        assert_true(course->tag == tag && course->plan->coarse);
        assert_true(course->learning.plan_coarse);
    }
    assert_int_equal(site_stats(site).recorded_steps, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A small block that becomes a large one where it is asks no plan for a place. */
static void a_small_block_that_grows_has_no_slot_in_a_coarse_plan(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 4; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        void *block = block_of(step.region, 600, 16);
        assert_ptr_equal(ebb_region_realloc(step.region, block, 1500, 16), block);
        for (unsigned small = 0; small < i; small++)
            block_of(step.region, 32, 16);
        block_of(step.region, 30000, 64);
        block_of(step.region, 50000, 64);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_true(site->courses[0].plan->coarse);
    assert_int_equal(site_stats(site).hits, 4);
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Far ahead, and back again. */
static void a_key_has_its_slot_wherever_that_is(void **state) {
    static const uint32_t keys[] = {1, 30, 2, 31, 3, 4};
    enum { STEPS = 3, BLOCKS = 40, FEW = sizeof keys / sizeof *keys };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < STEPS; i++) {
        bool last = i == STEPS - 1;
        ebb_step step = ebb_step_begin(site, 0);
        for (uint32_t k = 0; k < (last ? FEW : BLOCKS); k++)
            assert_non_null(ebb_step_alloc(step, 5000, 64, last ? keys[k] : k + 1));
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).hits, FEW);
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* By its keys, under another tag: it may do so the next time. */
static void what_the_first_step_of_a_tag_leaves_out_keeps_its_room(void **state) {
    enum { BLOCKS = 60, FROM = 20, TO = 23 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 6; i++) {
        ebb_step step = ebb_step_begin(site, i / 3);
        for (uint32_t k = 0; k < BLOCKS; k++)
            if (i != 3 || k < FROM || k >= TO)
                assert_non_null(ebb_step_alloc(step, 3000 + k * 64, 64, k + 1));
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).hits, 4 * BLOCKS - (TO - FROM));
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(site_stats(site).plans, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Blocks that live to the end; the most pages that the step had. */
static size_t take_blocks(ebb_site *site, uint64_t tag, size_t bytes) {
    ebb_step step = ebb_step_begin(site, tag);
    for (unsigned i = 0; i < 64; i++)
        block_of(step.region, bytes, 64);
    size_t reserved = stats_of(step.region).reserved.peak;
    assert_int_equal(ebb_step_end(step), 0);
    return reserved;
}

/* The first step of a tag follows the plan of another one. Its own is lower, but not by half: that
 * arena is none for it. */
static void a_lower_plan_takes_fewer_pages(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 4; i++)
        take_blocks(site, 1, 12 * KIB);
    assert_int_equal(take_blocks(site, 2, 8 * KIB), 64 * 12 * KIB);
    assert_int_equal(site_stats(site).plan_height, 64 * 8 * KIB);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(take_blocks(site, 2, 8 * KIB), 64 * 8 * KIB);
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void take_alike(ebb_step step, unsigned count, size_t bytes, size_t last) {
    for (unsigned i = 0; i < count; i++)
        block_of(step.region, i < count - 1 ? bytes : last, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

/* A step goes on for longer than the plan that it follows, of which it has outgrown one slot, which
 * others have less room for meanwhile: nothing follows for their plan. */
static void a_step_that_follows_an_older_plan_changes_no_newer_one(void **state) {
    enum { OLD = 30, NEW = 40 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 4; i++)
        take_alike(ebb_step_begin(site, 0), OLD, 3000, 3000);
    assert_int_equal(site_stats(site).plan_slots, OLD);
    ebb_step old = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < 20; i++)
        take_alike(ebb_step_begin(site, 0), NEW, 2000, 2000);
    struct ebb_site_stats before = site_stats(site);
    assert_int_equal(before.plan_slots, NEW);
    take_alike(old, OLD, 3000, 4000);
    struct ebb_site_stats after = site_stats(site);
    assert_int_equal(after.hits, before.hits + OLD - 1);
    assert_int_equal(after.plans, before.plans);
    assert_int_equal(after.plan_height, before.plan_height);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A step outgrows its plan, or does not, before a mark. */
static void what_comes_after_a_mark_is_not_missed(void **state) {
    enum { STEPS = 4, BLOCKS = 20 };
    struct stage *stage = *state;
    for (unsigned larger = 0; larger < 2; larger++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        for (unsigned i = 0; i < STEPS; i++) {
            ebb_step step = begin(site, stage->root);
            bool last = i == STEPS - 1;
            block_of(step.region, last && larger ? 200000 : 3000, 64);
            assert_true(!last || ebb_region_mark(step.region).serial);
            for (unsigned k = 0; k < BLOCKS; k++)
                block_of(step.region, 3000, 64);
            assert_int_equal(ebb_step_end(step), 0);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_int_equal(stats.takeovers, larger);
        assert_int_equal(stats.hits, BLOCKS + 1 + !larger);
        assert_int_equal(stats.missed, larger);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* Nothing of the plan is wanted any more, or it was given up: its arena is there for the rest. */
static void a_step_that_goes_on_behind_its_plan_has_the_arena(void **state) {
    enum { STEPS = 3, BLOCKS = 8, LARGE_BYTES = 64 * KIB, FEW = 100 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = begin(site, stage->root);
        void *block[BLOCKS];
        for (unsigned k = 0; k < BLOCKS; k++)
            block[k] = block_of(step.region, LARGE_BYTES, 64);
        for (unsigned k = 0; k < BLOCKS; k++)
            assert_int_equal(ebb_region_release(step.region, block[k]), 0);
        for (unsigned k = 0; k < FEW && i == STEPS - 1; k++)
            block_of(step.region, 16, 16);
        for (unsigned k = 0; k < BLOCKS && i == STEPS - 1; k++)
            block_of(step.region, LARGE_BYTES, 64);
        if (i == STEPS - 1)
            assert_true(stats_of(step.region).reserved.peak <
                        BLOCKS * LARGE_BYTES + 2 * LARGE_BYTES);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).hits, BLOCKS);
    assert_int_equal(site_stats(site).takeovers, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* One block is as planned, the next has another alignment, then more comes than the plan is high:
 * nothing more is looked for in it, and all is missed. The step after it is as those before. */
static void what_a_step_of_another_kind_takes_is_missed(void **state) {
    enum { STEPS = 6, BLOCKS = 20, ODD = 4, FIRST = 1000, ALL = 2 * FIRST + 189 * 4000 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < STEPS; i++) {
        bool odd = i == ODD;
        ebb_step step = begin(site, stage->root);
        struct ebb_site_stats before = site_stats(site);
        for (unsigned k = 0; k < BLOCKS; k++)
            block_of(step.region, !odd ? 3000 : k < 2 ? FIRST : 4000 * k, odd ? 4096 : 64);
        assert_true(!odd || stats_of(step.region).requested.peak == ALL);
        assert_int_equal(ebb_step_end(step), 0);
        struct ebb_site_stats after = site_stats(site);
        assert_int_equal(after.missed - before.missed, odd ? BLOCKS - 1 : 0);
        assert_int_equal(after.missed_bytes - before.missed_bytes, odd ? ALL - FIRST : 0);
        assert_int_equal(after.hits - before.hits, odd ? 1 : i < 2 ? 0 : BLOCKS);
    }
    assert_int_equal(site_stats(site).takeovers, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Packing needs ten times as much as many small blocks have. */
static void plans_are_not_made_at_the_cost_of_the_pool(void **state) {
    enum { STEPS = 5, BLOCKS = 3000 };
    struct stage *stage = *state;
    for (unsigned round = 0; round < 4; round++) {
        unsigned ring = round % 2;
        assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, round < 2 ? 0 : 256 * KIB), 0);
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool, .ring = ring));
        for (unsigned i = 0; i < STEPS; i++) {
            ebb_step step = begin(site, stage->root);
            for (unsigned k = 0; k < BLOCKS; k++)
                assert_non_null(ebb_region_alloc(step.region, 16, 16));
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_int_equal(site_stats(site).plans, 1);
        assert_int_equal(site_stats(site).hits, (STEPS - 2) * BLOCKS);
        assert_true(pool_stats_of(stage->pool).used.peak <= (round ? 2 : 1) * BLOCKS * 16);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
    assert_int_equal(pool_stats_of(stage->pool).blocks.total, 4 * STEPS * BLOCKS);
    assert_int_equal(pool_stats_of(stage->pool).requested.total, 4 * STEPS * BLOCKS * 16);
}

/* Padded lengths, of steps that come one at a time but for the first two. */
static void steps_that_met_once_come_one_at_a_time_all_the_same(void **state) {
    enum { STEPS = 200 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    ebb_step outer = begin(site, stage->root), inner = begin(site, stage->root);
    assert_int_equal(ebb_step_end(inner), 0);
    assert_int_equal(ebb_step_end(outer), 0);
    for (unsigned i = 0; i < STEPS; i++)
        take_step(site, i % 8 ? 64 * KIB : 4 * MIB, i % 8 ? 32 * KIB : 2 * MIB);
    assert_false(site_stats(site).suspended);
    assert_true(site_stats(site).planned_steps > STEPS * 3 / 4);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void plans_of_steps_in_shared_memory_take_nothing_of_the_default_pool(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "shared", .kind = EBB_KIND_SHARED);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    uint64_t total = pool_stats_of(ebb_pool_default()).blocks.total;
    for (unsigned i = 0; i < 3; i++)
        take_step(site, 64 * KIB, 30000);
    assert_int_equal(site_stats(site).hits, 2);
    assert_int_equal(pool_stats_of(ebb_pool_default()).blocks.total, total);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_pool_destroy(pool), 0);
}

/* A step that asks for too much does not miss it. */
static void what_fails_is_not_missed(void **state) {
    enum { STEPS = 4, BLOCKS = 20 };
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    ebb_region other = OPEN(.pool = stage->pool, .hint_bytes = 32 * MIB);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 64 * MIB), 0);
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = begin(site, stage->root);
        for (unsigned k = 0; k < BLOCKS; k++) {
            block_of(step.region, 3000, 64);
            if (k != BLOCKS / 2)
                continue;
            /* what cannot be had leaves the plan's place alone, too */
            static const size_t bytes[] = {(size_t)1 << 45, 65 * MIB, 33 * MIB};
            for (unsigned at = 0; at < sizeof bytes / sizeof *bytes; at++)
                assert_no_block(ebb_region_alloc(step.region, bytes[at], 64), EBB_E_POOL_LIMIT);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.allocations, STEPS * BLOCKS);
    assert_int_equal(stats.hits, (STEPS - 2) * BLOCKS);
    assert_int_equal(stats.missed + stats.missed_bytes, 0);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(sizes_that_never_come_together_make_no_plan_for_both),
        STAGED(sizes_that_differ_a_little_share_a_plan),
        STAGED(the_longest_of_the_first_loops_is_planned),
        STAGED(most_blocks_of_loops_are_served_whatever_came_first),
        STAGED(hardly_any_step_makes_no_plan),
        STAGED(a_record_that_was_broken_off_makes_no_plan),
        STAGED(a_plan_that_cannot_be_made_is_not_tried_each_time),
        STAGED(a_plan_that_is_of_no_use_any_more_goes_though_no_other_can_be_made),
        STAGED(survivors_by_chance_are_not_learnt_for_ever),
        STAGED(a_survivor_that_grows_is_not_born_above),
        STAGED(a_coarse_plan_is_known_as_such_by_who_inherits_it),
        STAGED(a_small_block_that_grows_has_no_slot_in_a_coarse_plan),
        STAGED(a_key_has_its_slot_wherever_that_is),
        STAGED(what_the_first_step_of_a_tag_leaves_out_keeps_its_room),
        STAGED(a_lower_plan_takes_fewer_pages),
        STAGED(a_step_that_follows_an_older_plan_changes_no_newer_one),
        STAGED(what_comes_after_a_mark_is_not_missed),
        STAGED(a_step_that_goes_on_behind_its_plan_has_the_arena),
        STAGED(what_a_step_of_another_kind_takes_is_missed),
        STAGED(plans_are_not_made_at_the_cost_of_the_pool),
        STAGED(steps_that_met_once_come_one_at_a_time_all_the_same),
        cmocka_unit_test(plans_of_steps_in_shared_memory_take_nothing_of_the_default_pool),
        STAGED(what_fails_is_not_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
