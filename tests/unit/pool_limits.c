// SPDX-License-Identifier: Apache-2.0
/*
 * pool_limits.c - limits of a pool: used bytes exact to the byte as rounded, reserved bytes exact
 * to the page; a refusal changes nothing, and what is cached gives way before a limit refuses.
 */
#include "kit/test.h"

/* One block of `bytes` in a fresh pool with this limit on used bytes: was it granted? */
static bool used_limit_grants(size_t limit, size_t bytes, size_t align) {
    ebb_pool *pool = POOL(.limit_used_bytes = limit);
    ebb_region region = OPEN(.pool = pool);
    bool granted = ebb_region_alloc(region, bytes, align) != NULL;
    if (!granted)
        assert_refused(ebb_last_error(), EBB_E_POOL_LIMIT);
    assert_int_equal(stats_of(region).blocks.current, granted);
    ebb_region_close(region);
    pool_end(pool);
    return granted;
}

static void the_limit_on_used_bytes_is_exact_in_the_small_lane(void **state) {
    for (size_t bytes = 1; bytes <= EBB_SMALL_MAX_BYTES; bytes += 61) {
        size_t used = (bytes + 15) / 16 * 16;
        assert_false(used_limit_grants(used - 1, bytes, 16));
        assert_true(used_limit_grants(used, bytes, 16));
        assert_true(used_limit_grants(used + 1, bytes, 16));
    }
}

static void the_limit_on_used_bytes_is_exact_in_the_large_lane(void **state) {
    static const size_t sizes[] = {1025, 1088, 4095, 4096, 4097, 65536, 1000001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t used = (sizes[i] + 63) / 64 * 64;
        assert_false(used_limit_grants(used - 1, sizes[i], 64));
        assert_true(used_limit_grants(used, sizes[i], 64));
    }
    assert_false(used_limit_grants(1023, 1, 128)); /* least block of the large lane */
    assert_true(used_limit_grants(1024, 1, 128));
}

static void an_empty_block_takes_one_granule_of_the_limit(void **state) {
    assert_false(used_limit_grants(15, 0, 1));
    assert_true(used_limit_grants(16, 0, 1));
}

static void released_bytes_can_be_used_again_under_the_limit(void **state) {
    ebb_pool *pool = POOL(.limit_used_bytes = 8192);
    ebb_region a = OPEN(.pool = pool), b = OPEN(.pool = pool);
    void *block = block_of(a, 4096, 64);
    block_of(b, 4096, 64);
    assert_no_block(ebb_region_alloc(b, 1, 1), EBB_E_POOL_LIMIT);
    assert_int_equal(ebb_region_release(a, block), 0);
    block_of(b, 4096, 64);
    assert_no_block(ebb_region_alloc(a, 1, 1), EBB_E_POOL_LIMIT);
    ebb_region_close(b);
    block_of(a, 8192, 64);
    assert_int_equal(ebb_region_reset(a, 0), 0);
    block_of(a, 8192, 64);
    ebb_region_close(a);
    pool_end(pool);
}

static void a_refusal_names_what_was_asked_and_what_is_left(void **state) {
    ebb_pool *pool = POOL(.name = "narrow", .limit_used_bytes = 6016);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 3008, 64);
    assert_no_block(ebb_region_alloc(region, 3072, 64), EBB_E_POOL_LIMIT);
    assert_text_names("narrow");
    assert_text_names("3072");
    assert_text_names("3008");
    assert_text_names("6016");
    ebb_region_close(region);
    pool_end(pool);
}

static void the_limit_on_reserved_bytes_is_exact_to_the_page(void **state) {
    for (size_t pages = 2; pages < 600; pages = pages * 3 / 2) {
        size_t bytes = pages * PAGE;
        for (size_t limit = bytes - 1; limit <= bytes + 1; limit++) {
            ebb_pool *pool = POOL(.limit_reserved_bytes = limit);
            ebb_region region = OPEN(.pool = pool);
            void *block = ebb_region_alloc(region, bytes, 64);
            assert_int_equal(block != NULL, limit >= bytes);
            if (!block)
                assert_refused(ebb_last_error(), EBB_E_POOL_LIMIT);
            assert_true(pool_stats_of(pool).reserved.peak <= limit);
            ebb_region_close(region);
            pool_end(pool);
        }
    }
}

