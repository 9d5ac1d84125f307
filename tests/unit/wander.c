// SPDX-License-Identifier: Apache-2.0
/*
 * wander.c - steps of blocks with keys in another order than the plan's: who is served where, and
 * who is not. (The linker has put a function of ours in the place of one that takes memory.)
 */
#include "kit/passes.h"
#include "kit/short_of.h"
#include "kit/text.h"

enum { TRIPS = 6, KEPT = 8 * KIB, LOOSE = 32 * KIB };

static ebb_site *site_of(struct stage *stage) {
    return ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
}

static unsigned char *take(ebb_step step, size_t bytes, uint32_t key, uint32_t seed) {
    unsigned char *block = ebb_step_alloc(step, bytes, 64, key);
    assert_non_null(block);
    pattern_fill(block, bytes, seed);
    return block;
}

static void leave(ebb_step step, unsigned char *block, size_t bytes, uint32_t seed) {
    assert_true(pattern_holds(block, bytes, seed));
    assert_int_equal(ebb_region_release(step.region, block), 0);
}

/* Forth and back over loops in a loop, each with as many trips as it says; blocks missed. */
static unsigned take_loops(ebb_site *site, unsigned outer, const unsigned *inner) {
    unsigned char *own[TRIPS], *kept[TRIPS][TRIPS];
    struct ebb_site_stats before = site_stats(site);
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < outer; i++) {
        own[i] = take(step, KEPT, 1, i);
        for (unsigned k = 0; k < inner[i]; k++) {
            unsigned char *hidden = take(step, LOOSE, 2, k);
            kept[i][k] = take(step, KEPT, 3, 100 * i + k);
            leave(step, hidden, LOOSE, k);
        }
    }
    for (unsigned i = outer; i--;) {
        for (unsigned k = inner[i]; k--;) {
            unsigned char *gradient = take(step, LOOSE, 4, k);
            leave(step, kept[i][k], KEPT, 100 * i + k);
            leave(step, gradient, LOOSE, k);
        }
        leave(step, own[i], KEPT, i);
    }
    assert_int_equal(ebb_step_end(step), 0);
    return (unsigned)(site_stats(site).missed - before.missed);
}

