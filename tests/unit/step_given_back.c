// SPDX-License-Identifier: Apache-2.0
/*
 * step_given_back.c - whose steps a pool gave memory back for: each site counts what went at the
 * ends of its own, and all sites together what the pool has.
 */
#include "kit/test.h"

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

static uint64_t given_by(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    return stats.given_back;
}

static void step_of(ebb_site *site, ebb_region parent, size_t bytes) {
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    block_of(step.region, bytes, 64);
    assert_int_equal(ebb_step_end(step), 0);
}

static void steps_of(ebb_site *site, unsigned count, size_t bytes) {
    for (unsigned i = 0; i < count; i++)
        step_of(site, (ebb_region){NULL, 0}, bytes);
}

static void what_goes_at_the_end_of_a_step_is_its_sites(void **state) {
    struct stage *stage = *state;
    ebb_site *one = SITE(.name = "one", .pool = stage->pool, .unplanned = true);
    ebb_site *other = SITE(.name = "other", .pool = stage->pool, .unplanned = true);
    steps_of(one, 20, MIB);
    steps_of(other, 20, MIB);
    assert_int_equal(given_by(one) + given_by(other), 0);
    steps_of(one, 1, 100 * MIB);
    assert_true(given_by(one) >= 98 * MIB && given_by(other) == 0);
    steps_of(one, 20, 10 * MIB);
    uint64_t before = given_by(one);
    steps_of(other, 60, MIB); /* what the other had goes while this one is at work */
    assert_true(given_by(other) >= 8 * MIB);
    assert_int_equal(given_by(one), before);
    assert_int_equal(given_by(one) + given_by(other), pool_stats_of(stage->pool).given_back);
    ebb_pool_trim(stage->pool, 0); /* for nobody's step */
    assert_true(given_by(one) + given_by(other) < pool_stats_of(stage->pool).given_back);
    assert_int_equal(ebb_site_destroy(one) + ebb_site_destroy(other), 0);
}

static void below_a_root_the_end_of_a_step_counts_too(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.name = "below", .pool = stage->pool, .unplanned = true);
    for (unsigned i = 0; i < 20; i++)
        step_of(site, stage->root, MIB);
    step_of(site, stage->root, 100 * MIB);
    assert_true(given_by(site) >= 98 * MIB);
    assert_int_equal(given_by(site), pool_stats_of(stage->pool).given_back);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* In a ring the pages of a step are free when its place is wanted; until then they are a load that
 * stays high. */
static void in_a_ring_it_counts_when_the_region_closes(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.name = "ring", .pool = stage->pool, .unplanned = true, .ring = 2);
    steps_of(site, 20, MIB);
    steps_of(site, 1, 100 * MIB);
    steps_of(site, 2, MIB);
    assert_int_equal(given_by(site), 0);
    steps_of(site, 100, MIB);
    assert_true(given_by(site) >= 20 * MIB); /* a quarter of a step at a time */
    assert_int_equal(given_by(site), pool_stats_of(stage->pool).given_back);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Such a region may close when its site has gone. */
static void what_closes_with_its_parent_is_nobodys(void **state) {
    struct stage *stage = *state;
    for (unsigned ring = 0; ring < 2; ring++) {
        ebb_site *site = SITE(.name = "left", .pool = stage->pool, .unplanned = true,
                              .ring = ring);
        ebb_region root = OPEN(.name = "root", .pool = stage->pool);
        for (unsigned i = 0; i < 20; i++)
            step_of(site, root, MIB);
        ebb_step step = ebb_step_begin_under(site, root, 0);
        block_of(step.region, 100 * MIB, 64);
        if (ring)
            assert_int_equal(ebb_step_end(step), 0);
        uint64_t given = given_by(site), all = pool_stats_of(stage->pool).given_back;
        assert_int_equal(ebb_region_close(root), 0);
        assert_true(pool_stats_of(stage->pool).given_back >= all + 90 * MIB);
        assert_int_equal(given_by(site), given);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(what_goes_at_the_end_of_a_step_is_its_sites),
        STAGED(below_a_root_the_end_of_a_step_counts_too),
        STAGED(in_a_ring_it_counts_when_the_region_closes),
        STAGED(what_closes_with_its_parent_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