static void growth_never_passes_the_reserved_limit(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 100 * PAGE);
    ebb_region region = OPEN(.pool = pool);
    size_t blocks = 0;
    while (ebb_region_alloc(region, 2000, 64))
        blocks++;
    assert_refused(ebb_last_error(), EBB_E_POOL_LIMIT);
    assert_int_equal(blocks, 100 * PAGE / 2048);
    assert_int_equal(pool_stats_of(pool).reserved.peak, 100 * PAGE);
    ebb_region_close(region);
    pool_end(pool);
}

static void small_blocks_fill_the_reserved_limit_to_the_last_granule(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 16 * PAGE);
    ebb_region region = OPEN(.pool = pool);
    size_t blocks = 0;
    while (ebb_region_alloc(region, 16, 16))
        blocks++;
    assert_refused(ebb_last_error(), EBB_E_POOL_LIMIT);
    assert_int_equal(blocks, 16 * PAGE / 16);
    ebb_region_close(region);
    pool_end(pool);
}

static void cached_pages_give_way_before_the_limit_refuses(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 40 * PAGE, .keep_all = true);
    ebb_region first = OPEN(.pool = pool), region = OPEN(.pool = pool), second = OPEN(.pool = pool);
    block_of(first, 15 * PAGE, 64);
    block_of(region, 4 * PAGE, 64);
    block_of(second, 15 * PAGE, 64);
    ebb_region_close(first);
    ebb_region_close(second);
    assert_int_equal(pool_stats_of(pool).cached, 30 * PAGE);
    block_of(region, 34 * PAGE, 64); /* fits the limit, but no run of cached pages */
    assert_true(pool_stats_of(pool).reserved.peak <= 40 * PAGE);
    ebb_region_close(region);
    pool_end(pool);
}

/* All that the limit leaves is what the region's run grows by, though a new run would be longer. */
static void cached_pages_give_way_to_a_run_that_grows_in_place(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 256 * PAGE, .keep_all = true);
    ebb_region region = OPEN(.pool = pool, .hint_bytes = 248 * PAGE);
    ebb_region other = OPEN(.pool = pool, .hint_bytes = 8 * PAGE);
    assert_int_equal(ebb_region_close(other), 0);
    block_of(region, 233 * PAGE, 64);
    assert_no_block(ebb_region_alloc(region, 23 * PAGE + 1, 64), EBB_E_POOL_LIMIT);
    assert_text_names("98304 bytes of pages asked, limit leaves 32768 of 1048576 in pool 'pool'");
    assert_int_equal(pool_stats_of(pool).cached, 8 * PAGE);
    block_of(region, 16 * PAGE, 64);
    assert_int_equal(pool_stats_of(pool).cached, 7 * PAGE); /* no more went than is missing */
    assert_int_equal(stats_of(region).runs, 1);
    block_of(region, 7 * PAGE, 64);
    assert_int_equal(pool_stats_of(pool).reserved.peak, 256 * PAGE);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* What is held above the limit goes, too: else the next block has room, but not this one. */
