// SPDX-License-Identifier: Apache-2.0
/*
 * step_refused_above.c - training steps that ask for what the pool's limit refuses, in front of a
 * block that lies in the parent: a survivor, or a guest; or with a key that has none.
 */
#include "kit/gradients.h"
#include "kit/refused.h"

enum { LAYERS = 40, LATE = 12, TRIED = LAYERS - LATE - 2, MORE = 30 };

struct training {
    ebb_pool *pool;
    ebb_region run;
    ebb_site *site;
    void *gradient[GRADIENTS];
    ebb_region other;
    void *waits; /* a block of its, which others release */
};

/* A layer of more than is free anywhere, until others' releases are looked for. */
static void *late_layer(struct training *training, ebb_region region) {
    fill_up(training->pool);
    assert_int_equal(ebb_region_release_remote(training->other, training->waits), 0);
    training->waits = NULL;
    return block_of(region, MORE * SIZE, 64);
}

/* What survived the step before goes first, and makes room for layers, among which one is tried in
 * vain; what survives this one comes last, and there may be another try among it. */
static void train(struct training *training, size_t try, size_t late_try) {
    void *layer[LAYERS];
    struct ebb_survivor survivors[GRADIENTS];
    ebb_step step = ebb_step_begin_under(training->site, training->run, 1);
    unsigned made = 0;
    gradients_release(training->run, training->gradient);
    for (unsigned k = 0; k < LAYERS; k++) {
        if (try && k == TRIED)
            refused(step.region, try);
        layer[k] = k == TRIED && training->waits ? late_layer(training, step.region)
                                                 : block_of(step.region, SIZE, 64);
    }
    for (unsigned k = LAYERS; k-- > 0;) {
        if (k < LAYERS - LATE && made < GRADIENTS) {
            if (late_try && made == GRADIENTS / 2)
                refused(step.region, late_try);
            survivors[made] = survivor_of(block_of(step.region, SIZE, 64), EBB_PROMOTE_AUTO);
            pattern_fill(survivors[made].block, SIZE, made);
            made++;
        }
        assert_int_equal(ebb_region_release(step.region, layer[k]), 0);
    }
    assert_int_equal(ebb_step_end_keeping(step, training->run, survivors, made, NULL, NULL), 0);
    for (unsigned k = 0; k < made; k++)
        training->gradient[k] = survivors[k].block;
}

/* One that has been learnt. */
static struct training begin_training(void) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = (LAYERS + 10) * SIZE);
    struct training training = {.pool = pool, .run = OPEN(.pool = pool),
                                .site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool))};
    for (unsigned i = 0; i < LEARNING; i++)
        train(&training, 0, 0);
    return training;
}

static void end_training(struct training *training) {
    assert_int_equal(ebb_site_destroy(training->site), 0);
    assert_int_equal(ebb_region_close(training->run), 0);
    pool_end(training->pool);
}

/* In front of a slot whose block lies in the parent for a while. */
static void a_try_turns_no_guest_away(void **state) {
    for (size_t try = 11; try < 30; try += 6) {
        struct training training = begin_training();
        struct ebb_site_stats learnt = site_stats(training.site);
        assert_true(learnt.guests > 0);
        for (unsigned i = 0; i < STEPS; i++)
            train(&training, try + 10, 0);
        struct ebb_site_stats stats = site_stats(training.site);
        assert_int_equal(stats.plans, learnt.plans);
        assert_int_equal(stats.plan_height, learnt.plan_height);
        assert_int_equal(stats.missed, learnt.missed);
        assert_int_equal(stats.hits - learnt.hits, STEPS * (LAYERS + GRADIENTS));
        end_training(&training);
    }
}

/* In front of a survivor's slot: there are as many bytes, but in several parts. */
static void a_try_before_a_survivor_harms_no_plan(void **state) {
    for (size_t try = 12; try < 32; try += 5) {
        struct training training = begin_training();
        struct ebb_site_stats learnt = site_stats(training.site);
        for (unsigned i = 0; i < STEPS; i++)
            train(&training, 0, try);
        struct ebb_site_stats stats = site_stats(training.site);
        assert_int_equal(stats.hits - learnt.hits, STEPS * (LAYERS + GRADIENTS));
        assert_int_equal(stats.missed, learnt.missed);
        assert_int_equal(stats.takeovers, 0);
        assert_int_equal(stats.plans, learnt.plans);
        end_training(&training);
    }
}

