// SPDX-License-Identifier: Apache-2.0
/*
 * shrink.c - a pool gives back by itself what recent steps did not need: the moving peak plus a
 * margin stays, one spike does not count, and keep_all switches all of it off.
 */
#include "kit/test.h"

#include "base/os.h"
#include "base/poison.h"
#include "pool/pool.h"
#include "pool/range.h"
#include "region/region.h"

enum { RECENT = 16 };

#define LONGER (12 * MIB) /* what one step in 20 of mixed ones has */

static void step(ebb_pool *pool, size_t bytes) {
    ebb_region region = OPEN(.name = "step", .pool = pool);
    block_of(region, bytes, 64);
    assert_int_equal(ebb_region_close(region), 0);
}

static void steps(ebb_pool *pool, unsigned count, size_t bytes) {
    for (unsigned i = 0; i < count; i++)
        step(pool, bytes);
}

static void steps_of_one_size_keep_their_pages_and_take_no_new_ones(void **state) {
    struct stage *stage = *state;
    steps(stage->pool, 3, 2 * MIB);
    struct ebb_pool_stats before = pool_stats_of(stage->pool);
    steps(stage->pool, 100, 2 * MIB);
    struct ebb_pool_stats after = pool_stats_of(stage->pool);
    assert_int_equal(after.reserved.total, before.reserved.total);
    assert_int_equal(after.given_back, 0);
    assert_int_equal(after.cached, before.cached);
}

static void one_spike_goes_back_at_its_own_end(void **state) {
    struct stage *stage = *state;
    steps(stage->pool, 20, 1 * MIB);
    uint64_t usual = pool_stats_of(stage->pool).cached;
    step(stage->pool, 100 * MIB);
    assert_true(pool_stats_of(stage->pool).cached <= usual * 3 / 2);
    assert_true(pool_stats_of(stage->pool).given_back >= 98 * MIB);
}

static void a_load_that_stays_high_is_kept(void **state) {
    struct stage *stage = *state;
    steps(stage->pool, 20, 1 * MIB);
    steps(stage->pool, 4, 10 * MIB);
    uint64_t given = pool_stats_of(stage->pool).given_back;
    steps(stage->pool, 10, 10 * MIB);
    assert_int_equal(pool_stats_of(stage->pool).given_back, given);
    assert_true(pool_stats_of(stage->pool).cached >= 10 * MIB);
}

static void after_a_high_load_the_pool_falls_to_the_low_one(void **state) {
    struct stage *stage = *state;
    steps(stage->pool, RECENT, 10 * MIB);
    steps(stage->pool, RECENT, 1 * MIB);
    assert_true(pool_stats_of(stage->pool).recent_peak < 2 * MIB);
    steps(stage->pool, 60, 1 * MIB); /* a quarter of a step at a time */
    assert_true(pool_stats_of(stage->pool).cached <= 2 * MIB);
    assert_true(pool_stats_of(stage->pool).cached >= 1 * MIB);
}

static void a_falling_load_gives_back_no_more_than_a_quarter_step_at_once(void **state) {
    struct stage *stage = *state;
    steps(stage->pool, RECENT, 16 * MIB);
    uint64_t given = pool_stats_of(stage->pool).given_back, most = 0;
    for (unsigned i = 0; i < 100; i++) {
        step(stage->pool, 4 * MIB);
        uint64_t now = pool_stats_of(stage->pool).given_back;
        most = now - given > most ? now - given : most;
        given = now;
    }
    assert_true(most > 0 && most <= 4 * MIB / 4 + 64 * KIB);
}

/* As those of malloc() are: much may go at once. */
static ebb_pool *timed_pool(void) {
    ebb_pool *pool = POOL(.keep_margin_percent = 10);
    pool->trim_ns = UINT32_MAX;
    return pool;
}

