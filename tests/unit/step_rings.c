// SPDX-License-Identifier: Apache-2.0
/*
 * step_rings.c - rings and who closes their regions: steps that begin, parents, the site itself;
 * and what cleanups do meanwhile.
 */
#include "kit/test.h"

enum { STEPS = 12 };

#define SITE(...) ebb_site_create(EBB_SITE_OPTIONS(__VA_ARGS__))

static const ebb_region none = {NULL, 0};

static ebb_step begin(ebb_site *site, ebb_region parent) {
    ebb_step step = ebb_step_begin_under(site, parent, 1);
    assert_true(ebb_region_is_open(step.region));
    return step;
}

static void a_step_cannot_begin_below_the_one_whose_place_it_needs(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 1);
    ebb_region oldest = none;
    for (int i = 0; i < STEPS; i++) {
        ebb_step step = ebb_step_begin_under(site, stage->root, 1);
        block_of(step.region, 3000, 64);
        if (i == STEPS - 2)
            oldest = step.region;
        assert_int_equal(ebb_step_end(step), 0);
    }
    ebb_step step = ebb_step_begin_under(site, oldest, 1);
    assert_false(ebb_region_is_open(step.region));
    assert_int_equal(ebb_last_error(), EBB_E_STALE);
    struct ebb_site_stats stats = {.size = sizeof stats};
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    assert_int_equal(stats.steps, STEPS);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Its cleanup takes steps of the site whose ring the region is in. */
static ebb_site *busy_site;

static int take_steps(void *data) {
    struct stage *stage = data;
    for (int i = 0; i < 5; i++) {
        ebb_step step = ebb_step_begin(busy_site, 1);
        if (!ebb_region_is_open(step.region))
            return 1;
        void *block = block_of(step.region, 3000, 64);
        if (!pattern_holds(block, 0, 0) || !stage->pool || ebb_step_end(step) != 0)
            return 1;
    }
    return 0;
}