/* Two parts of the parent are free, of which neither has room for both. */
static void leave_two_parts(ebb_pool *pool, ebb_region run) {
    void *blocks[3];
    for (unsigned i = 0; i < 3; i++)
        blocks[i] = block_of(run, SIZE, 64);
    fill_up(pool);
    while (ebb_region_alloc(run, SIZE, 64)) /* behind the last */
        continue;
    assert_int_equal(ebb_region_release(run, blocks[0]), 0);
    assert_int_equal(ebb_region_release(run, blocks[2]), 0);
}

/* There would be as many bytes, and they may be meant for the survivor, which comes next. */
static void a_try_that_may_be_the_survivor_leaves_it_its_slot(void **state) {
    ebb_pool *pool = POOL(0);
    ebb_region run = OPEN(.pool = pool);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i <= LEARNING; i++) {
        ebb_step step = ebb_step_begin_under(site, run, 0);
        block_of(step.region, SIZE, 64);
        if (i == LEARNING) {
            leave_two_parts(pool, run);
            refused(step.region, 2);
        }
        struct ebb_survivor survivor =
            survivor_of(block_of(step.region, SIZE, 64), EBB_PROMOTE_AUTO);
        block_of(step.region, 2000, 64);
        assert_int_equal(ebb_step_end_keeping(step, run, &survivor, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(run, survivor.block), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.hits, (LEARNING - 1) * 3);
    assert_int_equal(stats.missed, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(run), 0);
    pool_end(pool);
}

/* In a guest's place: all that come behind it have their own. */
static void what_was_hopeless_and_comes_late_passes_its_slot(void **state) {
    struct training training = begin_training();
    struct ebb_site_stats learnt = site_stats(training.site);
    assert_int_equal(ebb_pool_set_reserved_limit(training.pool, 0), 0);
    training.other = OPEN(.parent = training.run);
    training.waits = relinked_block(training.other, LAYERS);
    train(&training, 0, 0);
    struct ebb_site_stats stats = site_stats(training.site);
    assert_int_equal(stats.missed - learnt.missed, 1);
    assert_int_equal(stats.missed_bytes - learnt.missed_bytes, MORE * SIZE);
    assert_int_equal(stats.hits - learnt.hits, LAYERS + GRADIENTS - 1);
    assert_int_equal(stats.takeovers, 0);
    end_training(&training);
}

/* With a key that no slot has, in a plan of keys, whose free parts are all too small. */
static void tries_with_a_strange_key_end_no_plan(void **state) {
    enum { BLOCKS = 32, TRIES = 70, MUCH = (BLOCKS / 2 + 1) * SIZE };
    ebb_pool *pool = POOL(.limit_reserved_bytes = (BLOCKS + 2) * SIZE);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    for (unsigned i = 0; i < STEPS; i++) {
        void *blocks[BLOCKS];
        ebb_step step = ebb_step_begin(site, 0);
        for (uint32_t k = 0; k < BLOCKS; k++)
            blocks[k] = ebb_step_alloc(step, SIZE, 64, k + 1);
        for (unsigned k = 1; k < BLOCKS; k += 2)
            assert_int_equal(ebb_region_release(step.region, blocks[k]), 0);
        for (unsigned k = 0; i >= LEARNING && k < TRIES; k++)
            assert_no_block(ebb_step_alloc(step, MUCH, 64, 1000), EBB_E_POOL_LIMIT);
        assert_non_null(ebb_step_alloc(step, SIZE, 64, BLOCKS + 1));
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.hits, (STEPS - 2) * (BLOCKS + 1));
    assert_int_equal(stats.missed, 0);
    assert_int_equal(stats.takeovers, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_before_a_survivor_harms_no_plan),
        cmocka_unit_test(a_try_that_may_be_the_survivor_leaves_it_its_slot),
        cmocka_unit_test(a_try_turns_no_guest_away),
        cmocka_unit_test(tries_with_a_strange_key_end_no_plan),
        cmocka_unit_test(what_was_hopeless_and_comes_late_passes_its_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