/* How much is given back while one step in 20 is large. */
static uint64_t given_in_mixed_steps(ebb_pool *pool, unsigned count) {
    uint64_t given = pool_stats_of(pool).given_back;
    for (unsigned i = 0; i < count; i++)
        step(pool, i % 20 == 19 ? LONGER : 1 * MIB);
    return pool_stats_of(pool).given_back - given;
}

static void pages_that_are_wanted_again_soon_are_kept_for_longer(void **state) {
    ebb_pool *pool = timed_pool();
    uint64_t first = given_in_mixed_steps(pool, 200);
    assert_true(first > 0 && first <= 3 * LONGER);
    assert_true(given_in_mixed_steps(pool, 400) <= 5 * LONGER); /* else: 20 */
    pool_end(pool);
}

static void pages_that_are_not_wanted_go_soon_again(void **state) {
    ebb_pool *pool = timed_pool();
    (void)given_in_mixed_steps(pool, 200);
    steps(pool, 640, 1 * MIB);
    assert_true(pool_stats_of(pool).cached <= 6 * MIB);
    steps(pool, 8, 20 * MIB);
    assert_true(pool_stats_of(pool).cached >= 20 * MIB);
    steps(pool, 2 * RECENT + 2, 1 * MIB); /* twice: the first of the eight went at its end */
    assert_true(pool_stats_of(pool).cached <= 6 * MIB);
    pool_end(pool);
}

/* What is kept for longer is what was wanted again, not what a load had that came once. */
static void a_high_load_after_mixed_steps_goes_as_soon_as_ever(void **state) {
    ebb_pool *pool = timed_pool();
    (void)given_in_mixed_steps(pool, 200);
    steps(pool, 8, 60 * MIB);
    assert_true(pool_stats_of(pool).cached >= 60 * MIB);
    steps(pool, 2 * RECENT + 2, 1 * MIB);
    assert_in_range(pool_stats_of(pool).cached, LONGER, LONGER + LONGER / 8 + 5 * MIB);
    pool_end(pool);
}

/* The high load comes when something else has just been given back. */
static void a_high_load_wants_no_more_than_was_given_back(void **state) {
    ebb_pool *pool = timed_pool();
    steps(pool, 20, 1 * MIB);
    step(pool, LONGER);
    steps(pool, RECENT, 1 * MIB);
    assert_true(pool_stats_of(pool).given_back > 0);
    steps(pool, 8, 60 * MIB);
    steps(pool, 2 * RECENT + 2, 1 * MIB);
    assert_in_range(pool_stats_of(pool).cached, LONGER, LONGER + LONGER / 8 + 5 * MIB);
    pool_end(pool);
}

static void keep_all_never_gives_back(void **state) {
    ebb_pool *pool = POOL(.keep_all = true);
    step(pool, 50 * MIB);
    steps(pool, 100, 64 * KIB);
    assert_true(pool_stats_of(pool).cached >= 50 * MIB);
    assert_int_equal(pool_stats_of(pool).given_back, 0);
    assert_true(ebb_pool_trim(pool, 0) >= 50 * MIB);
    pool_end(pool);
}

static uint64_t kept_with_margin(unsigned percent) {
    ebb_pool *pool = POOL(.keep_margin_percent = percent);
    steps(pool, 20, 4 * MIB);
    step(pool, 100 * MIB);
    uint64_t cached = pool_stats_of(pool).cached;
    pool_end(pool);
    return cached;
}

static void the_margin_is_kept_above_the_recent_peak(void **state) {
    assert_in_range(kept_with_margin(0), 5 * MIB, 5 * MIB + 256 * KIB); /* 25 per cent */
    assert_in_range(kept_with_margin(1), 4 * MIB, 4 * MIB + 256 * KIB);
    assert_in_range(kept_with_margin(100), 8 * MIB, 8 * MIB + 256 * KIB);
    assert_in_range(kept_with_margin(300), 16 * MIB, 16 * MIB + 256 * KIB);
}

