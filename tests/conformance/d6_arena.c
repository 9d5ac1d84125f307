// SPDX-License-Identifier: Apache-2.0
/*
 * d6_arena.c - part D6: arenas and block pools (IREE).
 *
 * Ours differs where a case counts blocks of one size: pages come in runs, so "blocks acquired"
 * is reserved bytes here, and headers are out of line, so that all of a page is usable.
 * Not here: none of D6. Case 80's allocator interface is ebb_region_realloc(); case 81's offset
 * arena is a measuring region, whose addresses have no memory, and where what is aligned to more
 * than 64 is a large block, in pages of its own: its third offset is a multiple of 256, and used
 * are granules and units, not 257. What 85 says of a range of 1000 bytes is said of blocks above
 * the small lane, in pages; 90 has a place of 64 KiB.
 */
#include "conformance/law.h"

static void c71_an_empty_region_opens_and_closes_and_a_page_is_wholly_usable(void **state) {
    struct stage *stage = *state;
    ebb_region empty = OPEN(.pool = stage->pool);
    assert_int_equal(ebb_region_close(empty), 0);
    ebb_region page = OPEN(.pool = stage->pool, .hint_bytes = 4096);
    block_of(page, 4096, 4096);
    assert_int_equal(stats_of(page).reserved.current, 4096);
    assert_int_equal(ebb_region_close(page), 0);
}

static void c72_what_was_reserved_serves_without_more(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 4 * PAGE);
    void *blocks[4];
    uint64_t total = pool_stats_of(stage->pool).reserved.total;
    for (int i = 0; i < 4; i++)
        blocks[i] = block_of(region, PAGE, 64);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ebb_region_release(region, blocks[i]), 0);
    assert_int_equal(pool_stats_of(stage->pool).reserved.total, total);
    assert_int_equal(total, 4 * PAGE);
    ebb_region_close(region);
}

static void c73_a_trimmed_pool_serves_again(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 8 * PAGE);
    ebb_region_close(region);
    assert_int_equal(pool_stats_of(stage->pool).cached, 8 * PAGE);
    ebb_pool_trim(stage->pool, 0);
    assert_int_equal(pool_stats_of(stage->pool).cached, 0);
    region = OPEN(.pool = stage->pool);
    block_of(region, PAGE, 64);
    ebb_region_close(region);
}

static void c74_blocks_are_distinct_and_aligned_for_any_type(void **state) {
    struct stage *stage = *state;
    char *blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = block_of(stage->root, 64, 16);
        for (int k = 0; k < i; k++)
            assert_true(blocks[i] >= blocks[k] + 64 || blocks[i] + 64 <= blocks[k]);
    }
    for (size_t bytes = 1; bytes <= 37; bytes++)
        assert_int_equal((uintptr_t)untouched(stage->root, bytes, 1) % _Alignof(max_align_t), 0);
}

static void c75_an_oversized_block_is_aligned_and_ends_with_a_reset(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 4 * PAGE, 16);
    assert_int_equal((uintptr_t)block % 64, 0);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    assert_int_equal(stats_of(stage->root).reserved.current, 0);
}

static void c76_a_block_at_the_edge_of_the_lane_opens_no_window(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, EBB_SMALL_MAX_BYTES + 1, 16);
    struct ebb_region_stats stats = stats_of(stage->root);
    assert_int_equal(stats.small_blocks, 0);
    assert_int_equal(stats.used.current, 1088); /* a window would count as pages, not as used */
    ebb_region exact = OPEN(.parent = stage->root, .hint_bytes = 4097);
    assert_int_equal(stats_of(exact).reserved.current, 2 * PAGE);
    block_of(exact, 4097, 64);
    assert_int_equal(stats_of(exact).reserved.peak, 2 * PAGE);
}

static void c77_rounds_with_a_reset_reserve_the_same(void **state) {
    struct stage *stage = *state;
    uint64_t reserved = 0;
    for (int round = 0; round < 3; round++) {
        block_of(stage->root, 256, 16);
        block_of(stage->root, 2 * PAGE, 16);
        if (round == 0)
            reserved = stats_of(stage->root).reserved.current;
        assert_int_equal(stats_of(stage->root).reserved.current, reserved);
        assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
        assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    }
}

static void c79_alignments_and_empty_blocks(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 1, 4);
    for (int i = 0; i < 8; i++)
        block_of(stage->root, 100, 64);
    block_of(stage->root, 32, 256);
    block_of(stage->root, 0, 64);
    assert_non_null(ebb_region_realloc(stage->root, NULL, 0, 1));
}

