// SPDX-License-Identifier: Apache-2.0
/*
 * step_plans.c - what the end of one step lays, however many plans it tries: all of them have one
 * bound of work together, and those that are known to be too high cost none. packing_solve() is
 * looked over the shoulder: the linker has put a function of ours in its place.
 */
#include "kit/test.h"

#include "plan/packing.h"
#include "step/site.h"

int __real_packing_solve(const struct packing_buffer *buffers, uint32_t count,
                         const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                         struct packing_result *result);
int __wrap_packing_solve(const struct packing_buffer *buffers, uint32_t count,
                         const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                         struct packing_result *result);

enum { BLOCKS = 80, STEPS = 40, ONE_ORDER = 64, ALL = 256 };

/* Of the step that ends. */
static struct {
    unsigned plans, idle; /* tried; of these without work */
    uint64_t work;
} seen;

int __wrap_packing_solve(const struct packing_buffer *buffers, uint32_t count,
                         const struct packing_effort *effort, void *workspace, uint64_t *offsets,
                         struct packing_result *result) {
    uint64_t before = effort->worked ? *effort->worked : 0, worked = before;
    struct packing_effort counted = *effort;
    counted.worked = &worked;
    int error = __real_packing_solve(buffers, count, &counted, workspace, offsets, result);
    if (effort->worked)
        *effort->worked = worked;
    seen.plans++;
    seen.idle += worked == before;
    seen.work += worked - before;
    return error;
}

static uint32_t draw(uint32_t *chance) {
    *chance = (uint32_t)(*chance * UINT64_C(1664525) + 1013904223);
    return *chance >> 16;
}

static void forget(void) {
    seen.plans = seen.idle = 0;
    seen.work = 0;
}

/* Blocks of random sizes, each of which a random one replaces; all have so much more. */
static void take_step(ebb_site *site, unsigned alive, size_t more) {
    void *live[BLOCKS] = {NULL};
    uint32_t chance = 5;
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        void **at = &live[draw(&chance) % alive];
        assert_int_equal(ebb_region_release(step.region, *at), 0);
        *at = ebb_region_alloc(step.region, 1024 + draw(&chance) + more, 64);
        assert_non_null(*at);
    }
    forget();
    assert_int_equal(ebb_step_end(step), 0);
}

static size_t doubled(unsigned step) {
    return ((size_t)32 * KIB << step / 5 % 8) - 32 * KIB;
}

/* Up to so many plans are tried, since all are too high but the last. */
static void plans_that_one_step_tries_have_one_bound(void **state) {
    struct stage *stage = *state;
    unsigned most_plans = 0;
    for (unsigned alive = 2; alive <= 16; alive *= 2) {
        ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
        for (unsigned i = 0; i < STEPS; i++) {
            take_step(site, alive, doubled(i));
            assert_true(seen.work <= (ALL + 3 * ONE_ORDER) * BLOCKS);
            most_plans = seen.plans > most_plans ? seen.plans : most_plans;
        }
        assert_int_equal(ebb_site_destroy(site), 0);
    }
    assert_int_equal(most_plans, 4);
}

static void end_step_of(ebb_site *site, size_t first, size_t second) {
    ebb_step step = ebb_step_begin(site, 0);
    block_of(step.region, first, 64);
    block_of(step.region, second, 64);
    forget();
    assert_int_equal(ebb_step_end(step), 0);
}

/* Room for both sizes of both blocks is far more than any step needs. */
static void a_plan_that_is_too_high_in_any_case_costs_no_work(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    end_step_of(site, 64 * KIB, 2 * MIB);
    end_step_of(site, 2 * MIB, 64 * KIB);
    assert_int_equal(seen.plans, 2);
    assert_int_equal(seen.idle, 1);
    assert_int_equal(site_stats(site).plan_height, 2 * MIB + 64 * KIB);
    assert_int_equal(ebb_site_destroy(site), 0);
}

enum { CROWD = 8 };

/* So many steps at once that all do the same. */
static void take_crowd(ebb_site *site, unsigned count, size_t bytes, size_t other) {
    ebb_step steps[CROWD];
    for (unsigned i = 0; i < count; i++)
        steps[i] = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < count; i++) {
        void *first = block_of(steps[i].region, bytes, 64);
        if (other) {
            assert_int_equal(ebb_region_release(steps[i].region, first), 0);
            block_of(steps[i].region, other, 64);
            block_of(steps[i].region, bytes, 64);
        }
        block_of(steps[i].region, bytes, 64);
    }
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(ebb_step_end(steps[i]), 0);
}

/* All begin to be recorded; the first two tell all, and say nothing against their plan. */
static void steps_that_are_recorded_at_once_make_one_plan(void **state) {
    struct stage *stage = *state;
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    take_crowd(site, CROWD, 64 * KIB, 0);
    assert_int_equal(site_stats(site).recorded_steps, CROWD);
    assert_int_equal(site_stats(site).plans, 1);
    assert_int_equal(site->courses[0].learning.patience.steps, LEARN_IN_A_ROW);
    for (unsigned i = 0; i < 20; i++)
        take_crowd(site, 1, 64 * KIB, 0);
    for (unsigned i = 0; i < 10; i++)
        take_crowd(site, 1, 64 * KIB, 96 * KIB);
    assert_int_equal(site_stats(site).plans, 2);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(plans_that_one_step_tries_have_one_bound),
        STAGED(a_plan_that_is_too_high_in_any_case_costs_no_work),
        STAGED(steps_that_are_recorded_at_once_make_one_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