static void steps_inside_a_root_are_step_boundaries_too(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < 20; i++) {
        ebb_region child = OPEN(.parent = stage->root);
        block_of(child, i == 10 ? 100 * MIB : 1 * MIB, 64);
        ebb_region_close(child);
    }
    assert_true(pool_stats_of(stage->pool).cached <= 2 * MIB);
}

/* What a spike leaves in its parent is there when the next step comes, which needs more pages. */
static void a_spike_that_leaves_survivors_takes_no_pages_from_the_next_step(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "spike");
    ebb_region root = OPEN(.name = "root", .pool = pool);
    for (unsigned i = 0; i < 40; i++) {
        ebb_region step = OPEN(.parent = root);
        block_of(step, i == 20 ? 100 * MIB : 4 * MIB, 64);
        if (i == 20)
            block_of(root, 6 * MIB, 64);
        uint64_t reserved = pool_stats_of(pool).reserved.current;
        assert_int_equal(ebb_region_close(step), 0);
        if (i == 20) {
            assert_true(pool_stats_of(pool).cached >= 4 * MIB);
            assert_true(pool_stats_of(pool).reserved.current < 16 * MIB);
        }
        if (i > 21)
            assert_int_equal(pool_stats_of(pool).reserved.current, reserved);
    }
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

static void step_below(ebb_region root, size_t bytes) {
    ebb_region step = OPEN(.parent = root);
    block_of(step, bytes, 64);
    assert_int_equal(ebb_region_close(step), 0);
}

static void steps_below(ebb_region root, unsigned count, size_t bytes) {
    for (unsigned i = 0; i < count; i++)
        step_below(root, bytes);
}

/* After a load that was higher. */
static uint64_t cached_beside(ebb_pool *pool, size_t survivors) {
    ebb_region root = OPEN(.name = "root", .pool = pool);
    steps_below(root, 1, 1 * MIB);
    if (survivors)
        block_of(root, survivors, 64);
    steps_below(root, RECENT, 1 * MIB);
    steps_below(root, 2, 16 * MIB);
    steps_below(root, 80, 1 * MIB);
    uint64_t cached = pool_stats_of(pool).cached;
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
    return cached;
}

static void a_cache_is_no_reason_to_keep_more(void **state) {
    (void)state;
    assert_in_range(cached_beside(POOL(.name = "none"), 0), 1 * MIB, 2 * MIB);
    assert_in_range(cached_beside(POOL(.name = "cache"), 200 * MIB), 1 * MIB, 3 * MIB);
    assert_in_range(cached_beside(timed_pool(), 0), 1 * MIB, 6 * MIB);
    assert_in_range(cached_beside(timed_pool(), 200 * MIB), 1 * MIB, 7 * MIB);
}

/* The peaks before tell of less than the next step finds and needs. */
static void what_a_step_leaves_beside_a_cache_takes_no_pages_from_the_next_one(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "leaves");
    ebb_region root = OPEN(.name = "root", .pool = pool);
    block_of(root, 100 * MIB, 64);
    steps_below(root, 20, 4 * MIB);
    ebb_region step = OPEN(.parent = root);
    block_of(step, 4 * MIB, 64);
    block_of(root, 20 * MIB, 64);
    uint64_t reserved = pool_stats_of(pool).reserved.total;
    assert_int_equal(ebb_region_close(step), 0);
    steps_below(root, 20, 4 * MIB);
    assert_int_equal(pool_stats_of(pool).reserved.total, reserved);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* When one of them ends the others are in their midst: what was owned at its begin says little. */