static void c80_realloc_and_free_work(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 100, 16);
    block_of(stage->root, 1, 1);
    void *moved = ebb_region_realloc(stage->root, block, 1000, 16);
    assert_true(moved && moved != block && pattern_holds(moved, 100, 100));
    assert_int_equal(ebb_region_release(stage->root, moved), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
}

static void c81_a_measuring_region_gives_offsets(void **state) {
    ebb_region region = OPEN(.measure = true);
    char *first = untouched(region, 1, 1), *second = untouched(region, 1, 16);
    char *third = untouched(region, 1, 256);
    assert_int_equal(second - first, 16);
    assert_int_equal((uintptr_t)third % 256, 0);
    assert_int_equal(stats_of(region).requested.current, 3);
    assert_int_equal(stats_of(region).used.current, 16 + 16 + 1024);
    assert_int_equal(ebb_region_close(region), 0);
}

static void c83_zero_bytes_are_legal_and_wrong_alignments_are_not(void **state) {
    struct stage *stage = *state;
    assert_non_null(ebb_region_alloc(stage->root, 0, 1)); /* IREE: invalid */
    assert_no_block(ebb_region_alloc(stage->root, 10, 0), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(stage->root, 10, 3), EBB_E_ALIGNMENT);
}

static void c84_used_bytes_and_counts_follow(void **state) {
    struct stage *stage = *state;
    void *blocks[3];
    for (size_t i = 0; i < 3; i++)
        blocks[i] = block_of(stage->root, 100 * (i + 1), 16);
    assert_int_equal(stats_of(stage->root).requested.current, 600);
    assert_int_equal(stats_of(stage->root).blocks.current, 3);
    assert_int_equal(ebb_region_release(stage->root, blocks[2]), 0);
    assert_int_equal(ebb_region_release(stage->root, blocks[0]), 0);
    assert_int_equal(stats_of(stage->root).requested.current, 200);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    assert_int_equal(ebb_region_release(stage->root, blocks[1]), 0);
    assert_int_equal(stats_of(stage->root).requested.current, 0);
    assert_int_equal(stats_of(stage->root).used.current, 0);
}

static void c85_large_blocks_lie_one_behind_the_other(void **state) {
    struct stage *stage = *state;
    static const size_t sizes[] = {1024, 2048, 1536};
    char *first = block_of(stage->root, sizes[0], 128), *at = first;
    for (int i = 1; i < 3; i++) {
        at += sizes[i - 1];
        assert_ptr_equal(block_of(stage->root, sizes[i], 128), at);
    }
    uint64_t used = stats_of(stage->root).used.current;
    block_of(stage->root, 1025, 128);
    assert_int_equal(stats_of(stage->root).used.current - used, 1088); /* rounds to 64 */
    assert_no_block(ebb_region_alloc(stage->root, SIZE_MAX - 17, 64), EBB_E_SIZE);
}

static void c86_free_places_coalesce(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .hint_bytes = 1 * MIB);
    char *blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = block_of(region, 256 * KIB, 64);
    static const int right[] = {3, 2, 1, 0}, left[] = {0, 1, 2, 3}, both[] = {0, 2, 1, 3};
    const int *orders[] = {right, left, both};
    for (int order = 0; order < 3; order++) {
        for (int i = 0; i < 4; i++)
            assert_int_equal(ebb_region_release(region, blocks[orders[order][i]]), 0);
        assert_ptr_equal(block_of(region, 1 * MIB, 64), blocks[0]); /* one place of 1 MiB */
        assert_int_equal(ebb_region_release(region, blocks[0]), 0);
        for (int i = 0; i < 4; i++)
            assert_ptr_equal(block_of(region, 256 * KIB, 64), blocks[i]);
    }
    assert_int_equal(ebb_region_release(region, blocks[0]), 0);
    assert_int_equal(ebb_region_release(region, blocks[2]), 0);
    block_of(region, 256 * KIB, 64); /* two places between live neighbours */
    block_of(region, 256 * KIB, 64);
    assert_int_equal(stats_of(region).reserved.peak, 1 * MIB);
    assert_int_equal(stats_of(region).blocks.current, 4);
}