static void loops_in_loops_are_served(void **state) {
    static const unsigned most[TRIPS] = {6, 6, 6, 6, 6, 6};
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    for (unsigned i = 0; i < LEARNING; i++)
        (void)take_loops(site, TRIPS, most);
    assert_int_equal(take_loops(site, TRIPS, most), 0);
    struct ebb_site_stats before = site_stats(site);
    uint32_t chance = 3;
    for (unsigned i = 0; i < 200; i++) {
        unsigned inner[TRIPS];
        for (unsigned k = 0; k < TRIPS; k++) {
            chance = chance * UINT32_C(48271) % UINT32_C(65521);
            inner[k] = 1 + chance % TRIPS;
        }
        (void)take_loops(site, 2 + chance % (TRIPS - 1), inner);
    }
    struct ebb_site_stats stats = site_stats(site);
    assert_int_equal(stats.recorded_steps, before.recorded_steps);
    assert_true((stats.hits - before.hits) * 100 >=
                (stats.allocations - before.allocations) * 98);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Blocks that go in their trip, over one that stays. */
static struct ebb_region_stats take_trips(struct stage *stage, ebb_site *site, unsigned trips) {
    struct ebb_region_stats stats = {.size = sizeof stats};
    ebb_step step = ebb_step_begin(site, 0);
    unsigned char *kept = take(step, KEPT, 1, 1);
    for (unsigned i = 0; i < trips; i++) {
        unsigned char *hidden = take(step, LOOSE, 2, i), *other = take(step, KEPT, 3, 7);
        leave(step, hidden, LOOSE, i);
        leave(step, other, KEPT, 7);
    }
    assert_true(pattern_holds(kept, KEPT, 1));
    struct ebb_pool_stats ungathered = pool_stats_of(stage->pool), gathered;
    assert_int_equal(ebb_region_read_stats(step.region, &stats), 0);
    gathered = pool_stats_of(stage->pool);
    assert_memory_equal(&ungathered, &gathered, sizeof gathered);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_int_equal(ebb_step_end(step), 0);
    return stats;
}

/* And are counted as if each had a slot of its own. */
static void slots_serve_again_when_their_blocks_have_gone(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    for (unsigned i = 0; i < LEARNING; i++)
        (void)take_trips(stage, site, 3);
    struct ebb_region_stats stats = take_trips(stage, site, 1000);
    assert_int_equal(site_stats(site).hits, 2001);
    assert_int_equal(site_stats(site).missed, 0);
    assert_int_equal(stats.blocks.current, 1);
    assert_int_equal(stats.blocks.peak, 3);
    assert_int_equal(stats.blocks.total, 2001);
    assert_int_equal(stats.requested.current, KEPT);
    assert_int_equal(stats.requested.peak, 2 * KEPT + LOOSE);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The second block has the place of the first one, which has gone by then. */
static void learn_one_place(ebb_site *site) {
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        leave(step, take(step, LOOSE, 1, 1), LOOSE, 1);
        leave(step, take(step, LOOSE, 2, 2), LOOSE, 2);
        (void)take(step, KEPT, 3, 3);
        assert_int_equal(ebb_step_end(step), 0);
    }
}

static void a_slot_whose_place_is_taken_is_none(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    learn_one_place(site);
    ebb_step step = ebb_step_begin(site, 0);
    unsigned char *second = take(step, LOOSE, 2, 2), *first = take(step, LOOSE, 1, 1);
    assert_true(first != second && pattern_holds(second, LOOSE, 2));
    leave(step, first, LOOSE, 1);
    leave(step, second, LOOSE, 2);
    assert_int_equal(ebb_region_release(step.region, second), EBB_E_RELEASED);
    assert_ptr_equal(take(step, LOOSE, 1, 4), second);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).hits, 2);
    assert_int_equal(site_stats(site).missed, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* They lie in the lanes, and nobody hears of it. */
static void without_memory_blocks_out_of_order_are_missed(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    learn_one_place(site);
    for (unsigned i = 0; i < 2; i++) {
        struct ebb_site_stats before = site_stats(site);
        short_of_memory = i == 0;
        ebb_step step = ebb_step_begin(site, 0);
        leave(step, take(step, LOOSE, 2, 2), LOOSE, 2);
        assert_int_equal(ebb_region_release(step.region, &short_of_memory), EBB_E_FOREIGN);
        (void)take(step, LOOSE, 1, 1);
        assert_int_equal(ebb_last_error(), EBB_E_FOREIGN);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(site_stats(site).hits - before.hits, 1 + i);
        assert_int_equal(site_stats(site).missed - before.missed, 1 - i);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Three loose blocks and three kept ones, to the end, with keys from this one on. */
static void take_six(ebb_site *site, uint32_t key) {
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < 3; i++) {
        (void)take(step, LOOSE, key, i);
        (void)take(step, KEPT, key + 1, i);
    }
    assert_int_equal(ebb_step_end(step), 0);
}

/* If those are no more than twice as large; their own find what is left. */
static void blocks_with_unknown_keys_take_slots_of_others(void **state) {
    static const size_t bytes[] = {LOOSE, KEPT / 2, KEPT / 2 - 1, LOOSE / 2, LOOSE, KEPT, KEPT};
    static const uint32_t keys[] = {8, 9, 9, 8, 1, 2, 2};
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    for (unsigned i = 0; i < LEARNING; i++)
        take_six(site, 1);
    unsigned char *blocks[7];
    ebb_step step = ebb_step_begin(site, 0);
    for (unsigned i = 0; i < 7; i++)
        blocks[i] = take(step, bytes[i], keys[i], i);
    for (unsigned i = 0; i < 7; i++)
        leave(step, blocks[i], bytes[i], i);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).hits, 6);
    assert_int_equal(site_stats(site).missed, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Though they are served meanwhile. */
static void steps_with_unknown_keys_are_recorded(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    for (unsigned i = 0; i < 20; i++)
        take_six(site, 1);
    struct ebb_site_stats before = site_stats(site);
    take_six(site, 11);
    assert_int_equal(site_stats(site).hits - before.hits, 6);
    for (unsigned i = 0; i < 5; i++)
        take_six(site, 11);
    assert_true(site_stats(site).recorded_steps > before.recorded_steps);
    before = site_stats(site);
    take_six(site, 11);
    take_six(site, 1);
    assert_int_equal(site_stats(site).hits - before.hits, 12);
    assert_int_equal(ebb_site_destroy(site), 0);
}

enum { MANY = 2000, LOOKS = 512, LOOKS_EACH = 8 };

/* All slots of a key are taken but one that is far from its turn: no request looks at all of them,
 * and some later one finds it. */
static void a_request_looks_at_few_slots(void **state) {
    static unsigned char *blocks[MANY];
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    for (unsigned i = 0; i <= LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned k = 0; k < MANY; k++)
            blocks[k] = take(step, KEPT, 1, k);
        if (i == LEARNING) {
            leave(step, take(step, KEPT, 1, 0), KEPT, 0); /* it wanders from here on */
            leave(step, blocks[MANY - 1], KEPT, MANY - 1);
            unsigned requests = 0;
            for (unsigned char *block = NULL; block != blocks[MANY - 1]; requests++)
                block = take(step, KEPT, 1, 0);
            assert_in_range(requests, 2, (MANY - LOOKS) / LOOKS_EACH + 1);
        }
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* Two blocks, and one over both of their places once they have gone, beside a large one. */
static void learn_two_below_one(ebb_site *site) {
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        (void)take(step, 16 * LOOSE, 4, 4);
        unsigned char *first = take(step, LOOSE, 1, 1), *second = take(step, LOOSE, 2, 2);
        leave(step, first, LOOSE, 1);
        leave(step, second, LOOSE, 2);
        (void)take(step, 2 * LOOSE, 3, 3);
        assert_int_equal(ebb_step_end(step), 0);
    }
}

/* The step looks ahead in vain: what was to be released until then is not waited for later. So the
 * second block, which comes late, gets no slot. */
static void without_memory_what_was_passed_is_not_served(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    learn_two_below_one(site);
    short_of_memory = true;
    ebb_step step = ebb_step_begin(site, 0);
    (void)take(step, 16 * LOOSE, 4, 4);
    unsigned char *first = take(step, LOOSE, 1, 1), *early = take(step, 2 * LOOSE, 3, 5);
    unsigned char *second = take(step, LOOSE, 2, 2);
    leave(step, first, LOOSE, 1);
    unsigned char *third = take(step, 2 * LOOSE, 3, 3);
    leave(step, early, 2 * LOOSE, 5);
    leave(step, second, LOOSE, 2);
    leave(step, third, 2 * LOOSE, 3);
    assert_int_equal(ebb_step_end(step), 0);
    short_of_memory = false;
    assert_int_equal(ebb_site_destroy(site), 0);
}

enum { BETWEEN = 100 };

/* The last of the loose blocks has the place of the first; many come and go between them. */
static void learn_far_apart(ebb_site *site) {
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        leave(step, take(step, LOOSE, 1, 1), LOOSE, 1);
        for (unsigned k = 0; k < BETWEEN; k++)
            leave(step, take(step, KEPT, 10 + k, k), KEPT, k);
        leave(step, take(step, LOOSE, 2, 2), LOOSE, 2);
        (void)take(step, KEPT, 3, 3);
        assert_int_equal(ebb_step_end(step), 0);
    }
}

/* Slots of which the report says that something was asked for. */
static unsigned count_asked(ebb_site *site) {
    static struct page page;
    page = (struct page){.length = 0};
    assert_int_equal(ebb_report_plan(site, 0, page_write, &page), 0);
    return page_count(&page, "[\"placed\"") - page_count(&page, ",0]");
}

/* If the first one is late, the step waits for it all the same. */
static void what_is_late_is_seen_where_many_are_left_out(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    learn_far_apart(site);
    for (unsigned i = 0; i < 4; i++) {
        bool late = i % 2;
        struct ebb_site_stats before = site_stats(site);
        short_of_memory = i < 2;
        ebb_step step = ebb_step_begin(site, 0);
        unsigned char *first = take(step, LOOSE, 1, 1);
        if (!late)
            leave(step, first, LOOSE, 1);
        unsigned char *second = take(step, LOOSE, 2, 2);
        assert_true((second == first) == !late);
        if (late)
            leave(step, first, LOOSE, 1);
        leave(step, second, LOOSE, 2);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_step_end(step), 0);
        short_of_memory = false;
        assert_int_equal(site_stats(site).hits - before.hits, late ? 1 : 2);
        assert_int_equal(site_stats(site).plans, 1);
        assert_int_equal(count_asked(site), late ? 1 : 2);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* All go in their order, and then one comes that has all of their places. */
static void learn_one_behind_all(ebb_site *site) {
    unsigned char *blocks[BETWEEN];
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned k = 0; k < BETWEEN; k++)
            blocks[k] = take(step, KEPT, 10 + k, k);
        for (unsigned k = 0; k < BETWEEN; k++)
            leave(step, blocks[k], KEPT, k);
        leave(step, take(step, BETWEEN * KEPT, 1, 1), BETWEEN * KEPT, 1);
        assert_int_equal(ebb_step_end(step), 0);
    }
}