static void steps_that_overlap_keep_what_all_of_them_need(void **state) {
    enum { LANES = 4 };
    (void)state;
    ebb_pool *pool = POOL(.name = "overlap");
    ebb_region root = OPEN(.name = "root", .pool = pool), steps_of[LANES];
    uint64_t reserved = 0;
    block_of(root, 50 * MIB, 64);
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < LANES; i++) {
            steps_of[i] = OPEN(.parent = root);
            block_of(steps_of[i], 8 * MIB, 64);
        }
        for (unsigned i = 0; i < LANES; i++)
            assert_int_equal(ebb_region_close(steps_of[i]), 0);
        if (round == 1)
            reserved = pool_stats_of(pool).reserved.total;
    }
    assert_int_equal(pool_stats_of(pool).reserved.total, reserved);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* Pages that were wanted again are counted above the cache that there was then. */
static void what_a_cache_gives_back_is_not_kept_for_steps(void **state) {
    (void)state;
    ebb_pool *pool = timed_pool();
    ebb_region root = OPEN(.name = "root", .pool = pool);
    block_of(root, 30 * MIB, 64);
    ebb_region cache = OPEN(.name = "cache", .pool = pool);
    block_of(cache, 60 * MIB, 64);
    for (unsigned i = 0; i < 200; i++)
        step_below(root, i % 20 == 19 ? LONGER : 1 * MIB);
    assert_int_equal(ebb_region_close(cache), 0);
    steps_below(root, 2 * RECENT, 1 * MIB);
    assert_in_range(pool_stats_of(pool).cached, LONGER, LONGER + LONGER / 8 + 6 * MIB);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* What the root gives back of that no step needs: it does not stay for as long as a peak would. */
static void what_a_root_gives_back_goes_at_once(void **state) {
    (void)state;
    ebb_pool *pool = POOL(.name = "root");
    ebb_region root = OPEN(.name = "root", .pool = pool);
    ebb_region first = OPEN(.parent = root);
    assert_int_equal(ebb_region_close(first), 0);
    block_of(root, 100, 64);
    void *survivors = block_of(root, 6 * MIB, 64);
    unsigned steps_until = 0;
    for (unsigned i = 0; i < 20; i++) {
        ebb_region step = OPEN(.parent = root);
        block_of(step, 2 * MIB, 64);
        assert_int_equal(ebb_region_close(step), 0);
    }
    assert_int_equal(ebb_region_release(root, survivors), 0);
    while (pool_stats_of(pool).reserved.current > 4 * MIB && ++steps_until < 100) {
        ebb_region step = OPEN(.parent = root);
        block_of(step, 2 * MIB, 64);
        assert_int_equal(ebb_region_close(step), 0);
    }
    assert_in_range(steps_until, 2, 20); /* two looks, then a quarter of a step at a time */
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

/* What was asked for at once is wanted at once again, however little of it is used. */
static void pages_that_were_asked_for_stay(void **state) {
    static const struct {
        size_t hint, used;
    } steps[] = {{64 * MIB, 6 * MIB}, {24 * MIB, 16 * MIB}};
    (void)state;
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        ebb_pool *pool = POOL(.name = "asked");
        struct ebb_pool_stats third = {.given_back = 0};
        for (unsigned round = 0; round < 40; round++) {
            ebb_region region = OPEN(.pool = pool, .hint_bytes = steps[i].hint);
            block_of(region, steps[i].used, 64);
            assert_int_equal(ebb_region_close(region), 0);
            if (round == 2)
                third = pool_stats_of(pool);
        }
        assert_int_equal(pool_stats_of(pool).given_back, third.given_back);
        assert_int_equal(pool_stats_of(pool).reserved.total, third.reserved.total);
        pool_end(pool);
    }
}

static void deeper_regions_are_no_step_boundaries(void **state) {
    struct stage *stage = *state;
    ebb_region request = OPEN(.parent = stage->root);
    for (unsigned i = 0; i < 20; i++) {
        ebb_region scope = OPEN(.parent = request);
        block_of(scope, i == 10 ? 50 * MIB : 1 * MIB, 64);
        ebb_region_close(scope);
    }
    assert_int_equal(pool_stats_of(stage->pool).given_back, 0);
    assert_true(pool_stats_of(stage->pool).cached >= 50 * MIB);
    ebb_region_close(request);
}

/* It takes a run, makes that longer and claims what is hot beside it. */
static ebb_region work(ebb_pool *pool) {
    ebb_region region = region_open_uncounted("work", pool);
    for (size_t bytes = 64 * KIB; bytes <= 4 * MIB; bytes *= 2)
        block_of(region, bytes, 64);
    assert_int_equal(ebb_check_pool(pool), 0);
    return region;
}

/* The newest run of a step has met an older one behind it that is full when another step ends. */
static void what_lies_in_an_older_run_is_needed(void **state) {
    struct stage *stage = *state;
    struct recent *recent = &stage->pool->recent;
    step(stage->pool, 9 * MIB);
    ebb_region lower = OPEN(.pool = stage->pool, .hint_bytes = 6 * MIB);
    ebb_region region = OPEN(.pool = stage->pool);
    block_of(region, 3 * MIB, 64);
    assert_int_equal(ebb_region_close(lower), 0);
    block_of(region, 3 * MIB, 64);
    while (stats_of(region).runs > 1)
        block_of(region, 256 * KIB, 64);
    step(stage->pool, 100);
    uint64_t used = stats_of(region).used.current;
    assert_int_equal(ebb_region_close(region), 0);
    assert_true(recent->peaks[recent->next - 1] >= used);
}

/* What a step takes at its end, since it is hot, and never uses, a child of it had before. */
static void a_step_needs_what_a_child_of_it_had(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < 2 * RECENT; i++) {
        ebb_region step = OPEN(.parent = stage->root), child = OPEN(.parent = step);
        block_of(child, 24 * MIB, 64);
        assert_int_equal(ebb_region_close(child), 0);
        for (unsigned block = 0; block < 17; block++)
            block_of(step, 1 * MIB, 64);
        assert_int_equal(ebb_region_close(step), 0);
    }
    assert_true(pool_stats_of(stage->pool).recent_peak >= 24 * MIB);
    assert_int_equal(pool_stats_of(stage->pool).given_back, 0);
}

