// SPDX-License-Identifier: Apache-2.0
/*
 * trim.c - giving cached pages back on request: the target is kept to the byte, the result is
 * what the kernel says is gone (counted once more here with mincore), open regions are left alone.
 */
#include "kit/test.h"

#include <sys/mman.h>

/* Bytes of [block, block + bytes) that are in memory, as the kernel says. */
static size_t resident(const void *block, size_t bytes) {
    static unsigned char in_core[1 << 14];
    size_t pages = bytes / PAGE, count = 0;
    assert_true(pages <= sizeof in_core);
    if (mincore((void *)(uintptr_t)block, pages * PAGE, in_core) != 0)
        return 0;
    for (size_t i = 0; i < pages; i++)
        count += in_core[i] & 1;
    return count * PAGE;
}

/* A region takes `bytes`, touches them all, and closes: they are cached. Returns where. */
static void *make_cached(struct stage *stage, size_t bytes) {
    ebb_region child = OPEN(.parent = stage->root);
    void *block = block_of(child, bytes, 4096);
    assert_int_equal(ebb_region_close(child), 0);
    assert_true(pool_stats_of(stage->pool).cached >= bytes);
    return block;
}

static void trimming_to_nothing_gives_everything_back(void **state) {
    struct stage *stage = *state;
    void *block = make_cached(stage, 256 * KIB);
    assert_int_equal(resident(block, 256 * KIB), 256 * KIB);
    struct ebb_pool_stats before = pool_stats_of(stage->pool);
    size_t given = ebb_pool_trim(stage->pool, 0);
    assert_true(given >= 256 * KIB && given <= before.cached);
    assert_int_equal(resident(block, 256 * KIB), 0);
    struct ebb_pool_stats after = pool_stats_of(stage->pool);
    assert_int_equal(after.cached, 0);
    assert_int_equal(after.reserved.current, 0);
    assert_int_equal(after.given_back - before.given_back, given);
    assert_int_equal(ebb_pool_trim(stage->pool, 0), 0);
}

static void at_most_the_target_stays_cached(void **state) {
    struct stage *stage = *state;
    static const size_t targets[] = {0, 1, 4095, 4096, 4097, 5000, 65535, 65536, 65537, 131071};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        make_cached(stage, 128 * KIB);
        ebb_pool_trim(stage->pool, targets[i]);
        uint64_t cached = pool_stats_of(stage->pool).cached;
        assert_true(cached <= targets[i]);
        assert_true(cached + PAGE > targets[i]); /* and no page less than could stay */
        assert_int_equal(ebb_pool_trim(stage->pool, targets[i]), 0);
    }
}

static void a_target_above_what_is_cached_gives_nothing(void **state) {
    struct stage *stage = *state;
    make_cached(stage, 128 * KIB);
    struct ebb_pool_stats before = pool_stats_of(stage->pool);
    assert_int_equal(ebb_pool_trim(stage->pool, before.cached), 0);
    assert_int_equal(ebb_pool_trim(stage->pool, before.cached + 1), 0);
    assert_int_equal(ebb_pool_trim(stage->pool, SIZE_MAX), 0);
    struct ebb_pool_stats after = pool_stats_of(stage->pool);
    assert_memory_equal(&before, &after, sizeof before);
}

static void pages_of_open_regions_are_never_touched(void **state) {
    struct stage *stage = *state;
    void *kept = block_of(stage->root, 256 * KIB, 64);
    void *small = block_of(stage->root, 1000, 16);
    make_cached(stage, 128 * KIB);
    uint64_t owned = pool_stats_of(stage->pool).owned;
    ebb_pool_trim(stage->pool, 0);
    assert_int_equal(pool_stats_of(stage->pool).owned, owned);
    assert_true(pattern_holds(kept, 256 * KIB, 256 * KIB));
    assert_true(pattern_holds(small, 1000, 1000));
}

static void pages_never_touched_count_as_nothing_given(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    assert_non_null(ebb_region_alloc(child, 1 * MIB, 64));
    ebb_region_close(child);
    assert_int_equal(ebb_pool_trim(stage->pool, 0), 0);
    assert_int_equal(pool_stats_of(stage->pool).cached, 0);
}