static void c90_a_hundred_rounds_end_as_one_free_place(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .hint_bytes = 64 * KIB);
    void *blocks[8] = {NULL};
    for (size_t round = 0; round < 100; round++)
        for (size_t i = 0; i < 8; i++) {
            assert_int_equal(ebb_region_release(region, blocks[i]), 0);
            blocks[i] = block_of(region, 1025 + (round * 389 + i * 1021) % 6000, 64);
        }
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(ebb_region_release(region, blocks[i * 3 % 8]), 0);
    assert_int_equal(stats_of(region).reserved.peak, 64 * KIB);
    block_of(region, 64 * KIB, 64);
    assert_int_equal(stats_of(region).reserved.peak, 64 * KIB);
}

static void c91_fresh_reused_exhausted_over_budget_out_of_range(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 64 * KIB);
    assert_int_equal(ebb_region_close(region), 0);
    uint64_t total = pool_stats_of(stage->pool).reserved.total;
    region = OPEN(.pool = stage->pool, .hint_bytes = 64 * KIB);
    assert_int_equal(pool_stats_of(stage->pool).reserved.total, total);
    assert_int_equal(ebb_pool_set_reserved_limit(stage->pool, 64 * KIB), 0);
    assert_no_block(ebb_region_alloc(region, 64 * KIB + 1, 64), EBB_E_POOL_LIMIT);
    assert_text_names("bytes of pages asked, limit leaves");
    ebb_region limited = OPEN(.parent = region, .limit_bytes = 1000);
    assert_no_block(ebb_region_alloc(limited, 1001, 16), EBB_E_REGION_LIMIT);
    assert_no_block(ebb_region_alloc(region, SIZE_MAX, 16), EBB_E_SIZE);
    assert_int_equal(ebb_region_close(region), 0);
}

static void c92_trimming_after_everything_was_released_leaves_nothing(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 5; i++) {
        ebb_region region = OPEN(.pool = stage->pool);
        block_of(region, 3 * MIB, 64);
        ebb_region_close(region);
    }
    assert_true(ebb_pool_trim(stage->pool, 0) >= 3 * MIB);
    struct ebb_pool_stats stats = pool_stats_of(stage->pool);
    assert_int_equal(stats.reserved.current + stats.owned + stats.cached, 0);
}

static void c93_what_was_used_longest_ago_goes_first(void **state) {
    struct stage *stage = *state;
    ebb_region large = OPEN(.pool = stage->pool);
    char *block = block_of(large, 1 * MIB, 4096);
    ebb_region_close(large);
    ebb_region small = OPEN(.pool = stage->pool);
    char *recent = block_of(small, 64 * KIB, 4096);
    ebb_region_close(small);
    ebb_pool_trim(stage->pool, 128 * KIB);
    ebb_region again = OPEN(.pool = stage->pool, .hint_bytes = 64 * KIB);
    uint64_t total = pool_stats_of(stage->pool).reserved.total;
    assert_ptr_equal(block_of(again, 64 * KIB, 4096), recent); /* still there, and hot */
    assert_int_equal(pool_stats_of(stage->pool).reserved.total, total);
    assert_in_range((uintptr_t)recent, (uintptr_t)block, (uintptr_t)block + 1 * MIB);
    ebb_region_close(again);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        CASE(c71_an_empty_region_opens_and_closes_and_a_page_is_wholly_usable),
        CASE(c72_what_was_reserved_serves_without_more),
        CASE(c73_a_trimmed_pool_serves_again),
        CASE(c74_blocks_are_distinct_and_aligned_for_any_type),
        CASE(c75_an_oversized_block_is_aligned_and_ends_with_a_reset),
        CASE(c76_a_block_at_the_edge_of_the_lane_opens_no_window),
        CASE(c77_rounds_with_a_reset_reserve_the_same),
        CASE(c79_alignments_and_empty_blocks),
        CASE(c80_realloc_and_free_work),
        CASE(c81_a_measuring_region_gives_offsets),
        CASE(c83_zero_bytes_are_legal_and_wrong_alignments_are_not),
        CASE(c84_used_bytes_and_counts_follow),
        CASE(c85_large_blocks_lie_one_behind_the_other),
        CASE(c86_free_places_coalesce),
        CASE(c90_a_hundred_rounds_end_as_one_free_place),
        CASE(c91_fresh_reused_exhausted_over_budget_out_of_range),
        CASE(c92_trimming_after_everything_was_released_leaves_nothing),
        CASE(c93_what_was_used_longest_ago_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