/* As threads have it that make plans of one pool at once: the first ends before the second does. */
static void what_ebb_works_in_no_step_needs(void **state) {
    struct stage *stage = *state;
    steps(stage->pool, 3, 1 * MIB);
    ebb_region first = work(stage->pool);
    steps(stage->pool, 3, 1 * MIB);
    ebb_region second = work(stage->pool);
    assert_int_equal(ebb_region_close(first), 0);
    steps(stage->pool, 3, 1 * MIB);
    assert_int_equal(ebb_region_close(second), 0);
    steps(stage->pool, 3, 1 * MIB);
    assert_true(pool_stats_of(stage->pool).recent_peak < 2 * MIB);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
}

/* What was higher before it and after it counts. */
static void a_step_needs_what_it_had_before_ebb_worked_and_since(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < 2 * RECENT; i++) {
        ebb_region outer = OPEN(.pool = stage->pool);
        ebb_region before = i % 2 ? OPEN(.parent = outer) : outer;
        block_of(before, i % 2 ? 16 * MIB : 1 * MIB, 64);
        if (i % 2)
            assert_int_equal(ebb_region_close(before), 0);
        ebb_region own = work(stage->pool);
        block_of(outer, i % 2 ? 1 * MIB : 15 * MIB, 64);
        assert_int_equal(ebb_region_close(own), 0);
        assert_int_equal(ebb_region_close(outer), 0);
    }
    uint64_t peak = pool_stats_of(stage->pool).recent_peak;
    assert_true(peak >= 16 * MIB && peak < 17 * MIB);
}

