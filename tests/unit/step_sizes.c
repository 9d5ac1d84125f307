// SPDX-License-Identifier: Apache-2.0
/*
 * step_sizes.c - steps that do the same with other sizes: what their plan is told of survivors that
 * have grown, of blocks that are trimmed, and of those that are larger each time, or once had no
 * room.
 */
#include "kit/text.h"

enum { LIVE = 20, BEFORE = 20, AFTER = 30, SETTLED = 10 };

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

/* Blocks that do not survive, then one that does, so many times as large as the first; then some
 * that may be in no plan. */
static void take_step(ebb_site *site, ebb_region parent, uint64_t tag, size_t scale,
                      unsigned more) {
    ebb_step step = ebb_step_begin_under(site, parent, tag);
    for (unsigned i = 0; i < LIVE; i++)
        block_of(step.region, 20000, 64);
    struct ebb_survivor kept = survivor_of(block_of(step.region, 5000 * scale, 64), 0);
    for (unsigned i = 0; i < more; i++)
        block_of(step.region, 16, 16);
    assert_int_equal(ebb_step_end_keeping(step, parent, &kept, 1, NULL, NULL), 0);
    assert_int_equal(ebb_region_release(parent, kept.block), 0);
}

static ebb_site *site_with_small_survivors(const struct stage *stage) {
    ebb_site *site = SITE(.name = "sizes", .pool = stage->pool);
    for (unsigned i = 0; i < BEFORE; i++)
        take_step(site, stage->root, 0, 1, 0);
    assert_int_equal(site_stats(site).tenured_right, BEFORE - 2);
    return site;
}

/* ---- survivors ---- */

