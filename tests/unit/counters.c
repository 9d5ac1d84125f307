// SPDX-License-Identifier: Apache-2.0
/*
 * counters.c - current, peak and total of every quantity; what is added up over regions, pools
 * and the process agrees; and reading never changes anything.
 */
#include "kit/test.h"

static void current_peak_and_total_follow_every_block(void **state) {
    struct stage *stage = *state;
    void *blocks[20];
    for (unsigned i = 0; i < 20; i++) {
        blocks[i] = block_of(stage->root, i < 10 ? 100 : 10000, 16);
        assert_int_equal(stats_of(stage->root).blocks.current, i + 1);
    }
    for (unsigned i = 0; i < 20; i += 2)
        assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    struct ebb_region_stats stats = stats_of(stage->root);
    assert_int_equal(stats.blocks.current, 10);
    assert_int_equal(stats.blocks.peak, 20);
    assert_int_equal(stats.blocks.total, 20);
    assert_int_equal(stats.requested.current, 50500);
    assert_int_equal(stats.requested.peak, 101000);
    assert_int_equal(stats.requested.total, 101000);
    assert_int_equal(stats.small_blocks, 10);
    assert_int_equal(stats.large_blocks, 10);
    for (unsigned i = 0; i < 5; i++)
        block_of(stage->root, 100, 16);
    stats = stats_of(stage->root);
    assert_int_equal(stats.blocks.peak, 20);
    assert_int_equal(stats.blocks.total, 25);
    assert_int_equal(stats.requested.peak, 101000);
}

static void a_peak_inside_one_window_is_seen(void **state) {
    struct stage *stage = *state;
    void *blocks[30];
    for (int i = 0; i < 30; i++)
        blocks[i] = ebb_region_alloc(stage->root, 40, 16);
    for (int i = 29; i >= 0; i--)
        assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    assert_int_equal(stats_of(stage->root).blocks.peak, 30);
    assert_int_equal(stats_of(stage->root).requested.peak, 1200);
    assert_int_equal(stats_of(stage->root).used.peak, 30 * 48);
}

static void reading_changes_nothing(void **state) {
    struct stage *stage = *state;
    for (size_t i = 0; i < 500; i++) {
        block_of(stage->root, i * 19 % 3000, 16);
        struct ebb_region_stats first = stats_of(stage->root), second = stats_of(stage->root);
        assert_memory_equal(&first, &second, sizeof first);
        struct ebb_pool_stats a = pool_stats_of(stage->pool), b = pool_stats_of(stage->pool);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

/* Two blocks of a granule with three granules of padding between them come and go. */
static void padding_counts_until_its_place_is_used_but_where_all_is_watched(void **state) {
    struct stage *stage = *state;
    for (int sites = 0; sites < 2; sites++) {
        size_t padding = sites ? 0 : 48;
        ebb_region region = OPEN(.parent = stage->root, .sites = sites);
        void *first = block_of(region, 16, 16), *second = block_of(region, 16, 64);
        assert_int_equal(stats_of(region).used.current, 32 + padding);
        assert_int_equal(ebb_region_release(region, first), 0);
        assert_int_equal(ebb_region_release(region, second), 0);
        struct ebb_region_stats stats = stats_of(region);
        assert_int_equal(stats.blocks.current, 0);
        assert_int_equal(stats.used.current, padding);
        assert_int_equal(stats.waste, stats.reserved.current - padding);
        assert_int_equal(ebb_region_close(region), 0);
    }
}

static void used_and_waste_are_what_is_reserved(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    void *blocks[100];
    for (size_t i = 0; i < 100; i++)
        blocks[i] = block_of(i % 2 ? child : stage->root, i * 177 % 20000, 16);
    for (size_t i = 0; i < 100; i += 3)
        assert_int_equal(ebb_region_release(i % 2 ? child : stage->root, blocks[i]), 0);
    struct ebb_region_stats root = stats_of(stage->root), below = stats_of(child);
    struct ebb_pool_stats pool = pool_stats_of(stage->pool);
    assert_int_equal(root.waste, root.reserved.current - root.used.current);
    assert_int_equal(below.waste, below.reserved.current - below.used.current);
    assert_int_equal(pool.owned, root.reserved.current + below.reserved.current);
    assert_int_equal(pool.used.current, root.used.current + below.used.current);
    assert_int_equal(pool.waste, root.waste + below.waste);
    assert_int_equal(pool.reserved.current, pool.owned + pool.cached);
    assert_int_equal(pool.blocks.current, root.blocks.current + below.blocks.current);
    assert_int_equal(pool.requested.current, root.requested.current + below.requested.current);
}

static void totals_of_a_pool_outlive_its_regions(void **state) {
    struct stage *stage = *state;
    for (unsigned round = 1; round <= 10; round++) {
        ebb_region child = OPEN(.parent = stage->root);
        for (int i = 0; i < 50; i++)
            block_of(child, 100, 16);
        block_of(child, 5000, 64);
        ebb_region_close(child);
        struct ebb_pool_stats stats = pool_stats_of(stage->pool);
        assert_int_equal(stats.blocks.current, 0);
        assert_int_equal(stats.requested.current, 0);
        assert_int_equal(stats.blocks.total, 51 * round);
        assert_int_equal(stats.requested.total, 10000 * round);
        assert_true(stats.blocks.peak >= 51);
    }
}

static void assert_peaks(const struct stage *stage, uint64_t blocks, uint64_t requested) {
    struct ebb_pool_stats stats = pool_stats_of(stage->pool);
    assert_int_equal(stats.blocks.peak, blocks);
    assert_int_equal(stats.requested.peak, requested);
    assert_in_range(stats.used.peak, requested, requested + blocks * 64);
    assert_true(stats.used.peak >= stats.used.current);
}

static void a_block_comes_and_goes(ebb_region region) {
    assert_int_equal(ebb_region_release(region, block_of(region, 100000, 64)), 0);
}

static void peaks_of_a_pool_are_no_sums_of_what_was_at_other_times(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root), other = OPEN(.pool = stage->pool);
    a_block_comes_and_goes(child);
    a_block_comes_and_goes(other);
    a_block_comes_and_goes(stage->root);
    assert_peaks(stage, 1, 100000);
    void *block = block_of(stage->root, 100000, 64);
    assert_int_equal(ebb_region_close(child), 0);
    assert_peaks(stage, 1, 100000);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_int_equal(ebb_region_close(other), 0);
    assert_peaks(stage, 1, 100000);
}

static void peaks_of_a_pool_have_what_is_above_a_region_that_closes(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root), below = OPEN(.parent = child);
    void *block = block_of(stage->root, 100, 16);
    block_of(child, 1000, 16);
    block_of(below, 10000, 64);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_peaks(stage, 3, 11100);
}