static void shrinking_never_takes_pages_of_open_regions(void **state) {
    struct stage *stage = *state;
    void *kept = block_of(stage->root, 20 * MIB, 64);
    for (unsigned i = 0; i < 40; i++) {
        ebb_region child = OPEN(.parent = stage->root);
        block_of(child, i % 8 == 3 ? 30 * MIB : 64 * KIB, 64);
        ebb_region_close(child);
    }
    assert_true(pattern_holds(kept, 20 * MIB, 20 * MIB));
    assert_true(pool_stats_of(stage->pool).owned >= 20 * MIB);
}

/* With a block of so many GiB, of which nothing is touched. */
static ebb_region vast(ebb_pool *pool, size_t gib) {
    ebb_region region = OPEN(.pool = pool);
    assert_non_null(ebb_region_alloc(region, gib << 30, 64));
    return region;
}

static struct os_table real;
static unsigned calls;

static int give_back_counting(void *addr, size_t bytes) {
    calls++;
    return real.give_back(addr, bytes);
}

/* A nanosecond for each look. */
static uint64_t slow_clock(void) {
    static uint64_t now;
    return ++now;
}

/* Of many blocks, large ones or small ones, there is much bookkeeping and no page is asked for. */
static void close_many(ebb_pool *pool, size_t bytes) {
    ebb_region region = OPEN(.name = "many", .pool = pool);
    for (size_t i = 0; i < 20000; i++)
        assert_non_null(ebb_region_alloc(region, bytes, 16));
    assert_int_equal(ebb_region_close(region), 0);
    calls = 0;
}

static void expect_bounded(ebb_pool *pool, size_t bytes) {
    close_many(pool, bytes);
    real = os;
    os.give_back = give_back_counting;
    os.now_ns = slow_clock;
    assert_int_equal(ebb_pool_trim_within(pool, SIZE_MAX, 10, NULL), 0);
    assert_true(calls < 10);
    assert_int_equal(ebb_pool_trim(pool, SIZE_MAX), 0); /* goes on with it */
    assert_true(calls > 20);
    calls = 0;
    assert_int_equal(ebb_pool_trim(pool, SIZE_MAX), 0);
    os = real;
    assert_int_equal(calls, 0);
}

static void a_budget_bounds_what_goes_of_the_bookkeeping(void **state) {
    ebb_pool *pool = POOL(.keep_all = true);
    (void)ebb_pool_trim(pool, 0); /* what other tests left */
    expect_bounded(pool, 1040);
    expect_bounded(pool, 1000);
    pool_end(pool);
}

/* How many times something was given back until so many bytes are left. */
static unsigned calls_down_to(ebb_pool *pool, size_t bytes) {
    calls = 0;
    pool_keep_hot(pool, bytes);
    return calls;
}

static void expect_with_pages(ebb_pool *pool, size_t bytes) {
    close_many(pool, bytes);
    real = os;
    os.give_back = give_back_counting;
    size_t hot = pool_stats_of(pool).cached, few = 256 << 10;
    unsigned nothing = calls_down_to(pool, hot), some = calls_down_to(pool, hot - few);
    uint64_t given = hot - pool_stats_of(pool).cached;
    unsigned all = calls_down_to(pool, 0);
    calls = 0;
    (void)ebb_pool_trim(pool, 0);
    unsigned rest = calls;
    os = real;
    assert_int_equal(nothing, 0);
    assert_in_range(some, 1, 8); /* some pages, and of tens of batches four at most */
    assert_in_range(given, few, few + EBB_PAGE);
    assert_true(all > 8);
    assert_true(rest <= 4); /* what the slot that waits has kept of it */
}

static void bookkeeping_goes_with_the_pages_that_it_described(void **state) {
    ebb_pool *pool = POOL(.keep_all = true);
    (void)ebb_pool_trim(pool, 0);
    expect_with_pages(pool, 1040);
    expect_with_pages(pool, 1000);
    pool_end(pool);
}

