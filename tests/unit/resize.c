// SPDX-License-Identifier: Apache-2.0
/*
 * resize.c - blocks that grow and shrink where they are, in both lanes, at every edge.
 */
#include "kit/test.h"

/* Sizes before and after: address and the common contents stay, counters follow. */
static void assert_resizes(ebb_region region, void *block, size_t from, size_t to) {
    struct ebb_region_stats before = stats_of(region);
    assert_int_equal(ebb_region_resize(region, block, to), 0);
    struct ebb_region_stats after = stats_of(region);
    assert_true(pattern_holds(block, from < to ? from : to, (unsigned)from));
    assert_int_equal(ebb_region_block_bytes(region, block), to);
    assert_int_equal(after.requested.current, before.requested.current - from + to);
    assert_int_equal(after.blocks.current, before.blocks.current);
    assert_int_equal(after.blocks.total, before.blocks.total);
    pattern_fill(block, to, (unsigned)to);
}

static void assert_no_room(ebb_region region, void *block, size_t to) {
    struct ebb_region_stats before = stats_of(region);
    size_t bytes = ebb_region_block_bytes(region, block);
    assert_refused(ebb_region_resize(region, block, to), EBB_E_NO_ROOM);
    struct ebb_region_stats after = stats_of(region);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ebb_region_block_bytes(region, block), bytes);
}

static void the_last_small_block_grows_and_shrinks_by_single_bytes(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 10, 16);
    void *block = block_of(stage->root, 0, 16);
    for (size_t bytes = 0; bytes < 1500; bytes++) {
        assert_resizes(stage->root, block, bytes, bytes + 1);
        size_t used = 16 + (bytes + 16) / 16 * 16;
        assert_int_equal(stats_of(stage->root).used.current, used);
    }
    for (size_t bytes = 1500; bytes > 0; bytes -= 3)
        assert_resizes(stage->root, block, bytes, bytes - 3);
    assert_int_equal(stats_of(stage->root).used.current, 32);
    ebb_check_pool(stage->pool);
}

static void a_small_block_with_one_behind_it_only_shrinks(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 500, 16), *behind = block_of(stage->root, 8, 16);
    assert_resizes(stage->root, block, 500, 512); /* its last granule was half empty */
    assert_no_room(stage->root, block, 513);
    assert_resizes(stage->root, block, 512, 496);
    assert_resizes(stage->root, block, 496, 17);
    assert_resizes(stage->root, block, 17, 0);
    assert_true(pattern_holds(behind, 8, 8));
    ebb_check_pool(stage->pool);
}

static void the_end_of_a_shrunk_small_block_is_used_again(void **state) {
    enum { COUNT = 512 };
    struct stage *stage = *state;
    void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = block_of(stage->root, 1024, 16);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    for (int i = 0; i < COUNT; i++)
        assert_resizes(stage->root, blocks[i], 1024, 128);
    ebb_check_pool(stage->pool);
    for (int i = 0; i < COUNT; i++) { /* makes the lane look into its windows */
        if (i % 2 == 0)
            assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
        else
            pattern_fill(blocks[i], 128, 128);
    }
    for (int i = 0; i < COUNT; i++)
        block_of(stage->root, 512, 16);
    assert_true(stats_of(stage->root).reserved.current <= reserved + 32 * KIB);
    for (int i = 0; i < COUNT; i++)
        assert_true(i % 2 == 0 || pattern_holds(blocks[i], 128, 128));
}

static void a_small_block_grows_to_the_end_of_its_window_and_not_beyond(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 16, 16);
    size_t bytes = 16;
    while (ebb_region_resize(stage->root, block, bytes + 16) == 0)
        bytes += 16;
    assert_refused(ebb_last_error(), EBB_E_NO_ROOM);
    assert_int_equal(bytes, 4096); /* the first window, to its last byte */
    memset(block, 7, bytes);
    ebb_check_pool(stage->pool);
    assert_no_room(stage->root, block, bytes + 1);
    assert_no_room(stage->root, block, 1 * MIB);
    block_of(stage->root, 100, 16);
    assert_int_equal(((unsigned char *)block)[bytes - 1], 7);
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_int_equal(stats_of(stage->root).requested.current, 100);
}