static void a_cleanup_may_take_steps_while_the_ring_is_closed_by_a_parent(void **state) {
    struct stage *stage = *state;
    busy_site = SITE(.pool = stage->pool, .ring = 1);
    for (int i = 0; i < 6; i++) {
        ebb_region parent = OPEN(.parent = stage->root);
        struct ebb_cleanup cleanup = {.run = take_steps, .data = stage};
        for (int k = 0; k < 2; k++) {
            ebb_step step = begin(busy_site, parent);
            block_of(step.region, 3000, 64);
            if (k == i % 2)
                assert_int_equal(ebb_cleanup_add(step.region, &cleanup), 0);
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_int_equal(ebb_region_close(parent), 0);
    }
    assert_int_equal(ebb_site_destroy(busy_site), 0);
}

static int fail_in_vain(void *data) {
    *(int *)data = ebb_region_release(none, data) != 0 ? ebb_last_error() : 0;
    return 0;
}

static void a_cleanup_of_the_oldest_in_a_ring_hears_of_its_errors(void **state) {
    struct stage *stage = *state;
    int heard = 0;
    struct ebb_cleanup cleanup = {.run = fail_in_vain, .data = &heard};
    ebb_site *site = SITE(.pool = stage->pool, .ring = 1);
    assert_no_block(ebb_region_alloc(stage->root, 100, 3), EBB_E_ALIGNMENT);
    for (int i = 0; i < 3; i++) {
        ebb_step step = begin(site, none);
        if (i == 0)
            assert_int_equal(ebb_cleanup_add(step.region, &cleanup), 0);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(heard, EBB_E_STALE);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The region whose turn it is has a child that is just being closed. */
static int close_parent(void *parent) {
    return ebb_region_close(*(ebb_region *)parent);
}

static void a_step_that_cannot_begin_takes_no_turn_of_the_ring(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 1);
    ebb_region parent = OPEN(.parent = stage->root);
    struct ebb_cleanup cleanup = {.run = close_parent, .data = &parent};
    ebb_step first = begin(site, none);
    assert_int_equal(ebb_cleanup_add(first.region, &cleanup), 0);
    assert_int_equal(ebb_step_end(first), 0);
    ebb_step second = begin(site, none);
    assert_int_equal(ebb_step_end(second), 0);
    assert_false(ebb_region_is_open(ebb_step_begin_under(site, parent, 1).region));
    assert_int_equal(ebb_last_error(), EBB_E_STALE);
    assert_int_equal(ebb_step_end(begin(site, none)), 0);
    assert_true(ebb_region_is_open(second.region)); /* until the second step after it begins */
    assert_int_equal(ebb_step_end(begin(site, none)), 0);
    assert_false(ebb_region_is_open(second.region));
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void a_cleanup_below_a_region_of_the_ring_may_take_steps(void **state) {
    struct stage *stage = *state;
    struct ebb_cleanup cleanup = {.run = take_steps, .data = stage};
    busy_site = SITE(.pool = stage->pool, .ring = 1);
    ebb_step step = begin(busy_site, none);
    ebb_region child = OPEN(.parent = step.region);
    assert_int_equal(ebb_cleanup_add(child, &cleanup), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(take_steps(stage), 0);
    assert_int_equal(ebb_site_destroy(busy_site), 0);
    assert_false(ebb_region_is_open(step.region));
}

static int refusal;

/* Ends it, should it begin. */
static int try_a_step(void *data) {
    ebb_step step = ebb_step_begin(data, 1);
    refusal = ebb_region_is_open(step.region) ? ebb_step_end(step) : ebb_last_error();
    return 0;
}

/* It would find no ring to stay in. */
static void a_site_that_is_being_destroyed_begins_no_step(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.name = "last", .pool = stage->pool, .ring = 1);
    struct ebb_cleanup cleanup = {.run = try_a_step, .data = site};
    ebb_step step = begin(site, none);
    assert_int_equal(ebb_cleanup_add(step.region, &cleanup), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(refusal, EBB_E_BUSY);
    assert_text_names("'last'");
}

static int destroy_the_site(void *data) {
    return ebb_site_destroy(data) == EBB_E_BUSY ? 0 : -1;
}

/* Whoever closes it, a parent or the site itself, is at work with the ring. */
static void a_cleanup_in_its_ring_cannot_destroy_a_site(void **state) {
    struct stage *stage = *state;
    struct ebb_cleanup nodes[4];
    for (unsigned i = 0; i < 4; i++)
        nodes[i] = (struct ebb_cleanup){.run = destroy_the_site};
    ebb_site *site = SITE(.name = "ended", .pool = stage->pool, .ring = 2);
    ebb_region parent = OPEN(.parent = stage->root);
    for (unsigned i = 0; i < 4; i++) {
        ebb_step step = begin(site, i < 2 ? parent : stage->root);
        nodes[i].data = site;
        assert_int_equal(ebb_cleanup_add(step.region, &nodes[i]), 0);
        assert_int_equal(ebb_step_end(step), 0);
        if (i == 1)
            assert_int_equal(ebb_region_close(parent), 0);
    }
    assert_text_names("'ended'");
    assert_int_equal(ebb_site_destroy(site), 0);
}

static void steps_that_are_open_at_once_have_a_ring_each(void **state) {
    struct stage *stage = *state;
    ebb_site *site = SITE(.pool = stage->pool, .ring = 1);
    ebb_step first = begin(site, none), second = begin(site, none);
    assert_int_equal(ebb_step_end(second), 0);
    assert_int_equal(ebb_step_end(first), 0);
    for (unsigned i = 0; i < STEPS; i++)
        assert_int_equal(ebb_step_end(begin(site, none)), 0);
    assert_false(ebb_region_is_open(first.region));
    for (unsigned i = 0; i < 2; i++) {
        assert_true(ebb_region_is_open(second.region));
        ebb_step outer = begin(site, none), inner = begin(site, none);
        assert_int_equal(ebb_step_end(inner), 0);
        assert_int_equal(ebb_step_end(outer), 0);
    }
    assert_false(ebb_region_is_open(second.region));
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* A record of so many small blocks is lost, unless the step before had more than that. */
static void what_a_step_needed_is_known_to_the_next_one_in_a_ring(void **state) {
    struct stage *stage = *state;
    static const uint32_t rings[] = {0, 8};
    for (unsigned r = 0; r < sizeof rings / sizeof *rings; r++) {
        ebb_site *site = SITE(.pool = stage->pool, .ring = rings[r]);
        for (int i = 0; i < 8; i++) {
            ebb_step step = begin(site, none);
            for (int k = 0; k < 140000; k++) {
                void *speck = ebb_region_alloc(step.region, 16, 16);
                assert_int_equal(ebb_region_release(step.region, speck), 0);
            }
            assert_non_null(ebb_region_alloc(step.region, 16 * MIB, 64));
            assert_int_equal(ebb_step_end(step), 0);
        }
        struct ebb_site_stats stats = site_stats(site);
        assert_true(stats.planned_steps > 0);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_step_cannot_begin_below_the_one_whose_place_it_needs),
        STAGED(a_cleanup_may_take_steps_while_the_ring_is_closed_by_a_parent),
        STAGED(a_cleanup_of_the_oldest_in_a_ring_hears_of_its_errors),
        STAGED(a_step_that_cannot_begin_takes_no_turn_of_the_ring),
        STAGED(a_cleanup_below_a_region_of_the_ring_may_take_steps),
        STAGED(a_site_that_is_being_destroyed_begins_no_step),
        STAGED(a_cleanup_in_its_ring_cannot_destroy_a_site),
        STAGED(steps_that_are_open_at_once_have_a_ring_each),
        STAGED(what_a_step_needed_is_known_to_the_next_one_in_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