static void cached_pages_above_a_lowered_limit_give_way(void **state) {
    ebb_pool *pool = POOL(.keep_all = true);
    ebb_region parts[17];
    for (int i = 0; i < 17; i++)
        parts[i] = OPEN(.pool = pool, .hint_bytes = 4 * PAGE);
    for (int i = 0; i < 17; i += 2)
        assert_int_equal(ebb_region_close(parts[i]), 0);
    assert_int_equal(pool_stats_of(pool).owned, 32 * PAGE);
    assert_int_equal(pool_stats_of(pool).cached, 36 * PAGE);
    assert_int_equal(ebb_pool_set_reserved_limit(pool, 40 * PAGE + 1), 0);
    ebb_region region = OPEN(.pool = pool);
    block_of(region, 8 * PAGE, 64);
    assert_int_equal(pool_stats_of(pool).reserved.current, 40 * PAGE);
    assert_no_block(ebb_region_alloc(region, 1025, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(ebb_region_close(region), 0);
    for (int i = 1; i < 17; i += 2)
        assert_int_equal(ebb_region_close(parts[i]), 0);
    pool_end(pool);
}

/* What calls left on the stack says nothing. */
static void __attribute__((noinline)) soil_stack(void) {
    volatile unsigned char bytes[64 * KIB];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0xff;
}

/* Steps with a plan so far. */
static uint64_t take_step(ebb_site *site) {
    struct ebb_site_stats stats = {.size = sizeof stats};
    soil_stack();
    ebb_step step = ebb_step_begin(site, 1);
    block_of(step.region, 100 * KIB, 64);
    block_of(step.region, 100 * KIB, 64);
    assert_int_equal(ebb_step_end(step), 0);
    assert_int_equal(ebb_site_read_stats(site, &stats), 0);
    return stats.planned_steps;
}

static void cached_parts_give_way_to_the_arena_of_a_plan(void **state) {
    ebb_pool *pool = POOL(.keep_all = true);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = pool));
    ebb_region parts[8];
    uint64_t planned = 0;
    while (planned < 2)
        planned = take_step(site);
    ebb_pool_trim(pool, 0);
    for (int i = 0; i < 8; i++)
        parts[i] = OPEN(.pool = pool, .hint_bytes = 80 * KIB);
    for (int i = 1; i < 8; i += 2)
        assert_int_equal(ebb_region_close(parts[i]), 0);
    struct ebb_pool_stats stats = pool_stats_of(pool);
    assert_int_equal(stats.cached, 4 * 80 * KIB);
    assert_int_equal(ebb_pool_set_reserved_limit(pool, stats.reserved.current), 0);
    assert_int_equal(take_step(site), planned + 1);
    for (int i = 0; i < 8; i += 2)
        assert_int_equal(ebb_region_close(parts[i]), 0);
    assert_int_equal(ebb_site_destroy(site), 0);
    pool_end(pool);
}

static void a_request_that_cannot_succeed_leaves_the_cache_alone(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 64 * PAGE, .keep_all = true);
    ebb_region step = OPEN(.pool = pool), region = OPEN(.pool = pool);
    block_of(step, 20 * PAGE, 64);
    ebb_region_close(step);
    struct ebb_pool_stats before = pool_stats_of(pool);
    assert_true(before.cached >= 20 * PAGE);
    assert_no_block(ebb_region_alloc(region, 65 * PAGE, 64), EBB_E_POOL_LIMIT);
    struct ebb_pool_stats after = pool_stats_of(pool);
    assert_memory_equal(&before, &after, sizeof before);
    ebb_region_close(region);
    pool_end(pool);
}

static void the_reserved_limit_can_be_raised_lowered_and_lifted(void **state) {
    struct stage *stage = *state;
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 10 * PAGE), 0);
    void *block = block_of(stage->root, 10 * PAGE, 64);
    assert_no_block(ebb_region_alloc(stage->root, 1025, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 11 * PAGE), 0);
    block_of(stage->root, 1025, 64);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, PAGE), 0);
    assert_true(pattern_holds(block, 10 * PAGE, 10 * PAGE));
    assert_no_block(ebb_region_alloc(stage->root, 2 * PAGE, 64), EBB_E_POOL_LIMIT);
    block_of(stage->root, 1025, 64); /* pages held already */
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 0), 0);
    block_of(stage->root, 10 * MIB, 64);
}