/* A spike's pages take all the time that the end of a step has, each time until they are gone. */
static void what_there_was_no_time_for_goes_at_later_ends(void **state) {
    enum { TIME_NS = 10 };
    ebb_pool *pool = timed_pool();
    for (size_t bytes = 1040; bytes >= 1000; bytes -= 40) {
        (void)ebb_pool_trim(pool, 0);
        steps(pool, 2 * RECENT, 1 * MIB);
        pool->trim_ns = TIME_NS;
        real = os;
        os.now_ns = slow_clock;
        close_many(pool, bytes);
        bool was_left = pool_bookkeeping_is_left();
        uint64_t cached = pool_stats_of(pool).cached;
        steps(pool, 100, 1 * MIB);
        bool is_left = pool_bookkeeping_is_left();
        os = real;
        pool->trim_ns = UINT32_MAX;
        assert_true(was_left && cached > 6 * MIB);
        assert_true(!is_left && pool_stats_of(pool).cached <= 6 * MIB);
    }
    pool_end(pool);
}

/* So many percent of 512 GiB are 2^64 bytes and a few more. */
static void a_margin_may_be_more_than_there_is(void **state) {
    (void)state;
    if (EBB_POISON || range.bytes < RANGE_MOST)
        skip(); /* blocks would be touched, or there are fewer addresses */
    ebb_pool *pool = POOL(.keep_margin_percent = 3355443202u);
    assert_int_equal(ebb_region_close(vast(pool, 512)), 0);
    ebb_region large = vast(pool, 512), beside = vast(pool, 200);
    assert_int_equal(ebb_region_close(beside), 0);
    assert_int_equal(ebb_region_close(large), 0);
    assert_int_equal(pool_stats_of(pool).given_back, 0);
    assert_int_equal(pool_stats_of(pool).cached >> 30, 712);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(steps_of_one_size_keep_their_pages_and_take_no_new_ones),
        STAGED(one_spike_goes_back_at_its_own_end),
        STAGED(a_load_that_stays_high_is_kept),
        STAGED(after_a_high_load_the_pool_falls_to_the_low_one),
        STAGED(a_falling_load_gives_back_no_more_than_a_quarter_step_at_once),
        cmocka_unit_test(pages_that_are_wanted_again_soon_are_kept_for_longer),
        cmocka_unit_test(pages_that_are_not_wanted_go_soon_again),
        cmocka_unit_test(a_high_load_after_mixed_steps_goes_as_soon_as_ever),
        cmocka_unit_test(a_high_load_wants_no_more_than_was_given_back),
        cmocka_unit_test(keep_all_never_gives_back),
        cmocka_unit_test(the_margin_is_kept_above_the_recent_peak),
        cmocka_unit_test(a_margin_may_be_more_than_there_is),
        cmocka_unit_test(a_budget_bounds_what_goes_of_the_bookkeeping),
        cmocka_unit_test(bookkeeping_goes_with_the_pages_that_it_described),
        cmocka_unit_test(what_there_was_no_time_for_goes_at_later_ends),
        STAGED(steps_inside_a_root_are_step_boundaries_too),
        cmocka_unit_test(a_spike_that_leaves_survivors_takes_no_pages_from_the_next_step),
        cmocka_unit_test(a_cache_is_no_reason_to_keep_more),
        cmocka_unit_test(what_a_step_leaves_beside_a_cache_takes_no_pages_from_the_next_one),
        cmocka_unit_test(steps_that_overlap_keep_what_all_of_them_need),
        cmocka_unit_test(what_a_cache_gives_back_is_not_kept_for_steps),
        cmocka_unit_test(what_a_root_gives_back_goes_at_once),
        cmocka_unit_test(pages_that_were_asked_for_stay),
        STAGED(deeper_regions_are_no_step_boundaries),
        STAGED(what_lies_in_an_older_run_is_needed),
        STAGED(a_step_needs_what_a_child_of_it_had),
        STAGED(what_ebb_works_in_no_step_needs),
        STAGED(a_step_needs_what_it_had_before_ebb_worked_and_since),
        STAGED(shrinking_never_takes_pages_of_open_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
