// SPDX-License-Identifier: Apache-2.0
/*
 * reset.c - all blocks and children end, the region stays open, and as many pages stay with it
 * as the caller says.
 */
#include "kit/test.h"

static void everything_ends_and_the_region_serves_again(void **state) {
    struct stage *stage = *state;
    for (int round = 0; round < 20; round++) {
        ebb_region child = OPEN(.parent = stage->root);
        for (size_t i = 0; i < 200; i++) {
            block_of(stage->root, i * 37 % 3000, 16);
            block_of(child, i * 11 % 3000, 16);
        }
        static const size_t keeps[] = {0, 10000, EBB_KEEP_ALL};
        assert_int_equal(ebb_region_reset(stage->root, keeps[round % 3]), 0);
        assert_false(ebb_region_is_open(child));
        assert_true(ebb_region_is_open(stage->root));
        struct ebb_region_stats stats = stats_of(stage->root);
        assert_int_equal(stats.blocks.current + stats.requested.current + stats.used.current, 0);
        assert_int_equal(stats.children, 0);
        assert_int_equal(stats.waste, stats.reserved.current);
        ebb_check_pool(stage->pool);
    }
}

static void keeping_all_keeps_every_page(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 300 * KIB, 64);
    block_of(stage->root, 100, 16);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    for (int round = 0; round < 10; round++) {
        assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
        assert_int_equal(stats_of(stage->root).reserved.current, reserved);
        block_of(stage->root, 300 * KIB, 64);
        block_of(stage->root, 100, 16);
        assert_int_equal(stats_of(stage->root).reserved.total, reserved);
    }
}

static void keeping_nothing_gives_every_page_to_the_pool_hot(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 300 * KIB, 64);
    struct ebb_pool_stats before = pool_stats_of(stage->pool);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    struct ebb_pool_stats after = pool_stats_of(stage->pool);
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
    assert_int_equal(stats_of(stage->root).runs, 0);
    assert_int_equal(after.owned, 0);
    assert_int_equal(after.cached, before.reserved.current);
    block_of(stage->root, 300 * KIB, 64);
    assert_int_equal(pool_stats_of(stage->pool).reserved.total, before.reserved.total);
}

static void no_more_is_kept_than_was_asked(void **state) {
    struct stage *stage = *state;
    static const size_t keeps[] = {0, 1, 4095, 4096, 65536, 1 << 20, 10 << 20};
    for (size_t i = 0; i < sizeof keeps / sizeof *keeps; i++) {
        ebb_region other = OPEN(.pool = stage->pool);
        block_of(stage->root, 60 * KIB, 64);
        block_of(other, 60 * KIB, 64);
        block_of(stage->root, 600 * KIB, 64);
        assert_int_equal(ebb_region_reset(stage->root, keeps[i]), 0);
        assert_true(stats_of(stage->root).reserved.current <= keeps[i]);
        ebb_check_pool(stage->pool);
        ebb_region_close(other);
    }
}

static void the_region_keeps_its_name_limit_seal_and_parent(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 4096);
    block_of(region, 4096, 64);
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    assert_int_equal(stats_of(region).limit, 4096);
    assert_int_equal(stats_of(region).subtree_used, 0);
    block_of(region, 4096, 64);
    assert_no_block(ebb_region_alloc(region, 1, 1), EBB_E_REGION_LIMIT);
    assert_true(ebb_region_is_ancestor(stage->root, region));
    assert_int_equal(ebb_region_seal(region), 0);
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    assert_no_block(ebb_region_alloc(region, 1, 1), EBB_E_SEALED);
}

static void peaks_and_totals_outlive_a_reset(void **state) {
    struct stage *stage = *state;
    for (unsigned round = 1; round <= 5; round++) {
        block_of(stage->root, 5000, 64);
        block_of(stage->root, 100, 16);
        assert_int_equal(ebb_region_reset(stage->root, 0), 0);
        struct ebb_region_stats stats = stats_of(stage->root);
        assert_int_equal(stats.blocks.total, 2 * round);
        assert_int_equal(stats.blocks.peak, 2);
        assert_int_equal(stats.requested.total, 5100 * round);
        assert_int_equal(stats.requested.peak, 5100);
    }
}

static void a_parents_budget_gets_everything_back(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.parent = stage->root, .limit_bytes = 10000);
    ebb_region region = OPEN(.parent = parent), child = OPEN(.parent = region);
    block_of(parent, 1008, 16);
    block_of(region, 4096, 64);
    block_of(child, 4096, 64);
    assert_int_equal(stats_of(parent).subtree_used, 1008 + 8192);
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    assert_int_equal(stats_of(parent).subtree_used, 1008);
}