static void a_refused_block_leaves_pool_and_region_as_they_were(void **state) {
    static const size_t sizes[] = {1, 16, 1024, 1025, 5000, 1 << 20};
    ebb_pool *pool = POOL(.limit_used_bytes = 40);
    ebb_region region = OPEN(.pool = pool);
    void *held = block_of(region, 30, 16);
    struct ebb_pool_stats pool_before = pool_stats_of(pool);
    struct ebb_region_stats before = stats_of(region);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_no_block(ebb_region_alloc(region, sizes[i], 64), EBB_E_POOL_LIMIT);
        assert_no_block(ebb_region_alloc_zeroed(region, sizes[i], 64), EBB_E_POOL_LIMIT);
        struct ebb_region_stats after = stats_of(region);
        struct ebb_pool_stats pool_after = pool_stats_of(pool);
        assert_memory_equal(&before, &after, sizeof before);
        assert_memory_equal(&pool_before, &pool_after, sizeof pool_before);
    }
    assert_true(pattern_holds(held, 30, 30));
    ebb_region_close(region);
    pool_end(pool);
}

static void a_refused_first_block_reserves_nothing(void **state) {
    ebb_pool *pool = POOL(.limit_used_bytes = 8);
    ebb_region region = OPEN(.pool = pool);
    struct ebb_region_stats before = stats_of(region);
    assert_no_block(ebb_region_alloc(region, 16, 16), EBB_E_POOL_LIMIT);
    assert_no_block(ebb_region_alloc(region, 5000, 64), EBB_E_POOL_LIMIT);
    struct ebb_region_stats after = stats_of(region);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(pool_stats_of(pool).reserved.peak, 0);
    ebb_region_close(region);
    pool_end(pool);
}

/* Nor what is hot around the region, which others need: not once, and not bit by bit. */
static void refused_blocks_claim_no_pages(void **state) {
    ebb_pool *pool = POOL(.limit_reserved_bytes = 4 * MIB, .keep_all = true);
    ebb_region warm = OPEN(.pool = pool);
    block_of(warm, MIB, 16);
    assert_int_equal(ebb_region_close(warm), 0);
    ebb_region region = OPEN(.pool = pool, .hint_bytes = 16384);
    block_of(region, 2000, 16);
    struct ebb_region_stats before = stats_of(region);
    for (int i = 0; i < 30; i++) {
        assert_no_block(ebb_region_alloc(region, 64 * MIB, 16), EBB_E_POOL_LIMIT);
        assert_int_equal(stats_of(region).reserved.current, before.reserved.current);
        assert_int_equal(stats_of(region).reserved.peak, before.reserved.peak);
    }
    assert_int_equal(ebb_pool_set_reserved_limit(pool, MIB), 0);
    ebb_region other = OPEN(.pool = pool);
    block_of(other, 300000, 16);
    assert_int_equal(ebb_region_close(other), 0);
    assert_int_equal(ebb_region_close(region), 0);
    pool_end(pool);
}

/* Nor where all that is scattered about the region would be enough, or the alignment is not. */
static void a_block_that_scattered_pages_do_not_hold_claims_none(void **state) {
    static const size_t sizes[][2] = {{1000, 2 * MIB}, {1600 * KIB, 64}};
    static const size_t hints[] = {4 * KIB, 16 * KIB, 1400 * KIB, 1500 * KIB};
    ebb_pool *pool = POOL(.limit_reserved_bytes = 3 * MIB, .keep_all = true);
    ebb_region regions[4]; /* the first where the slab begins, the others down from its end */
    for (int i = 0; i < 4; i++)
        regions[i] = OPEN(.pool = pool, .hint_bytes = hints[i]);
    block_of(regions[1], 100, 16);
    assert_int_equal(ebb_region_close(regions[2]), 0);
    struct ebb_region_stats before = stats_of(regions[1]);
    for (int i = 0; i < 16; i++) {
        const size_t *size = sizes[i % 2];
        assert_no_block(ebb_region_alloc(regions[1], size[0], size[1]), EBB_E_POOL_LIMIT);
        struct ebb_region_stats after = stats_of(regions[1]);
        assert_memory_equal(&before, &after, sizeof before);
    }
    block_of(regions[0], 1300 * KIB, 64);
    for (int i = 0; i < 4; i++)
        (void)ebb_region_close(regions[i]);
    pool_end(pool);
}

