// SPDX-License-Identifier: Apache-2.0
/*
 * kept.c - pages that a pool keeps for the next step of a site: a step in another pool takes none
 * of them; a step that does not keep its own is over for the pool all the same.
 */
#include "kit/test.h"

#include "region/track.h"

enum { STEPS = 12, BLOCKS = 8, BLOCK_BYTES = 64 << 10 };

static void steps_of_one_site_in_two_pools_keep_apart(void **state) {
    ebb_pool *pools[] = {POOL(.name = "one"), POOL(.name = "other")};
    ebb_region roots[] = {OPEN(.pool = pools[0]), OPEN(.pool = pools[1])};
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "wanders"));
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned at = i / 2 % 2;
        void *blocks[BLOCKS];
        ebb_step step = ebb_step_begin_under(site, roots[at], 0);
        for (unsigned k = 0; k < BLOCKS; k++)
            blocks[k] = block_of(step.region, BLOCK_BYTES, 64);
        for (unsigned k = 0; k < BLOCKS; k++)
            assert_true(pattern_holds(blocks[k], BLOCK_BYTES, BLOCK_BYTES));
        assert_true(stats_of(step.region).reserved.current >= BLOCKS * BLOCK_BYTES);
        assert_true(pool_stats_of(pools[at]).owned >= BLOCKS * BLOCK_BYTES);
        assert_int_equal(pool_stats_of(pools[1 - at]).owned, 0);
        assert_int_equal(ebb_check_pool(pools[0]) + ebb_check_pool(pools[1]), 0);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(ebb_check_pool(pools[0]) + ebb_check_pool(pools[1]), 0);
    }
    assert_int_equal(site_stats(site).hits, (STEPS - 2) * BLOCKS);
    assert_int_equal(ebb_site_destroy(site), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ebb_region_close(roots[i]), 0);
        pool_end(pools[i]);
    }
}

/* What was live in its arena are blocks like any others, and no thread is there to be met. */
static void nobody_meets_a_step_whose_arena_was_dissolved(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        struct track *track = ((struct region *)step.region.lane)->track;
        for (unsigned k = 0; k < BLOCKS; k++)
            block_of(step.region, BLOCK_BYTES, 64);
        bool planned = track && track->arena; /* now and then: what was served in it escapes */
        assert_true(i != 2 || planned);
        assert_true(!planned || (stage->pool->taker && track_dissolve(track)));
        assert_int_equal(ebb_step_end(step), 0);
        assert_null(stage->pool->taker);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_one_site_in_two_pools_keep_apart),
        STAGED(nobody_meets_a_step_whose_arena_was_dissolved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