/* Most have been left out when the first of three goes, before the others have come or behind them:
 * what is passed then is not what is live, or still to come. */
static void what_stays_is_not_passed_with_what_was_left_out(void **state) {
    struct stage *stage = *state;
    for (unsigned early = 0; early < 2; early++) {
        ebb_site *site = site_of(stage);
        learn_one_behind_all(site);
        ebb_step step = ebb_step_begin(site, 0);
        unsigned char *blocks[3];
        for (unsigned k = 0; k < 3; k++) {
            blocks[k] = take(step, KEPT, BETWEEN - 10 + k, k);
            if (k == (early ? 0 : 2))
                leave(step, blocks[0], KEPT, 0);
        }
        unsigned char *last = take(step, BETWEEN * KEPT, 1, 1);
        leave(step, blocks[1], KEPT, 1);
        leave(step, blocks[2], KEPT, 2);
        leave(step, last, BETWEEN * KEPT, 1);
        assert_int_equal(ebb_step_end(step), 0);
        assert_int_equal(site_stats(site).hits, 3);
        assert_int_equal(site_stats(site).missed, 1);
        assert_int_equal(ebb_site_destroy(site), 0);
    }
}

/* It is asked before the pool is, and the arena stays. */
static void where_there_are_no_pages_blocks_without_keys_are_served(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    for (unsigned i = 0; i < LEARNING; i++) {
        ebb_step step = ebb_step_begin(site, 0);
        for (unsigned k = 1; k < 3; k++)
            (void)take(step, LOOSE, k, k);
        assert_non_null(ebb_region_alloc(step.region, LOOSE, 64));
        assert_int_equal(ebb_step_end(step), 0);
    }
    struct ebb_site_stats before = site_stats(site);
    ebb_step step = ebb_step_begin(site, 0);
    (void)take(step, LOOSE, 2, 2);
    (void)take(step, LOOSE, 1, 1);
    assert_int_equal(ebb_pool_trim(stage->pool, 0), 0);
    size_t pages = (size_t)pool_stats_of(stage->pool).reserved.current;
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, pages), 0);
    assert_non_null(ebb_region_alloc(step.region, LOOSE, 64));
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(site_stats(site).hits - before.hits, 3);
    assert_int_equal(site_stats(site).missed, before.missed);
    assert_int_equal(ebb_site_destroy(site), 0);
}