/* Its size must fit an entry of the start map, beside the flag of what was released. */
static void a_small_block_has_at_most_16352_bytes(void **state) {
    struct stage *stage = *state;
    for (size_t bytes = 0; bytes < 512 * KIB; bytes += 1024)
        block_of(stage->root, 1024, 16);
    void *block = block_of(stage->root, 1000, 16); /* windows have room for it now, most of them */
    for (int i = 0; i < 1000 && ebb_region_resize(stage->root, block, 16 * KIB - 32) != 0; i++)
        block = block_of(stage->root, 1000, 16);
    assert_int_equal(ebb_region_block_bytes(stage->root, block), 16 * KIB - 32);
    assert_no_room(stage->root, block, 16 * KIB - 31);
    assert_text_names("16353");
    pattern_fill(block, 16 * KIB - 32, 7);
    ebb_check_pool(stage->pool);
    void *behind = block_of(stage->root, 1000, 16);
    assert_int_equal(ebb_region_resize(stage->root, block, 16 * KIB - 47), 0);
    assert_true(pattern_holds(block, 16 * KIB - 47, 7));
    assert_int_equal(ebb_region_release(stage->root, block), 0);
    assert_refused(ebb_region_release(stage->root, block), EBB_E_RELEASED);
    assert_true(pattern_holds(behind, 1000, 1000));
    ebb_check_pool(stage->pool);
}

static void a_large_block_grows_into_free_space_behind_it(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 4096, 64), *gap = block_of(stage->root, 8192, 64);
    block_of(stage->root, 2000, 64);
    assert_no_room(stage->root, block, 4097);
    assert_int_equal(ebb_region_release(stage->root, gap), 0);
    assert_no_room(stage->root, block, 4096 + 8192 + 1);
    assert_resizes(stage->root, block, 4096, 4097);
    assert_resizes(stage->root, block, 4097, 4096 + 8192);
    assert_no_room(stage->root, block, 4096 + 8192 + 1);
    assert_resizes(stage->root, block, 4096 + 8192, 5000);
    block_of(stage->root, 4096 + 8192 - 5056, 64);
    ebb_check_pool(stage->pool);
}

static void the_last_large_block_grows_into_the_free_end(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 2000, 64);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    assert_resizes(stage->root, block, 2000, reserved);
    assert_no_room(stage->root, block, reserved + 1);
    assert_resizes(stage->root, block, reserved, 3000);
    assert_resizes(stage->root, block, 3000, reserved - 64);
    assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    ebb_check_pool(stage->pool);
}

static void a_large_block_shrinks_to_its_least_and_gives_the_rest(void **state) {
    struct stage *stage = *state;
    char *block = block_of(stage->root, 64 * KIB, 64);
    block_of(stage->root, 2000, 64);
    assert_resizes(stage->root, block, 64 * KIB, 1025);
    assert_int_equal(stats_of(stage->root).used.current, 1088 + 2048);
    assert_ptr_equal(block_of(stage->root, 64 * KIB - 1088, 64), block + 1088);
    assert_resizes(stage->root, block, 1025, 1);
    assert_resizes(stage->root, block, 1, 0);
    assert_int_equal(ebb_region_block_bytes(stage->root, block), 0);
    ebb_check_pool(stage->pool);
}

static void resizing_to_the_same_size_changes_nothing(void **state) {
    static const size_t sizes[] = {0, 1, 16, 1000, 1024, 1025, 4096, 100001};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = block_of(stage->root, sizes[i], 16);
        block_of(stage->root, 16, 16);
        struct ebb_region_stats before = stats_of(stage->root);
        assert_int_equal(ebb_region_resize(stage->root, block, sizes[i]), 0);
        struct ebb_region_stats after = stats_of(stage->root);
        assert_memory_equal(&before, &after, sizeof before);
        assert_true(pattern_holds(block, sizes[i], (unsigned)sizes[i]));
    }
}

static void totals_grow_by_increases_only(void **state) {
    static const size_t sizes[] = {100, 5000};
    struct stage *stage = *state;
    for (size_t i = 0; i < 2; i++) {
        void *block = block_of(stage->root, sizes[i], 16);
        struct ebb_region_stats before = stats_of(stage->root);
        assert_resizes(stage->root, block, sizes[i], sizes[i] / 2);
        assert_int_equal(stats_of(stage->root).requested.total, before.requested.total);
        assert_resizes(stage->root, block, sizes[i] / 2, sizes[i]);
        struct ebb_region_stats after = stats_of(stage->root);
        assert_int_equal(after.requested.total, before.requested.total + sizes[i] / 2);
        assert_int_equal(after.requested.peak, before.requested.peak);
        assert_int_equal(after.blocks.total, before.blocks.total);
        assert_int_equal(after.used.peak, before.used.peak);
    }
}

