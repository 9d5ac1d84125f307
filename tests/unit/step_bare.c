// SPDX-License-Identifier: Apache-2.0
/*
 * step_bare.c - steps of sites with scopes that have nothing in their regions: they take no lock,
 * and are steps like all others. Threads count what goes wrong. Run under ThreadSanitizer.
 */
#include "kit/test.h"

#include "step/site.h"

#include <pthread.h>
#include <stdatomic.h>

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(.scope = true, __VA_ARGS__))

static atomic_uint wrong;

static void expect(bool holds) {
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

static ebb_step begin(ebb_site *site) {
    ebb_step step = ebb_step_begin(site, 0);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

static void finish(ebb_step step) {
    assert_int_equal(ebb_step_end(step), 0);
}

static struct ebb_site_stats stats_of_site(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    return stats;
}

static unsigned count_lanes(const ebb_site *site) {
    unsigned count = 0;
    for (const struct lane *lane = site->lanes; lane; lane = lane->next)
        count++;
    return count;
}

/* The steps of a site that is new are recorded; after some, those of its thread are bare. */
static ebb_site *bare_site(void) {
    ebb_site *site = SITE(.name = "bare");
    for (unsigned i = 0; i < 20; i++)
        finish(begin(site));
    uint64_t bare = bare_count(site);
    assert_true(site->is_bare && bare);
    finish(begin(site));
    assert_int_equal(bare_count(site), bare + 1);
    assert_int_equal(stats_of_site(site).steps, 21);
    assert_int_equal(count_lanes(site), 1);
    return site;
}

static void steps_are_counted(void **state) {
    ebb_site *site = bare_site();
    struct ebb_site_stats stats = stats_of_site(site);
    assert_int_equal(stats.allocations, 0);
    assert_int_equal(stats.excesses, 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A site for whose steps no plan can be made looks again after some of them. */
static void steps_with_nothing_are_none_of_those(void **state) {
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.name = "looks"));
    for (unsigned i = 0; i < LEARN_FIRST + 1; i++) {
        ebb_step step = begin(site);
        block_of(step.region, 5000, 64);
        assert_int_equal(ebb_region_reset(step.region, 0), 0);
        finish(step);
    }
    uint64_t recorded = stats_of_site(site).recorded_steps;
    for (unsigned i = 0; i < 4 * LEARN_WAIT; i++)
        finish(begin(site));
    assert_int_equal(stats_of_site(site).recorded_steps, recorded);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Another thread gives back what never was the step's. */
static void strays_are_counted(void **state) {
    ebb_site *site = bare_site();
    ebb_region other = OPEN(.name = "other");
    void *block = block_of(other, 100, 16);
    ebb_step step = begin(site);
    assert_int_equal(ebb_region_release_remote(step.region, block), 0);
    finish(step);
    assert_int_equal(stats_of_site(site).strays, 1);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void an_open_one_keeps_its_site(void **state) {
    ebb_site *site = bare_site();
    ebb_step step = begin(site);
    assert_int_equal(site->open_steps, 0);
    assert_refused(ebb_site_destroy(site), EBB_E_BUSY);
    assert_text_names("1 open");
    finish(step);
    assert_refused(ebb_step_end(step), EBB_E_STALE);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void several_of_a_thread_are_apart(void **state) {
    ebb_site *site = bare_site();
    for (unsigned order = 0; order < 6; order++) {
        ebb_step steps[3];
        for (unsigned i = 0; i < 3; i++)
            steps[i] = begin(site);
        assert_true(steps[0].lane != steps[1].lane && steps[1].lane != steps[2].lane &&
                    steps[0].lane != steps[2].lane);
        for (unsigned i = 0; i < 3; i++)
            finish(steps[(i * (order % 2 + 1) + order) % 3]);
    }
    assert_int_equal(count_lanes(site), 3);
    assert_int_equal(site->open_steps, 0);
    assert_int_equal(stats_of_site(site).steps, 21 + 18);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static unsigned count_listed(const ebb_site *site, enum lane_state state) {
    unsigned count = 0;
    for (const struct lane *lane = site->idle; lane; lane = lane->idle_next)
        count += lane_state(lane) == state;
    return count;
}

/* Whoever looks through the list for a lane meets no step twice. */
static void many_that_stay_open_are_met_once(void **state) {
    enum { MANY = 500 };
    ebb_step held[MANY];
    ebb_site *site = bare_site();
    for (unsigned i = 0; i < MANY; i++) {
        held[i] = begin(site);
        assert_true(count_listed(site, LANE_BARE) <= 1);
    }
    assert_int_equal(lane_count_open(site), MANY);
    for (unsigned i = 0; i < 3 * MANY; i++) { /* one ends, a short one, and one that stays */
        unsigned at = i * 7 % MANY;
        finish(held[at]);
        finish(begin(site));
        held[at] = begin(site);
        assert_int_equal(lane_count_open(site), MANY);
    }
    assert_true(count_listed(site, LANE_BARE) > 1);
    ebb_step more[] = {begin(site), begin(site), begin(site)};
    assert_int_equal(count_listed(site, LANE_BARE) + count_listed(site, LANE_IDLE), 0);
    for (unsigned i = 0; i < 3; i++)
        finish(more[i]);
    for (unsigned i = 0; i < MANY; i++)
        finish(held[i]);
    assert_int_equal(site->open_steps, 0);
    assert_true(count_lanes(site) <= MANY + 3);
    assert_int_equal(count_listed(site, LANE_IDLE), count_lanes(site));
    assert_int_equal(stats_of_site(site).steps, 21 + 7 * MANY + 3);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* One that has something after all is whole, and from then on steps are learnt from. */
static void one_that_is_filled_is_the_last(void **state) {
    ebb_site *site = bare_site();
    uint64_t bare = bare_count(site);
    for (unsigned i = 0; i < 12; i++) {
        ebb_step step = begin(site);
        void *block = ebb_region_alloc(step.region, 50000, 64);
        assert_non_null(block);
        pattern_fill(block, 50000, i);
        assert_true(pattern_holds(block, 50000, i));
        finish(step);
    }
    assert_false(site->is_bare);
    assert_int_equal(bare_count(site), bare);
    struct ebb_site_stats stats = stats_of_site(site);
    assert_int_equal(stats.steps, 21 + 12);
    assert_int_equal(stats.allocations, 12);
    assert_true(stats.hits);
    finish(begin(site));
    assert_int_equal(bare_count(site), bare);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void sites_with_budgets_or_rings_have_none(void **state) {
    ebb_site *budget = SITE(.name = "budget", .budget = {.bytes = 100});
    ebb_site *ring = SITE(.name = "ring", .ring = 1);
    ebb_site *plain = ebb_site_create(EBB_SITE_OPTIONS(.name = "plain"));
    assert_false(budget->is_bare || ring->is_bare || plain->is_bare);
    assert_int_equal(ebb_site_destroy(budget), 0);
    assert_int_equal(ebb_site_destroy(ring), 0);
    assert_int_equal(ebb_site_destroy(plain), 0);
}

static void one_that_cannot_begin_leaves_its_lane(void **state) {
    ebb_site *site = bare_site();
    ebb_region parent = ebb_region_open(NULL);
    assert_int_equal(ebb_region_close(parent), 0);
    for (unsigned i = 0; i < 3; i++) {
        ebb_step step = ebb_step_begin_under(site, parent, 0);
        assert_false(ebb_region_is_open(step.region));
        assert_int_equal(ebb_last_error(), EBB_E_STALE);
    }
    finish(begin(site));
    assert_int_equal(count_lanes(site), 1);
    assert_int_equal(stats_of_site(site).steps, 22);
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void one_that_closes_with_its_parent_leaves_its_lane(void **state) {
    ebb_site *site = bare_site();
    ebb_region parent = ebb_region_open(NULL);
    ebb_step step = ebb_step_begin_under(site, parent, 0);
    assert_true(ebb_region_is_open(step.region));
    assert_int_equal(ebb_region_close(parent), 0);
    assert_refused(ebb_step_end(step), EBB_E_STALE);
    finish(begin(site));
    assert_int_equal(count_lanes(site), 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* More sites than a thread remembers; and one in the place of another that has gone. */
static void sites_take_turns(void **state) {
    enum { SITES = 9, ROUNDS = 30 };
    ebb_site *sites[SITES];
    for (unsigned i = 0; i < SITES; i++)
        sites[i] = bare_site();
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < SITES; i++)
            finish(begin(sites[i]));
    for (unsigned i = 0; i < SITES; i++) {
        assert_int_equal(stats_of_site(sites[i]).steps, 21 + ROUNDS);
        assert_int_equal(count_lanes(sites[i]), 1);
        assert_int_equal(ebb_site_destroy(sites[i]), 0);
        sites[i] = bare_site();
    }
    for (unsigned i = 0; i < SITES; i++)
        assert_int_equal(ebb_site_destroy(sites[i]), 0);
}

struct handed {
    ebb_site *site;
    ebb_step step;
};

static void *end_handed(void *context) {
    struct handed *handed = context;
    expect(ebb_step_end(handed->step) == 0);
    for (unsigned i = 0; i < 5; i++) {
        ebb_step step = ebb_step_begin(handed->site, 0);
        expect(ebb_step_end(step) == 0);
    }
    handed->step = ebb_step_begin(handed->site, 0); /* outlives its thread */
    return NULL;
}

static void steps_move_between_threads(void **state) {
    struct handed handed = {.site = bare_site()};
    for (unsigned i = 0; i < 10; i++) {
        pthread_t thread;
        handed.step = begin(handed.site);
        assert_int_equal(pthread_create(&thread, NULL, end_handed, &handed), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_refused(ebb_site_destroy(handed.site), EBB_E_BUSY);
        finish(handed.step);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(count_lanes(handed.site) <= 2); /* those of ended threads are taken over */
    assert_int_equal(stats_of_site(handed.site).steps, 21 + 10 * 7);
    assert_int_equal(ebb_site_destroy(handed.site), 0);
}

enum { THREADS = 4, STEPS = 2000 };

static atomic_uint begun, filled;

/* One or two at once; now and then one has something, and its site is bare no more. Each thread
 * plays by its number, so that each run plays the same. */
static void *take_steps(void *context) {
    ebb_site *site = context;
    uint64_t chance = 1 + 48271 * (uint64_t)atomic_fetch_add(&begun, 1);
    for (unsigned i = 0; i < STEPS; i++) {
        chance = chance * 16807 % 2147483647;
        ebb_step step = ebb_step_begin(site, 0), inner = {0};
        expect(ebb_region_is_open(step.region));
        if (chance % 4 == 0)
            inner = ebb_step_begin(site, 1);
        if (chance % 997 == 0 && i > STEPS / 2) {
            expect(ebb_region_alloc(step.region, 1000, 64) != NULL);
            atomic_fetch_add(&filled, 1);
        }
        if (chance % 4 == 0)
            expect(ebb_step_end(inner) == 0);
        expect(ebb_step_end(step) == 0);
        atomic_fetch_add((atomic_uint *)site->options.context, 1 + (chance % 4 == 0));
    }
    return NULL;
}

static void threads_have_lanes_of_their_own(void **state) {
    for (unsigned round = 0; round < 5; round++) {
        pthread_t threads[THREADS];
        atomic_uint steps = 0;
        ebb_site *site = SITE(.name = "many", .context = &steps);
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_steps, site), 0);
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(atomic_load(&wrong), 0);
        assert_int_equal(stats_of_site(site).steps, atomic_load(&steps));
        assert_int_equal(stats_of_site(site).allocations, atomic_exchange(&filled, 0));
        assert_true(count_lanes(site) <= 2 * THREADS);
        assert_int_equal(lane_count_open(site), 0);
        assert_int_equal(count_listed(site, LANE_IDLE), count_lanes(site));
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_counted),
        cmocka_unit_test(steps_with_nothing_are_none_of_those),
        cmocka_unit_test(strays_are_counted),
        cmocka_unit_test(an_open_one_keeps_its_site),
        cmocka_unit_test(several_of_a_thread_are_apart),
        cmocka_unit_test(many_that_stay_open_are_met_once),
        cmocka_unit_test(one_that_is_filled_is_the_last),
        cmocka_unit_test(sites_with_budgets_or_rings_have_none),
        cmocka_unit_test(one_that_cannot_begin_leaves_its_lane),
        cmocka_unit_test(one_that_closes_with_its_parent_leaves_its_lane),
        cmocka_unit_test(sites_take_turns),
        cmocka_unit_test(steps_move_between_threads),
        cmocka_unit_test(threads_have_lanes_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
