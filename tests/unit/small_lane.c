// SPDX-License-Identifier: Apache-2.0
/*
 * small_lane.c - blocks of up to 1 KiB, bumped in windows: every size and alignment at the
 * lane's edges, released places that are used again, and counters exact over many windows.
 */
#include "kit/test.h"

#include <stdlib.h>

/* Every block holds its pattern: nobody wrote into a neighbour. */
static void assert_patterns(void **blocks, const size_t *sizes, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_true(pattern_holds(blocks[i], sizes[i], (unsigned)sizes[i]));
}

static void every_size_has_a_place_of_its_own(void **state) {
    enum { COUNT = 1025 };
    struct stage *stage = *state;
    static void *blocks[COUNT];
    static size_t sizes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = i;
        blocks[i] = block_of(stage->root, i, 1);
        assert_int_equal(ebb_region_block_bytes(stage->root, blocks[i]), i);
    }
    assert_patterns(blocks, sizes, COUNT);
    assert_int_equal(stats_of(stage->root).small_blocks, COUNT);
    assert_int_equal(stats_of(stage->root).requested.current, 1024 * 1025 / 2);
}

static void the_largest_small_block_is_1024_bytes_at_64(void **state) {
    static const struct {
        size_t bytes, align;
        bool small;
    } cases[] = {
        {1023, 16, true}, {1024, 16, true},  {1025, 16, false}, {1023, 64, true},
        {1024, 64, true}, {1025, 64, false}, {0, 64, true},     {0, 128, false},
        {1, 32, true},    {1, 64, true},     {1, 128, false},   {1024, 128, false},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ebb_region_stats before = stats_of(stage->root);
        block_of(stage->root, cases[i].bytes, cases[i].align);
        struct ebb_region_stats after = stats_of(stage->root);
        assert_int_equal(after.small_blocks - before.small_blocks, cases[i].small);
        assert_int_equal(after.large_blocks - before.large_blocks, !cases[i].small);
    }
}

static void sizes_round_up_to_granules(void **state) {
    struct stage *stage = *state;
    for (size_t bytes = 0; bytes <= 1024; bytes++) {
        uint64_t before = stats_of(stage->root).used.current;
        void *block = block_of(stage->root, bytes, 1);
        uint64_t used = stats_of(stage->root).used.current - before;
        assert_int_equal(used, bytes ? (bytes + 15) / 16 * 16 : 16);
        assert_int_equal(ebb_region_release(stage->root, block), 0);
        assert_int_equal(stats_of(stage->root).used.current, before);
    }
}

static void every_alignment_up_to_64_holds_after_odd_sizes(void **state) {
    struct stage *stage = *state;
    for (size_t align = 1; align <= 64; align *= 2)
        for (size_t bytes = 1; bytes <= 200; bytes += 3) {
            block_of(stage->root, bytes, align);
            block_of(stage->root, 1, 1);
        }
}

static void empty_blocks_have_addresses_of_their_own(void **state) {
    struct stage *stage = *state;
    char *last = NULL;
    for (int i = 0; i < 1000; i++) {
        char *block = block_of(stage->root, 0, 1);
        assert_ptr_not_equal(block, last);
        assert_int_equal(ebb_region_block_bytes(stage->root, block), 0);
        last = block;
    }
    assert_int_equal(stats_of(stage->root).blocks.current, 1000);
    assert_int_equal(stats_of(stage->root).requested.current, 0);
    assert_int_equal(ebb_region_release(stage->root, last), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 999);
}

static void the_block_released_last_is_reused_first(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16);
    for (size_t bytes = 1; bytes <= 1024; bytes += 93) {
        void *block = block_of(stage->root, bytes, 16);
        assert_int_equal(ebb_region_release(stage->root, block), 0);
        assert_ptr_equal(block_of(stage->root, bytes, 16), block);
        stats_of(stage->root); /* counted by now, it leaves in another way */
        assert_int_equal(ebb_region_release(stage->root, block), 0);
        assert_ptr_equal(block_of(stage->root, bytes, 16), block);
    }
}

static void a_step_that_releases_what_it_made_stays_where_it_is(void **state) {
    struct stage *stage = *state;
    for (int round = 0; round < 3000; round++) {
        void *blocks[8];
        for (size_t i = 0; i < 8; i++)
            blocks[i] = block_of(stage->root, 64 + i * 32, 16);
        for (int i = 0; i < 8; i++)
            assert_int_equal(ebb_region_release(stage->root, blocks[(i * 3 + round) % 8]), 0);
    }
    assert_true(stats_of(stage->root).reserved.current <= 32 * KIB);
    assert_int_equal(stats_of(stage->root).blocks.total, 24000);
}

static void places_between_live_blocks_are_used_again(void **state) {
    enum { COUNT = 1024 };
    struct stage *stage = *state;
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = block_of(stage->root, 256, 16);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    for (size_t i = 0; i < COUNT; i++)
        if (i % 8)
            assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    for (size_t i = 0; i < COUNT / 2; i++)
        block_of(stage->root, 256, 16);
    assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    for (size_t i = 0; i < COUNT; i += 8)
        assert_true(pattern_holds(blocks[i], 256, 256));
}

static void windows_without_blocks_go_to_the_large_lane(void **state) {
    enum { COUNT = 4096 };
    struct stage *stage = *state;
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = block_of(stage->root, 512, 16);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    block_of(stage->root, 512 * COUNT / 2, 64);
    block_of(stage->root, 512 * COUNT / 3, 64);
    assert_int_equal(stats_of(stage->root).reserved.peak, reserved);
}