static void impossible_sizes_are_refused(void **state) {
    struct stage *stage = *state;
    void *small = block_of(stage->root, 100, 16), *large = block_of(stage->root, 5000, 64);
    struct ebb_region_stats before = stats_of(stage->root);
    for (size_t below = 0; below < 100; below++) {
        assert_true(ebb_region_resize(stage->root, small, SIZE_MAX - below) < 0);
        assert_refused(ebb_region_resize(stage->root, large, SIZE_MAX - below), EBB_E_SIZE);
    }
    assert_refused(ebb_region_resize(stage->root, small, (size_t)1 << 62), EBB_E_NO_ROOM);
    assert_refused(ebb_region_resize(stage->root, large, (size_t)1 << 62), EBB_E_NO_ROOM);
    struct ebb_region_stats after = stats_of(stage->root);
    assert_memory_equal(&before, &after, sizeof before);
    assert_true(pattern_holds(small, 100, 100) && pattern_holds(large, 5000, 5000));
}

static void growing_counts_against_limits(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 4096);
    void *large = block_of(region, 2048, 64), *small = block_of(region, 16, 16);
    assert_int_equal(ebb_region_release(region, small), 0);
    small = block_of(region, 16, 16);
    assert_refused(ebb_region_resize(region, small, 2049), EBB_E_REGION_LIMIT);
    assert_int_equal(stats_of(region).subtree_used, 2064);
    assert_resizes(region, small, 16, 2048);
    assert_resizes(region, small, 2048, 16);
    assert_resizes(region, small, 16, 1000);
    assert_int_equal(stats_of(region).subtree_used, 2048 + 1008);
    assert_resizes(region, large, 2048, 1500);
    assert_int_equal(stats_of(region).subtree_used, 1536 + 1008);
    ebb_check_pool(stage->pool);
}

static void a_large_block_grows_only_up_to_the_limit(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 4096);
    void *block = block_of(region, 2048, 64);
    assert_refused(ebb_region_resize(region, block, 4097), EBB_E_REGION_LIMIT);
    assert_int_equal(stats_of(region).subtree_used, 2048);
    assert_resizes(region, block, 2048, 4096);
    assert_int_equal(ebb_region_resize(region, block, 1024), 0);
    assert_int_equal(stats_of(region).subtree_used, 1024);
}

static void a_block_grows_into_what_others_released(void **state) {
    struct stage *stage = *state;
    for (size_t bytes = 512; bytes <= 8192; bytes *= 4) {
        ebb_region limited = OPEN(.parent = stage->root, .limit_bytes = 2 * bytes);
        ebb_region regions[] = {stage->root, limited};
        for (int i = 0; i < 2; i++) {
            void *block = block_of(regions[i], bytes, 64);
            void *behind = block_of(regions[i], bytes, 64);
            assert_int_equal(ebb_region_release_remote(regions[i], behind), 0);
            assert_int_equal(ebb_region_resize(regions[i], block, 2 * bytes), 0);
            assert_true(pattern_holds(block, bytes, (unsigned)bytes));
            assert_int_equal(ebb_region_release(regions[i], block), 0);
        }
        assert_int_equal(ebb_region_close(limited), 0);
        assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
    }
}

/* A survivor stays where it is until its step closes, right behind another block. */
static void a_block_grows_into_a_survivor_that_others_released(void **state) {
    struct stage *stage = *state;
    ebb_region step = OPEN(.parent = stage->root);
    char *block = block_of(step, 64 * KIB, 64), *behind = block_of(step, 64 * KIB, 64);
    struct ebb_survivor survivor = survivor_of(behind, EBB_PROMOTE_RELINK);
    assert_ptr_equal(behind, block + 64 * KIB);
    assert_int_equal(ebb_promote(step, stage->root, &survivor, 1, NULL), 0);
    assert_int_equal(survivor.mode, EBB_PROMOTE_RELINK);
    assert_no_room(step, block, 100000);
    assert_int_equal(ebb_region_release_remote(stage->root, behind), 0);
    assert_resizes(step, block, 64 * KIB, 100000);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(ebb_region_close(step), 0);
}