/* The first block takes the arena over. Those behind it come in another order than the plan's, each
 * with its own size: none of them has grown. */
static void a_step_that_was_taken_over_is_compared_by_its_keys(void **state) {
    struct stage *stage = *state;
    ebb_site *site = site_of(stage);
    for (unsigned i = 0; i <= LEARNING; i++) {
        unsigned swaps = i == LEARNING;
        ebb_step step = ebb_step_begin(site, 0);
        (void)take(step, swaps ? 16 * LOOSE : LOOSE, 1, 1);
        (void)take(step, swaps ? KEPT : LOOSE, 2 + swaps, 2);
        (void)take(step, swaps ? LOOSE : KEPT, 3 - swaps, 3);
        assert_int_equal(ebb_step_end(step), 0);
    }
    assert_int_equal(site_stats(site).takeovers, 1);
    assert_int_equal(site_stats(site).plans, 1);
    assert_int_equal(ebb_site_destroy(site), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(loops_in_loops_are_served),
        STAGED(slots_serve_again_when_their_blocks_have_gone),
        STAGED(a_slot_whose_place_is_taken_is_none),
        STAGED(blocks_with_unknown_keys_take_slots_of_others),
        STAGED(steps_with_unknown_keys_are_recorded),
        STAGED(a_request_looks_at_few_slots),
        STAGED(without_memory_blocks_out_of_order_are_missed),
        STAGED(without_memory_what_was_passed_is_not_served),
        STAGED(what_is_late_is_seen_where_many_are_left_out),
        STAGED(what_stays_is_not_passed_with_what_was_left_out),
        STAGED(where_there_are_no_pages_blocks_without_keys_are_served),
        STAGED(a_step_that_was_taken_over_is_compared_by_its_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