static void trimmed_pages_can_be_used_again(void **state) {
    struct stage *stage = *state;
    for (int round = 0; round < 10; round++) {
        make_cached(stage, 300 * KIB);
        ebb_pool_trim(stage->pool, (size_t)round * 8 * PAGE);
        void *block = ebb_region_alloc_zeroed(stage->root, 300 * KIB, 64);
        assert_non_null(block);
        for (size_t i = 0; i < 300 * KIB; i += 512)
            assert_int_equal(((unsigned char *)block)[i], 0);
        assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    }
}

static void the_pages_used_longest_ago_go_first(void **state) {
    struct stage *stage = *state;
    unsigned char *block = make_cached(stage, 64 * PAGE);
    ebb_pool_trim(stage->pool, pool_stats_of(stage->pool).cached - 16 * PAGE);
    assert_int_equal(resident(block, 32 * PAGE), 32 * PAGE); /* low addresses are used first */
    assert_true(resident(block, 64 * PAGE) < 64 * PAGE);
}

static void a_budget_of_one_nanosecond_stops_early_and_says_what_is_left(void **state) {
    struct stage *stage = *state;
    size_t remaining = 1, rounds = 0;
    make_cached(stage, 20 * MIB);
    uint64_t cached = pool_stats_of(stage->pool).cached;
    while (remaining) {
        size_t given = ebb_pool_trim_within(stage->pool, 2 * MIB, 1, &remaining);
        uint64_t now = pool_stats_of(stage->pool).cached;
        assert_true(given > 0 && given <= cached - now);
        assert_int_equal(remaining, now > 2 * MIB ? now - 2 * MIB : 0);
        cached = now;
        rounds++;
    }
    assert_true(rounds >= 18);
}

static void budgets_that_never_end_trim_to_the_target(void **state) {
    static const uint64_t budgets[] = {0, UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 63};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        size_t remaining = 1;
        make_cached(stage, 5 * MIB);
        ebb_pool_trim_within(stage->pool, 0, budgets[i], &remaining);
        assert_int_equal(remaining, 0);
        assert_int_equal(pool_stats_of(stage->pool).cached, 0);
    }
}

/* A key, say: nobody may write it out, and nobody unlocked it. Others lie behind it. */
static void what_the_program_left_locked_goes_as_well(void **state) {
    struct stage *stage = *state;
    char *block = make_cached(stage, 5 * MIB);
    if (mlock(block + 3 * MIB, 1) != 0)
        skip();
    size_t remaining = 1;
    assert_true(ebb_pool_trim_within(stage->pool, 0, 0, &remaining) >= 5 * MIB);
    assert_int_equal(remaining, 0);
    assert_int_equal(pool_stats_of(stage->pool).cached, 0);
    assert_int_equal(resident(block, 5 * MIB), 0);
    assert_int_equal(munlock(block + 3 * MIB, 1), 0);
}

static void a_pool_that_ends_keeps_nothing_for_a_locked_page(void **state) {
    ebb_pool *pool = POOL(.name = "with a key");
    ebb_region region = OPEN(.pool = pool);
    char *key = block_of(region, PAGE, PAGE), *behind = block_of(region, 5 * MIB, PAGE);
    if (mlock(key, 1) != 0)
        skip();
    assert_true(resident(behind, 5 * MIB) == 5 * MIB);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
    assert_int_equal(resident(behind, 5 * MIB), 0);
    assert_int_equal(munlock(key, 1), 0);
}

static void the_remaining_bytes_need_not_be_asked_for(void **state) {
    struct stage *stage = *state;
    make_cached(stage, 3 * MIB);
    assert_true(ebb_pool_trim_within(stage->pool, 0, 0, NULL) >= 3 * MIB);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(trimming_to_nothing_gives_everything_back),
        STAGED(at_most_the_target_stays_cached),
        STAGED(a_target_above_what_is_cached_gives_nothing),
        STAGED(pages_of_open_regions_are_never_touched),
        STAGED(pages_never_touched_count_as_nothing_given),
        STAGED(trimmed_pages_can_be_used_again),
        STAGED(the_pages_used_longest_ago_go_first),
        STAGED(a_budget_of_one_nanosecond_stops_early_and_says_what_is_left),
        STAGED(budgets_that_never_end_trim_to_the_target),
        STAGED(what_the_program_left_locked_goes_as_well),
        cmocka_unit_test(a_pool_that_ends_keeps_nothing_for_a_locked_page),
        STAGED(the_remaining_bytes_need_not_be_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