static void blocks_that_fill_a_window_exactly_continue_in_the_next(void **state) {
    static const size_t sizes[] = {16, 32, 64, 128, 256, 512, 1024};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ebb_region child = OPEN(.parent = stage->root);
        size_t count = 128 * KIB / sizes[i];
        static char *blocks[8192];
        for (size_t k = 0; k < count; k++)
            blocks[k] = block_of(child, sizes[i], 16);
        for (size_t k = 0; k < count; k++)
            assert_true(pattern_holds(blocks[k], sizes[i], (unsigned)sizes[i]));
        assert_int_equal(stats_of(child).used.current, count * sizes[i]);
        assert_true(stats_of(child).reserved.current <= 192 * KIB);
        ebb_check_pool(stage->pool);
        ebb_region_close(child);
    }
}

static void counters_stay_exact_over_a_hundred_thousand_blocks(void **state) {
    enum { COUNT = 100000 };
    struct stage *stage = *state;
    uint64_t requested = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        size_t bytes = i * 7919u % 1025;
        assert_non_null(ebb_region_alloc(stage->root, bytes, 16));
        requested += bytes;
    }
    struct ebb_region_stats stats = stats_of(stage->root);
    assert_int_equal(stats.blocks.current, COUNT);
    assert_int_equal(stats.blocks.peak, COUNT);
    assert_int_equal(stats.blocks.total, COUNT);
    assert_int_equal(stats.requested.current, requested);
    assert_int_equal(stats.requested.total, requested);
    assert_int_equal(pool_stats_of(stage->pool).requested.current, requested);
}

static void pool_counters_include_what_was_bumped_last(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 1; i <= 500; i++) {
        block_of(stage->root, 40, 16);
        struct ebb_pool_stats stats = pool_stats_of(stage->pool);
        assert_int_equal(stats.blocks.current, i);
        assert_int_equal(stats.requested.current, 40 * i);
        assert_int_equal(stats.used.current, 48 * i);
        assert_int_equal(stats.waste, stats.owned - stats.used.current);
    }
}

static void a_large_block_between_does_not_end_the_window(void **state) {
    struct stage *stage = *state;
    char *before = block_of(stage->root, 64, 16);
    block_of(stage->root, 10 * MIB, 64);
    char *after = block_of(stage->root, 64, 16);
    assert_ptr_equal(after, before + 64);
}

static void the_symbol_in_the_library_allocates_as_the_inline_path(void **state) {
    struct stage *stage = *state;
    void *(*volatile symbol)(ebb_region, size_t, size_t) = ebb_region_alloc;
    char *inline_block = block_of(stage->root, 100, 16);
    char *symbol_block = symbol(stage->root, 100, 16);
    assert_ptr_equal(symbol_block, inline_block + 112);
    assert_ptr_equal(ebb_region_alloc_slow(stage->root, 100, 16), symbol_block + 112);
    assert_int_equal(stats_of(stage->root).blocks.current, 3);
}

static void zeroed_blocks_are_zero_where_others_were(void **state) {
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1023, 1024, 1025, 5000, 100000};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *dirty = block_of(stage->root, sizes[i], 16);
        assert_int_equal(ebb_region_release(stage->root, dirty), 0);
        unsigned char *block = ebb_region_alloc_zeroed(stage->root, sizes[i], 16);
        assert_non_null(block);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(block[at], 0);
    }
}

static void arrays_have_room_for_all_their_elements(void **state) {
    struct stage *stage = *state;
    void *array = ebb_region_alloc_array(stage->root, 100, 10, 8);
    assert_int_equal(ebb_region_block_bytes(stage->root, array), 1000);
    array = ebb_region_alloc_array(stage->root, 1000, 100, 64);
    assert_int_equal(ebb_region_block_bytes(stage->root, array), 100000);
    array = ebb_region_alloc_array(stage->root, 0, SIZE_MAX, 64);
    assert_non_null(array);
    assert_int_equal(ebb_region_block_bytes(stage->root, array), 0);
    assert_no_block(ebb_region_alloc_array(stage->root, SIZE_MAX / 2, 3, 64), EBB_E_SIZE);
    assert_no_block(ebb_region_alloc_array(stage->root, (size_t)1 << 32, (size_t)1 << 32, 1),
                    EBB_E_SIZE);
    assert_int_equal(stats_of(stage->root).blocks.current, 3);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(every_size_has_a_place_of_its_own),
        STAGED(the_largest_small_block_is_1024_bytes_at_64),
        STAGED(sizes_round_up_to_granules),
        STAGED(every_alignment_up_to_64_holds_after_odd_sizes),
        STAGED(empty_blocks_have_addresses_of_their_own),
        STAGED(the_block_released_last_is_reused_first),
        STAGED(a_step_that_releases_what_it_made_stays_where_it_is),
        STAGED(places_between_live_blocks_are_used_again),
        STAGED(windows_without_blocks_go_to_the_large_lane),
        STAGED(blocks_that_fill_a_window_exactly_continue_in_the_next),
        STAGED(counters_stay_exact_over_a_hundred_thousand_blocks),
        STAGED(pool_counters_include_what_was_bumped_last),
        STAGED(a_large_block_between_does_not_end_the_window),
        STAGED(the_symbol_in_the_library_allocates_as_the_inline_path),
        STAGED(zeroed_blocks_are_zero_where_others_were),
        STAGED(arrays_have_room_for_all_their_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