/* Where a limit leaves fewer pages than are free in the region and, hot, on both sides of it. */
static void pages_beside_a_run_are_claimed_at_the_limit(void **state) {
    static const size_t hints[] = {PAGE, 12 * PAGE, 10 * PAGE, 12 * PAGE};
    ebb_pool *pool = POOL(.limit_reserved_bytes = 35 * PAGE, .keep_all = true);
    ebb_region regions[4];
    for (int i = 0; i < 4; i++)
        regions[i] = OPEN(.pool = pool, .hint_bytes = hints[i]);
    assert_int_equal(ebb_region_close(regions[1]), 0);
    assert_int_equal(ebb_region_close(regions[3]), 0);
    struct ebb_region_stats before = stats_of(regions[2]);
    assert_no_block(ebb_region_alloc(regions[2], 34 * PAGE + 1, 64), EBB_E_POOL_LIMIT);
    struct ebb_region_stats after = stats_of(regions[2]);
    assert_memory_equal(&before, &after, sizeof before);
    block_of(regions[2], 34 * PAGE, 64);
    assert_int_equal(stats_of(regions[2]).runs, 1);
    assert_int_equal(pool_stats_of(pool).given_back, 0);
    assert_int_equal(ebb_region_close(regions[2]), 0);
    assert_int_equal(ebb_region_close(regions[0]), 0);
    pool_end(pool);
}

/* Pages of a slot that would not do stay cached. */
static void what_the_end_of_a_slot_refuses_takes_nothing(void **state) {
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 4 * MIB);
    ebb_region root = OPEN(.pool = pool), region = OPEN(.parent = root), other;
    block_of(region, 64 * KIB, 64);
    other = OPEN(.parent = root);
    block_of(other, 1 * MIB, 64);
    assert_int_equal(ebb_region_close(other), 0);
    size_t reserved = stats_of(region).reserved.current;
    uint64_t cached = pool_stats_of(pool).cached;
    assert_true(cached >= 1 * MIB);
    assert_no_block(ebb_region_alloc(region, 4 * MIB, 64), EBB_E_POOL_LIMIT);
    assert_int_equal(stats_of(region).reserved.current, reserved);
    assert_int_equal(pool_stats_of(pool).cached, cached);
    assert_int_equal(ebb_region_close(root), 0);
    pool_end(pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_on_used_bytes_is_exact_in_the_small_lane),
        cmocka_unit_test(the_limit_on_used_bytes_is_exact_in_the_large_lane),
        cmocka_unit_test(an_empty_block_takes_one_granule_of_the_limit),
        cmocka_unit_test(released_bytes_can_be_used_again_under_the_limit),
        cmocka_unit_test(a_refusal_names_what_was_asked_and_what_is_left),
        cmocka_unit_test(the_limit_on_reserved_bytes_is_exact_to_the_page),
        cmocka_unit_test(growth_never_passes_the_reserved_limit),
        cmocka_unit_test(small_blocks_fill_the_reserved_limit_to_the_last_granule),
        cmocka_unit_test(cached_pages_give_way_before_the_limit_refuses),
        cmocka_unit_test(cached_pages_give_way_to_a_run_that_grows_in_place),
        cmocka_unit_test(cached_pages_above_a_lowered_limit_give_way),
        cmocka_unit_test(cached_parts_give_way_to_the_arena_of_a_plan),
        cmocka_unit_test(a_request_that_cannot_succeed_leaves_the_cache_alone),
        STAGED(the_reserved_limit_can_be_raised_lowered_and_lifted),
        cmocka_unit_test(a_refused_block_leaves_pool_and_region_as_they_were),
        cmocka_unit_test(a_refused_first_block_reserves_nothing),
        cmocka_unit_test(refused_blocks_claim_no_pages),
        cmocka_unit_test(a_block_that_scattered_pages_do_not_hold_claims_none),
        cmocka_unit_test(pages_beside_a_run_are_claimed_at_the_limit),
        cmocka_unit_test(what_the_end_of_a_slot_refuses_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