/* Else who reads while others allocate could leave a peak that never was. */
static void a_sum_that_was_read_is_not_remembered(void **state) {
    struct stage *stage = *state;
    ebb_region other = OPEN(.pool = stage->pool);
    void *block = block_of(stage->root, 1000, 16);
    block_of(other, 5000, 64);
    assert_peaks(stage, 2, 6000); /* of both together: that is seen now */
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_peaks(stage, 1, 5000);
    assert_int_equal(ebb_region_close(other), 0);
    assert_peaks(stage, 1, 5000);
}

static void live_totals_do_not_move_when_a_block_is_promoted(void **state) {
    static const int modes[] = {EBB_PROMOTE_COPY, EBB_PROMOTE_RELINK};
    struct stage *stage = *state;
    for (int i = 0; i < 2; i++) {
        ebb_region child = OPEN(.parent = stage->root);
        void *block = block_of(child, 10000, 4096);
        struct ebb_pool_stats before = pool_stats_of(stage->pool);
        struct ebb_survivor survivor = survivor_of(block, modes[i]);
        assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, NULL, NULL), 0);
        struct ebb_pool_stats after = pool_stats_of(stage->pool);
        assert_int_equal(after.blocks.current, before.blocks.current);
        assert_int_equal(after.requested.current, before.requested.current);
        assert_int_equal(after.used.current, before.used.current);
        assert_int_equal(ebb_region_release(stage->root, survivor.block), 0);
    }
}

static void pinned_bytes_are_the_pages_around_survivors(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    block_of(child, 100, 16);
    void *block = block_of(child, 10000, 4096);
    struct ebb_survivor survivor = survivor_of(block, EBB_PROMOTE_RELINK);
    assert_int_equal(ebb_close_keeping(child, stage->root, &survivor, 1, NULL, NULL), 0);
    struct ebb_region_stats stats = stats_of(stage->root);
    assert_int_equal(stats.reserved.current, 3 * PAGE);
    assert_int_equal(stats.used.current, 10048);
    assert_int_equal(stats.pinned, 3 * PAGE - 10048);
    assert_int_equal(stats.waste, stats.pinned);
    assert_int_equal(pool_stats_of(stage->pool).pinned, stats.pinned);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    stats = stats_of(stage->root);
    assert_int_equal(stats.pinned + stats.reserved.current + stats.waste, 0);
}

static void reserved_totals_count_every_page_taken(void **state) {
    struct stage *stage = *state;
    uint64_t total = 0;
    for (int round = 0; round < 5; round++) {
        block_of(stage->root, 200 * KIB, 64);
        total += stats_of(stage->root).reserved.current;
        assert_int_equal(stats_of(stage->root).reserved.total, total);
        assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(current_peak_and_total_follow_every_block),
        STAGED(a_peak_inside_one_window_is_seen),
        STAGED(reading_changes_nothing),
        STAGED(padding_counts_until_its_place_is_used_but_where_all_is_watched),
        STAGED(used_and_waste_are_what_is_reserved),
        STAGED(totals_of_a_pool_outlive_its_regions),
        STAGED(peaks_of_a_pool_are_no_sums_of_what_was_at_other_times),
        STAGED(peaks_of_a_pool_have_what_is_above_a_region_that_closes),
        STAGED(a_sum_that_was_read_is_not_remembered),
        STAGED(live_totals_do_not_move_when_a_block_is_promoted),
        STAGED(pinned_bytes_are_the_pages_around_survivors),
        STAGED(reserved_totals_count_every_page_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