static void pages_kept_after_relinking_belong_to_the_region(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    for (int round = 0; round < 5; round++) {
        char *blocks[3];
        for (int i = 0; i < 3; i++)
            blocks[i] = block_of(region, 8192, 4096);
        struct ebb_survivor survivor = survivor_of(blocks[1], EBB_PROMOTE_RELINK);
        assert_int_equal(ebb_promote(region, stage->root, &survivor, 1, NULL), 0);
        assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
        ebb_check_pool(stage->pool);
        assert_true(pattern_holds(blocks[1], 8192, 8192));
        for (int i = 0; i < 4; i++) {
            void *block = block_of(region, 6000, 64);
            assert_ptr_equal(ebb_region_of(block).lane, region.lane);
            assert_ptr_equal(ebb_region_of((char *)block + 5999).lane, region.lane);
            assert_int_equal(ebb_region_release(region, block), 0);
        }
        ebb_check_pool(stage->pool);
    }
}

/* To the byte: a run that is as long as what may be kept is kept. */
static void a_run_is_kept_if_all_of_it_may_be(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 300 * KIB, 64);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    assert_int_equal(stats_of(stage->root).runs, 1);
    assert_int_equal(ebb_region_reset(stage->root, reserved), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    assert_int_equal(ebb_region_reset(stage->root, reserved - 1), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
}

/* They were a child's, and nothing is placed in them. */
static void pages_of_survivors_go_whatever_is_kept(void **state) {
    struct stage *stage = *state;
    for (int round = 0; round < 3; round++) {
        ebb_region child = OPEN(.parent = stage->root);
        block_of(stage->root, 5000, 64);
        uint64_t reserved = stats_of(stage->root).reserved.current;
        struct ebb_survivor survivor = survivor_of(block_of(child, 9000, 64), EBB_PROMOTE_RELINK);
        assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, NULL, NULL), 0);
        assert_int_equal(stats_of(stage->root).reserved.current, reserved + 3 * PAGE);
        assert_int_equal(stats_of(stage->root).pinned, 3 * PAGE - 9024);
        assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
        assert_int_equal(stats_of(stage->root).reserved.current, reserved);
        assert_int_equal(stats_of(stage->root).runs, 1);
        assert_int_equal(stats_of(stage->root).pinned, 0);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
    }
}

/* The pages that its plan asked for at once. */
static void the_arena_of_a_step_goes_whatever_is_kept(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < 6; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 0);
        for (unsigned k = 0; k < 10; k++)
            block_of(step.region, 50000 + k, 64);
        if (i == 5) { /* it has a plan by now */
            assert_true(site_stats(site).hits >= 10);
            assert_true(stats_of(step.region).reserved.current >= 500000);
            assert_int_equal(ebb_region_reset(step.region, EBB_KEEP_ALL), 0);
            assert_int_equal(stats_of(step.region).reserved.current, 0);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The pool takes a region that is reset between rounds for one that needs what they had. */
static void what_rounds_had_is_not_given_back(void **state) {
    (void)state;
    for (unsigned form = 0; form < 4; form++) {
        ebb_pool *pool = POOL(.name = "rounds");
        ebb_region root = OPEN(.pool = pool);
        struct ebb_pool_stats first = {.recent_peak = 0};
        for (unsigned round = 0; round < 20; round++) {
            ebb_region region = form & 1 ? OPEN(.parent = root) : OPEN(.pool = pool);
            for (unsigned i = 0; i < 64; i++) /* gigabytes in all, if filled */
                assert_non_null(ebb_region_alloc(region, 1 * MIB, 64));
            assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
            if (form & 2) { /* the last round is a small one */
                block_of(region, 1 * MIB, 64);
                assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
            }
            assert_int_equal(ebb_region_close(region), 0);
            if (round == 0)
                first = pool_stats_of(pool);
        }
        struct ebb_pool_stats last = pool_stats_of(pool);
        assert_true(last.recent_peak >= 64 * MIB);
        assert_int_equal(last.given_back, first.given_back);
        assert_int_equal(last.reserved.total, first.reserved.total);
        assert_int_equal(ebb_region_close(root), 0);
        pool_end(pool);
    }
}

/* Nothing tells which of two blocks at one address is meant. */
static void a_late_release_is_refused_until_its_place_is_taken(void **state) {
    struct stage *stage = *state;
    static const size_t sizes[] = {3 * MIB, 100000, 64};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *late = block_of(stage->root, sizes[i], 64);
        assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
        assert_int_not_equal(ebb_region_release(stage->root, late), 0);
        assert_ptr_equal(block_of(stage->root, sizes[i], 64), late);
        assert_int_equal(ebb_region_release(stage->root, late), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(everything_ends_and_the_region_serves_again),
        STAGED(keeping_all_keeps_every_page),
        STAGED(keeping_nothing_gives_every_page_to_the_pool_hot),
        STAGED(no_more_is_kept_than_was_asked),
        STAGED(the_region_keeps_its_name_limit_seal_and_parent),
        STAGED(peaks_and_totals_outlive_a_reset),
        STAGED(a_parents_budget_gets_everything_back),
        STAGED(pages_kept_after_relinking_belong_to_the_region),
        STAGED(a_run_is_kept_if_all_of_it_may_be),
        STAGED(pages_of_survivors_go_whatever_is_kept),
        STAGED(the_arena_of_a_step_goes_whatever_is_kept),
        cmocka_unit_test(what_rounds_had_is_not_given_back),
        STAGED(a_late_release_is_refused_until_its_place_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
