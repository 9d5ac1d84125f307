// SPDX-License-Identifier: Apache-2.0
/*
 * level.c - a step needs new pages though others are hot, because these are in parts: the parts go
 * rather than that the pool holds more than ever, and not for ever.
 */
#include "kit/test.h"

enum { BLOCKS = 32 };

#define BYTES (256 * KIB)
#define HALF (BLOCKS / 2 * BYTES)

/* So much that nothing else gives pages back. */
static ebb_pool *keeping_pool(void) {
    ebb_pool *pool = POOL(.keep_margin_percent = 100000);
    assert_non_null(pool);
    return pool;
}

static void touch(void *block, size_t bytes) {
    pattern_fill(block, bytes, 1);
}

/* Every second block of a region goes to the root: what was between them is hot, in parts. */
static void leave_parts(ebb_region root, struct ebb_survivor *kept) {
    ebb_region step = OPEN(.parent = root);
    for (unsigned i = 0; i < BLOCKS; i++) {
        void *block = block_of(step, BYTES, PAGE);
        touch(block, BYTES);
        if (i % 2)
            kept[i / 2] = survivor_of(block, EBB_PROMOTE_RELINK);
    }
    assert_int_equal(ebb_close_keeping(step, root, kept, BLOCKS / 2, NULL, NULL), 0);
}

static void release_all(ebb_region root, const struct ebb_survivor *kept) {
    for (unsigned i = 0; i < BLOCKS / 2; i++)
        assert_int_equal(ebb_region_release(root, kept[i].block), 0);
}

/* A step with one block that none of the parts is long enough for. */
static void take_in_one_piece(ebb_region root, size_t bytes) {
    ebb_region step = OPEN(.parent = root);
    touch(block_of(step, bytes, PAGE), bytes);
    assert_int_equal(ebb_region_close(step), 0);
}

static void parts_go_for_a_whole(void **state) {
    (void)state;
    struct ebb_survivor kept[BLOCKS / 2];
    ebb_pool *pool = keeping_pool();
    ebb_region root = OPEN(.pool = pool);
    leave_parts(root, kept);
    struct ebb_pool_stats before = pool_stats_of(pool);
    assert_true(before.cached >= HALF - 2 * BYTES);
    take_in_one_piece(root, HALF / 2);
    struct ebb_pool_stats after = pool_stats_of(pool);
    assert_int_equal(after.reserved.peak, before.reserved.peak);
    assert_true(after.given_back - before.given_back >= HALF / 2 - BYTES);
    assert_int_equal(ebb_check_pool(pool), 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

static void below_the_peak_nothing_goes(void **state) {
    (void)state;
    struct ebb_survivor kept[BLOCKS / 2];
    ebb_pool *pool = keeping_pool();
    ebb_region root = OPEN(.pool = pool);
    take_in_one_piece(root, 4 * HALF);
    ebb_pool_trim(pool, 0);
    leave_parts(root, kept);
    struct ebb_pool_stats before = pool_stats_of(pool);
    take_in_one_piece(root, HALF / 2);
    assert_int_equal(pool_stats_of(pool).given_back, before.given_back);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* Giving the parts back would make up for little of that. */
static void few_parts_stay_when_far_more_is_needed(void **state) {
    (void)state;
    struct ebb_survivor kept[BLOCKS / 2];
    ebb_pool *pool = keeping_pool();
    ebb_region root = OPEN(.pool = pool);
    leave_parts(root, kept);
    struct ebb_pool_stats before = pool_stats_of(pool);
    take_in_one_piece(root, 8 * HALF);
    struct ebb_pool_stats after = pool_stats_of(pool);
    assert_int_equal(after.given_back, before.given_back);
    assert_int_equal(after.reserved.peak, before.reserved.peak + 8 * HALF);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* Steps that go on like that would else touch new pages for ever. */
static void it_ends(void **state) {
    (void)state;
    enum { ROUNDS = 20 };
    struct ebb_survivor kept[BLOCKS / 2];
    ebb_pool *pool = keeping_pool();
    ebb_region root = OPEN(.pool = pool);
    leave_parts(root, kept);
    uint64_t first_peak = pool_stats_of(pool).reserved.peak, given = 0;
    release_all(root, kept);
    for (unsigned round = 0; round < ROUNDS; round++) {
        leave_parts(root, kept);
        take_in_one_piece(root, HALF / 2);
        release_all(root, kept);
        struct ebb_pool_stats now = pool_stats_of(pool);
        assert_true(now.given_back <= now.reserved.peak);
        assert_true(round < ROUNDS / 2 || now.given_back == given);
        given = now.given_back;
    }
    assert_true(given >= HALF / 2);
    assert_true(pool_stats_of(pool).reserved.peak > first_peak);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

static void who_keeps_all_gives_nothing(void **state) {
    (void)state;
    struct ebb_survivor kept[BLOCKS / 2];
    ebb_pool *pool = POOL(.keep_all = true);
    ebb_region root = OPEN(.pool = pool);
    leave_parts(root, kept);
    take_in_one_piece(root, HALF / 2);
    assert_int_equal(pool_stats_of(pool).given_back, 0);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* A step as planned has its pages in one piece: cold ones, for the hot ones are in parts. */
static void who_keeps_all_gives_nothing_for_a_plan(void **state) {
    (void)state;
    struct ebb_survivor kept[BLOCKS / 2];
    for (unsigned keeps = 0; keeps < 2; keeps++) {
        ebb_pool *pool = keeps ? POOL(.keep_all = true) : keeping_pool();
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
        ebb_region root = OPEN(.pool = pool);
        for (unsigned i = 0; i < 3; i++) {
            if (i == 2)
                leave_parts(root, kept);
            uint64_t given = pool_stats_of(pool).given_back;
            ebb_step step = ebb_step_begin_under(site, root, 0);
            touch(block_of(step.region, HALF / 2, PAGE), HALF / 2);
            assert_int_equal(ebb_step_end(step), 0);
            assert_true(i < 2 || (pool_stats_of(pool).given_back == given) == keeps);
        }
        assert_int_equal(site_stats(site).hits, 1);
        assert_int_equal(ebb_site_destroy(site), 0);
        assert_int_equal(ebb_region_close(root), 0);
        pool_end(pool);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_go_for_a_whole),
        cmocka_unit_test(below_the_peak_nothing_goes),
        cmocka_unit_test(few_parts_stay_when_far_more_is_needed),
        cmocka_unit_test(it_ends),
        cmocka_unit_test(who_keeps_all_gives_nothing),
        cmocka_unit_test(who_keeps_all_gives_nothing_for_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
