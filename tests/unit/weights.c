// SPDX-License-Identifier: Apache-2.0
/*
 * weights.c - what is held for steps with very many small blocks, of which few are alive at once:
 * records that would be larger than the step are broken off, and others are not; plans that would
 * be are not made, whatever step they are of.
 */
#include "kit/test.h"

#include "step/site.h"

enum { MANY = 200000, ALIVE = 16, LARGE = 16 };

/* So many blocks, few of them alive at once; of loops, if they have a key. */
static void bump(ebb_step step, unsigned count, uint32_t key) {
    void *live[ALIVE] = {NULL};
    for (unsigned i = 0; i < count; i++) {
        void **place = &live[i % ALIVE];
        if (*place)
            assert_int_equal(ebb_region_release(step.region, *place), 0);
        *place = key ? ebb_step_alloc(step, 64, 16, key) : ebb_region_alloc(step.region, 64, 16);
        assert_non_null(*place);
    }
}

static void each_record_that_is_broken_off_is_as_long_as_the_first(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "many"));
    uint32_t first = 0;
    for (unsigned i = 0; i < LEARN_FIRST; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        const struct track *track = site->lanes->ring[0].tracks[0];
        bump(step, 2 * MANY, 0);
        assert_true(track->recording && track->record_lost);
        first = first ? first : track->record_limit;
        assert_int_equal(track->record_limit, first);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Only then comes what most of the bytes are for. */
static void many_small_blocks_may_come_first(void **state) {
    enum { STEPS = 6 };
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "first"));
    for (unsigned i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        bump(step, MANY, 0);
        for (unsigned k = 0; k < LARGE; k++)
            assert_non_null(ebb_region_alloc(step.region, MIB, 64));
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.recorded_steps, 1 + 2); /* the first is broken off */
    assert_int_equal(stats.planned_steps, STEPS - 3);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Short loops would follow the plan of a long one, and of records that are not alike the far larger
 * one would be planned. */
static void a_heavy_step_among_others_is_not_planned(void **state) {
    for (uint32_t key = 0; key < 2; key++) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "heavy"));
        for (unsigned i = 0; i < 8; i++) {
            ebb_step step = ebb_step_begin(site, 0);
            bump(step, i == 1 - key ? MANY / 4 : 20 + i * 7 % 11, key);
            assert_int_equal(ebb_step_end(step), 0);
            assert_true(site_stats(site).plan_slots < 100);
        }
        assert_true(site_stats(site).planned_steps > 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* As many blocks, but of one byte each. */
static void the_plan_of_another_tag_goes_if_it_is_too_heavy(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "tags"));
    for (unsigned i = 0; i < 5; i++) {
        ebb_step step = ebb_step_begin(site, i / 4);
        for (unsigned k = 0; k < MANY / 4; k++)
            assert_non_null(ebb_region_alloc(step.region, i < 4 ? 128 : 1, 16));
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).planned_steps, 3);
    assert_non_null(site->courses[0].plan);
    assert_null(site->courses[1].plan);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* As the first tag's do. Of its record they were, but in a planned step they are the parent's. */
static void what_survives_weighs_where_a_plan_is_inherited(void **state) {
    enum { SURVIVE = 2000, REST = 18000, KEPT = 64 * KIB };
    static struct ebb_survivor survivors[SURVIVE];
    ebb_pool *pool = POOL(0);
    ebb_region run = OPEN(.pool = pool);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < 6; i++) {
        ebb_step step = ebb_step_begin_under(site, run, i / 4);
        for (unsigned k = 0; k < SURVIVE; k++)
            survivors[k] = survivor_of(block_of(step.region, KEPT, 64), EBB_PROMOTE_AUTO);
        bump(step, REST, 0);
        assert_int_equal(ebb_step_end_keeping(step, run, survivors, SURVIVE, NULL, NULL), 0);
        for (unsigned k = 0; k < SURVIVE; k++)
            assert_int_equal(ebb_region_release(run, survivors[k].block), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_true(stats.tenured_right >= 2 * SURVIVE);
    assert_non_null(site->courses[1].plan);
    assert_int_equal(stats.planned_steps, 6 - stats.recorded_steps);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(run), 0);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_record_that_is_broken_off_is_as_long_as_the_first),
        cmocka_unit_test(many_small_blocks_may_come_first),
        cmocka_unit_test(a_heavy_step_among_others_is_not_planned),
        cmocka_unit_test(the_plan_of_another_tag_goes_if_it_is_too_heavy),
        cmocka_unit_test(what_survives_weighs_where_a_plan_is_inherited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