/* After one step, whether their tag is another or not. */
static void survivors_that_have_grown_are_born_above_again(void **state) {
    struct stage *stage = *state;
    for (uint64_t tag = 0; tag < 2; tag++) {
        ebb_site *site = site_with_small_survivors(stage);
        take_step(site, stage->root, tag, 3, 0);
        struct ebb_site_stats before = site_stats(site);
        for (unsigned i = 0; i < SETTLED; i++)
            take_step(site, stage->root, tag, 3, 0);
        struct ebb_site_stats after = site_stats(site);
        assert_int_equal(after.tenured_right - before.tenured_right, SETTLED);
        assert_int_equal(after.missed - before.missed, 0);
        assert_int_equal(after.recorded_steps, 2);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* None is as planned, but nearly, and the survivor is a small part of it. */
static void survivors_that_have_grown_in_steps_that_vary_are_recorded_again(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_with_small_survivors(stage);
    for (unsigned i = 0; i < AFTER; i++)
        take_step(site, stage->root, 0, 3, 1 + i % 2);
    struct ebb_site_stats before = site_stats(site);
    for (unsigned i = 0; i < SETTLED; i++)
        take_step(site, stage->root, 0, 3, 1 + i % 2);
    assert_int_equal(site_stats(site).tenured_right - before.tenured_right, SETTLED);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_survivor_that_was_too_large_was_not_served(void **state) {
    static struct page page;
    page = (struct page){.length = 0};
    struct stage *stage = *state;
    ebb_site *site = site_with_small_survivors(stage);
    assert_int_equal(ebb_report_plan(site, 0, page_write, &page), 0);
    assert_int_equal(page_count(&page, "[\"tenured\",0,0,0,5000]"), 1);
    take_step(site, stage->root, 0, 3, 0);
    page = (struct page){.length = 0};
    assert_int_equal(ebb_report_plan(site, 0, page_write, &page), 0);
    assert_int_equal(page_count(&page, "[\"tenured\",0,0,0,0]"), 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- blocks that are trimmed ---- */

/* Those that are come to less than what is asked for; others are as large as they are. */
static void take_trimmed(ebb_site *site, uint64_t tag, size_t bytes, unsigned trimmed) {
    ebb_step step = ebb_step_begin(site, tag);
    for (unsigned i = 0; i < LIVE; i++) {
        void *block = block_of(step.region, bytes, 64);
        if (i < trimmed)
            assert_int_equal(ebb_region_resize(step.region, block, 100), 0);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

static void blocks_that_are_trimmed_keep_the_room_that_was_asked_for(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.name = "trimmed", .pool = stage->pool);
    for (unsigned i = 0; i < BEFORE; i++)
        take_trimmed(site, 0, 8000, LIVE);
    for (unsigned i = 0; i < SETTLED; i++)
        take_trimmed(site, 1, 8000, LIVE);
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.missed + stats.takeovers, 0);
    assert_int_equal(stats.hits, (BEFORE + SETTLED - 2) * LIVE);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The tag before has larger ones. */
static void only_what_is_trimmed_keeps_more_room_than_a_new_tag_needs(void **state) {
    enum { TRIMMED = 5, LARGE = 8000, SMALL = 1984 };
    struct stage *stage = *state;
    ebb_site *site = SITE(.name = "trimmed", .pool = stage->pool);
    for (unsigned i = 0; i < BEFORE; i++)
        take_trimmed(site, 0, LARGE, 0);
    take_trimmed(site, 1, SMALL, TRIMMED);
    size_t height = (size_t)TRIMMED * LARGE + (size_t)(LIVE - TRIMMED) * SMALL;
    assert_int_equal(site_stats(site).plan_height, (height + 4095) / 4096 * 4096);
    for (unsigned i = 0; i < SETTLED; i++)
        take_trimmed(site, 1, SMALL, i);
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* ---- blocks that are larger each time ---- */

/* One of a few of them has always the same size. Nothing is written, for there is much of it. */
static void take_length(ebb_site *site, size_t length) {
    ebb_step step = ebb_step_begin(site, 0);
    assert_non_null(ebb_region_alloc(step.region, (size_t)1 << 20, 64));
    for (unsigned i = 1; i < LIVE; i++)
        assert_non_null(ebb_region_alloc(step.region, length * 256, 64));
    assert_int_equal(ebb_step_end(step), 0);
}

/* Each length comes so many times. */
static void rise_for(const struct stage *stage, unsigned times) {
    enum { FROM = 128, STEPS = 600, ROOM = LIVE * 64 };
    ebb_site *site = SITE(.name = "rising", .pool = stage->pool);
    for (size_t i = 0; i < STEPS; i++)
        take_length(site, FROM + i / times);
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.hit_bytes > stats.allocated_bytes / 10 * 9);
    assert_in_range(stats.plans, 5, STEPS / 10);
    size_t live = ((size_t)1 << 20) + (LIVE - 1) * (FROM + (STEPS - 1) / times) * 256;
    assert_true(stats.plan_height <= live + live / 8 + ROOM + PAGE);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void sizes_that_rise_have_room_in_advance(void **state) {
    rise_for(*state, 1);
    rise_for(*state, 4);
}

/* ---- a larger plan that there was no room for once ---- */

/* The last block is a small part of all, also where it is somewhat larger. */
static void take_tail(const struct stage *stage, ebb_site *site, size_t tail, size_t limit) {
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 1; i < LIVE; i++)
        assert_non_null(ebb_region_alloc(step.region, 64 * KIB, 64));
    assert_non_null(ebb_region_alloc(step.region, tail, 64));
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, limit), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
}

static void a_growth_that_failed_is_tried_again_after_a_while(void **state) {
    const struct stage *stage = *state;
    ebb_site *site = SITE(.name = "tail", .pool = stage->pool);
    for (unsigned i = 0; i < BEFORE; i++)
        take_tail(stage, site, 32 * KIB, 0);
    uint64_t height = site_stats(site).plan_height;
    take_tail(stage, site, 64 * KIB, height);
    assert_int_equal(site_stats(site).plan_height, height);
    for (unsigned i = 0; i < 32; i++)
        take_tail(stage, site, 64 * KIB, 0);
    struct ebb_site_stats before = site_stats(site);
    assert_int_equal(before.plan_height, height + 32 * KIB);
    assert_int_equal(before.recorded_steps, 2);
    for (unsigned i = 0; i < SETTLED; i++)
        take_tail(stage, site, 64 * KIB, 0);
    assert_int_equal(site_stats(site).missed, before.missed);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(survivors_that_have_grown_are_born_above_again),
        STAGED(survivors_that_have_grown_in_steps_that_vary_are_recorded_again),
        STAGED(a_survivor_that_was_too_large_was_not_served),
        STAGED(blocks_that_are_trimmed_keep_the_room_that_was_asked_for),
        STAGED(only_what_is_trimmed_keeps_more_room_than_a_new_tag_needs),
        STAGED(sizes_that_rise_have_room_in_advance),
        STAGED(a_growth_that_failed_is_tried_again_after_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