/* What survived the steps before is born in the parent, right behind a block of that. */
static void *born_in(ebb_step step) {
    block_of(step.region, 3000, 64);
    void *born = block_of(step.region, 5000, 64);
    block_of(step.region, 2000, 64);
    return born;
}

static void a_block_grows_into_what_was_born_behind_it_and_others_released(void **state) {
    struct stage *stage = *state;
    ebb_region run = OPEN(.pool = stage->pool, .hint_bytes = 256 * KIB);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int i = 0; i < 4; i++) {
        char *block = block_of(run, 64 * KIB, 64);
        ebb_step step = ebb_step_begin_under(site, run, 0);
        struct ebb_survivor kept = survivor_of(born_in(step), EBB_PROMOTE_COPY);
        if (i < 3) {
            assert_int_equal(ebb_step_end_keeping(step, run, &kept, 1, NULL, NULL), 0);
            assert_int_equal(ebb_region_release(run, kept.block), 0);
        } else {
            assert_ptr_equal(kept.block, block + 64 * KIB);
            assert_no_room(run, block, 65 * KIB);
            assert_int_equal(ebb_region_release_remote(step.region, kept.block), 0);
            assert_int_equal(ebb_region_resize(run, block, 65 * KIB), 0);
            assert_int_equal(stats_of(run).requested.current, 65 * KIB);
            assert_int_equal(ebb_step_end(step), 0);
        }
        assert_int_equal(ebb_region_release(run, block), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(run), 0);
}

static void what_was_born_grows_into_a_block_behind_it_that_others_released(void **state) {
    struct stage *stage = *state;
    ebb_region run = OPEN(.pool = stage->pool, .hint_bytes = 256 * KIB);
    ebb_site *site = ebb_site_create(EBB_SITE_OPTIONS(.pool = stage->pool));
    for (int i = 0; i < 4; i++) {
        ebb_step step = ebb_step_begin_under(site, run, 0);
        struct ebb_survivor kept = survivor_of(born_in(step), EBB_PROMOTE_COPY);
        char *behind = block_of(run, 64 * KIB, 64);
        if (i == 3) {
            assert_ptr_equal(behind, (char *)kept.block + 5056);
            assert_no_room(step.region, kept.block, 6000);
            assert_int_equal(ebb_region_release_remote(run, behind), 0);
            assert_int_equal(ebb_region_resize(step.region, kept.block, 6000), 0);
            assert_int_equal(ebb_region_block_bytes(step.region, kept.block), 6000);
        } else {
            assert_int_equal(ebb_region_release(run, behind), 0);
        }
        assert_int_equal(ebb_step_end_keeping(step, run, &kept, 1, NULL, NULL), 0);
        assert_int_equal(ebb_region_release(run, kept.block), 0);
    }
    assert_int_equal(ebb_site_destroy(site), 0);
    assert_int_equal(ebb_region_close(run), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(the_last_small_block_grows_and_shrinks_by_single_bytes),
        STAGED(a_small_block_with_one_behind_it_only_shrinks),
        STAGED(the_end_of_a_shrunk_small_block_is_used_again),
        STAGED(a_small_block_grows_to_the_end_of_its_window_and_not_beyond),
        STAGED(a_small_block_has_at_most_16352_bytes),
        STAGED(a_large_block_grows_into_free_space_behind_it),
        STAGED(the_last_large_block_grows_into_the_free_end),
        STAGED(a_large_block_shrinks_to_its_least_and_gives_the_rest),
        STAGED(resizing_to_the_same_size_changes_nothing),
        STAGED(totals_grow_by_increases_only),
        STAGED(impossible_sizes_are_refused),
        STAGED(growing_counts_against_limits),
        STAGED(a_large_block_grows_only_up_to_the_limit),
        STAGED(a_block_grows_into_what_others_released),
        STAGED(a_block_grows_into_a_survivor_that_others_released),
        STAGED(a_block_grows_into_what_was_born_behind_it_and_others_released),
        STAGED(what_was_born_grows_into_a_block_behind_it_that_others_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
