// SPDX-License-Identifier: Apache-2.0
/*
 * large_lane.c - blocks above 1 KiB: every size rule at its edges, best fit with split and merge,
 * places reused at once, growth that is capped.
 */
#include "kit/test.h"

static void sizes_around_every_rounding_step_stay_apart(void **state) {
    static const size_t edges[] = {1024, 1088, 2048, 4096, 8192, 65536, 1 << 20, 2 << 20};
    struct stage *stage = *state;
    void *blocks[8 * 5];
    size_t sizes[8 * 5], count = 0;
    for (size_t i = 0; i < 8; i++)
        for (size_t around = 0; around < 5; around++, count++) {
            sizes[count] = edges[i] + around - 2;
            blocks[count] = block_of(stage->root, sizes[count], 128);
            assert_int_equal(ebb_region_block_bytes(stage->root, blocks[count]), sizes[count]);
        }
    for (size_t i = 0; i < count; i++)
        assert_true(pattern_holds(blocks[i], sizes[i], (unsigned)sizes[i]));
    assert_int_equal(stats_of(stage->root).large_blocks, count);
}

static void sizes_round_up_to_64_and_at_least_1024(void **state) {
    struct stage *stage = *state;
    for (size_t bytes = 0; bytes <= 5000; bytes += bytes < 1000 ? 97 : 1) {
        uint64_t before = stats_of(stage->root).used.current;
        void *block = block_of(stage->root, bytes, 128);
        size_t expected = bytes <= 1024 ? 1024 : (bytes + 63) / 64 * 64;
        assert_int_equal(stats_of(stage->root).used.current - before, expected);
        assert_int_equal(ebb_region_release(stage->root, block), 0);
    }
}

static void every_alignment_up_to_2_mib_is_kept(void **state) {
    struct stage *stage = *state;
    for (size_t align = 1; align <= EBB_ALIGN_MAX; align *= 2) {
        block_of(stage->root, 1, align);
        block_of(stage->root, 1025, align);
        block_of(stage->root, 5000, align);
        block_of(stage->root, 1100, 64); /* so that the next does not lie right by chance */
    }
    ebb_check_pool(stage->pool);
}

static void alignments_beyond_2_mib_are_refused(void **state) {
    struct stage *stage = *state;
    assert_no_block(ebb_region_alloc(stage->root, 16, EBB_ALIGN_MAX * 2), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(stage->root, 16, EBB_ALIGN_MAX + 1), EBB_E_ALIGNMENT);
    assert_no_block(ebb_region_alloc(stage->root, 16, EBB_ALIGN_MAX - 1), EBB_E_ALIGNMENT);
    assert_non_null(ebb_region_alloc(stage->root, 16, EBB_ALIGN_MAX));
}

/* The pages begin anywhere, and another region lies where the run would grow. */
static void a_wide_alignment_has_room_in_pages_that_others_left(void **state) {
    struct stage *stage = *state;
    for (size_t align = 2 * PAGE; align <= EBB_ALIGN_MAX; align *= 2) {
        ebb_region before = OPEN(.pool = stage->pool);
        block_of(before, 8 * MIB, 64);
        assert_int_equal(ebb_region_close(before), 0);
        ebb_region region = OPEN(.pool = stage->pool), other = OPEN(.pool = stage->pool);
        char *first = block_of(region, 5000, 64), *behind = block_of(other, 5000, 64);
        assert_true(behind > first && behind < first + 8 * MIB);
        char *wide = block_of(region, 100 * KIB, align);
        assert_true(wide > behind && (uintptr_t)wide % align == 0);
        assert_int_equal(stats_of(region).runs, 2);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_close(region), 0);
        assert_int_equal(ebb_region_close(other), 0);
    }
}

static void the_place_of_a_released_block_is_used_at_once(void **state) {
    static const size_t sizes[] = {1025, 2048, 4096, 5000, 65536, 1000000};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = block_of(stage->root, sizes[i], 64);
        block_of(stage->root, 2000, 64);
        uint64_t reserved = stats_of(stage->root).reserved.current;
        assert_int_equal(ebb_region_release(stage->root, block), 0);
        assert_ptr_equal(block_of(stage->root, sizes[i], 64), block);
        assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    }
}

static void the_smallest_place_that_fits_is_taken(void **state) {
    struct stage *stage = *state;
    char *gaps[4];
    static const size_t sizes[4] = {8192, 2048, 4096, 16384};
    for (int i = 0; i < 4; i++) {
        gaps[i] = block_of(stage->root, sizes[i], 64);
        block_of(stage->root, 1088, 64);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(ebb_region_release(stage->root, gaps[i]), 0);
    assert_ptr_equal(block_of(stage->root, 4096, 64), gaps[2]);
    assert_ptr_equal(block_of(stage->root, 1536, 64), gaps[1]);
    assert_ptr_equal(block_of(stage->root, 4097, 64), gaps[0]);
    assert_ptr_equal(block_of(stage->root, 8193, 64), gaps[3]);
}

static void the_rest_of_a_split_place_is_used_too(void **state) {
    struct stage *stage = *state;
    char *gap = block_of(stage->root, 64 * KIB, 64);
    block_of(stage->root, 2000, 64);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    assert_int_equal(ebb_region_release(stage->root, gap), 0);
    for (size_t i = 0; i < 16; i++)
        assert_ptr_equal(block_of(stage->root, 4096, 64), gap + i * 4096);
    assert_int_equal(stats_of(stage->root).reserved.current, reserved);
}

/* What is left of 8 KiB at the end, and a gap of 64; the region is long. */
static char *room_at_the_end(ebb_region region, char **gap) {
    block_of(region, 200 * KIB, 64);
    *gap = block_of(region, 64 * KIB, 64);
    block_of(region, 2000, 64);
    char *last = block_of(region, 8 * KIB, 64);
    assert_int_equal(ebb_region_release(region, last), 0);
    assert_int_equal(ebb_region_release(region, *gap), 0);
    return last;
}

static void small_blocks_leave_gaps_whole_where_the_end_was_used(void **state) {
    struct stage *stage = *state;
    char *gap, *last = room_at_the_end(stage->root, &gap);
    assert_ptr_equal(block_of(stage->root, 4096, 128), last);
    assert_ptr_equal(block_of(stage->root, 2048, 64), last + 4096);
    assert_ptr_equal(block_of(stage->root, 3072, 64), gap); /* more than is left there */
    assert_int_equal(ebb_region_release(stage->root, last), 0);
    assert_ptr_equal(block_of(stage->root, 4096, 64), last);
}

static void a_block_that_is_not_small_takes_the_gap(void **state) {
    struct stage *stage = *state;
    char *gap, *last = room_at_the_end(stage->root, &gap);
    assert_ptr_equal(block_of(stage->root, 5 * KIB, 64), gap);
    assert_ptr_equal(block_of(stage->root, 4096, 64), last);
}

/* What lies there may outlive what is at the end. */
static void where_blocks_outlive_steps_gaps_come_first(void **state) {
    struct stage *stage = *state;
    char *gap;
    assert_int_equal(ebb_region_close(OPEN(.parent = stage->root)), 0);
    (void)room_at_the_end(stage->root, &gap);
    assert_ptr_equal(block_of(stage->root, 4096, 64), gap);
}

static void places_merge_with_both_neighbours(void **state) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct stage *stage = *state;
    for (int order = 0; order < 6; order++) {
        char *blocks[3];
        for (int i = 0; i < 3; i++)
            blocks[i] = block_of(stage->root, 20 * KIB, 64);
        block_of(stage->root, 2000, 64);
        for (int i = 0; i < 3; i++)
            assert_int_equal(ebb_region_release(stage->root, blocks[orders[order][i]]), 0);
        ebb_check_pool(stage->pool);
        assert_ptr_equal(block_of(stage->root, 60 * KIB, 64), blocks[0]);
    }
}

static void places_with_a_high_alignment_leave_what_is_in_front_usable(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 1088, 64);
    char *aligned = block_of(stage->root, 4096, 64 * KIB);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    char *front = block_of(stage->root, 16 * KIB, 64);
    assert_true(front < aligned);
    assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    ebb_check_pool(stage->pool);
}

static void releasing_everything_leaves_one_place(void **state) {
    enum { COUNT = 300 };
    struct stage *stage = *state;
    void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = block_of(stage->root, 1100 + i * 64 % 5000, 64);
    uint64_t reserved = stats_of(stage->root).reserved.current;
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(ebb_region_release(stage->root, blocks[i * 7 % COUNT]), 0);
    assert_int_equal(stats_of(stage->root).used.current, 0);
    block_of(stage->root, reserved, 64);
    assert_int_equal(stats_of(stage->root).reserved.peak, reserved);
}

static void growing_by_a_little_reserves_at_most_a_mib_more(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 64 * MIB, 64);
    uint64_t before = stats_of(stage->root).reserved.current;
    while (stats_of(stage->root).reserved.current == before)
        assert_non_null(ebb_region_alloc(stage->root, 4096, 64));
    assert_true(stats_of(stage->root).reserved.current - before <= 1 * MIB);
}

static void a_block_larger_than_anything_before_reserves_little_more(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16);
    block_of(stage->root, 50 * MIB, 64);
    assert_true(stats_of(stage->root).reserved.current <= 50 * MIB + 64 * KIB);
}

static void refused_and_rewound_blocks_never_enlarge_growth(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 200; i++) {
        ebb_mark mark = ebb_region_mark(stage->root);
        block_of(stage->root, 100 * KIB, 64);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        assert_no_block(ebb_region_alloc(stage->root, (size_t)1 << 50, 64), EBB_E_MEMORY);
    }
    assert_true(stats_of(stage->root).reserved.current <= 128 * KIB);
}

static void alloc_of_huge_size_does_not_wrap(void **state) {
    struct stage *stage = *state;
    struct ebb_region_stats before = stats_of(stage->root);
    for (size_t below = 0; below < 200; below++) {
        assert_no_block(ebb_region_alloc(stage->root, SIZE_MAX - below, 16), EBB_E_SIZE);
        assert_no_block(ebb_region_alloc(stage->root, SIZE_MAX - below, EBB_ALIGN_MAX), EBB_E_SIZE);
    }
    assert_no_block(ebb_region_alloc(stage->root, (size_t)PTRDIFF_MAX + 1, 1), EBB_E_SIZE);
    assert_no_block(ebb_region_alloc(stage->root, (size_t)PTRDIFF_MAX, 1), EBB_E_SIZE);
    for (unsigned bit = 44; bit < 63; bit++)
        for (size_t align = 1; align <= EBB_ALIGN_MAX; align *= 8)
            assert_no_block(ebb_region_alloc(stage->root, (size_t)1 << bit, align), EBB_E_MEMORY);
    struct ebb_region_stats after = stats_of(stage->root);
    assert_memory_equal(&before, &after, sizeof before);
}

static void a_run_that_is_wholly_free_goes_back_to_the_pool(void **state) {
    struct stage *stage = *state;
    ebb_region warm = OPEN(.pool = stage->pool);
    block_of(warm, 4 * MIB, 64);
    ebb_region_close(warm);
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 1 * MIB);
    ebb_region behind = OPEN(.pool = stage->pool, .hint_bytes = 1 * MIB);
    void *first = block_of(region, 1 * MIB, 64), *second = block_of(region, 1 * MIB, 64);
    assert_int_equal(stats_of(region).runs, 2); /* the other region was in the way */
    uint64_t reserved = stats_of(region).reserved.current;
    assert_int_equal(ebb_region_release(region, first), 0);
    assert_int_equal(stats_of(region).runs, 1);
    assert_int_equal(stats_of(region).reserved.current, reserved - 1 * MIB);
    assert_int_equal(ebb_region_release(region, second), 0);
    assert_int_equal(stats_of(region).runs, 1); /* the run that grows stays */
    ebb_region_close(region);
    ebb_region_close(behind);
}

/* What was released last waits, unmerged, for a block of its size; nobody may notice. */

static void the_place_released_last_merges_before_another_size_is_placed(void **state) {
    struct stage *stage = *state;
    for (int first = 0; first < 2; first++) {
        char *gap[2];
        block_of(stage->root, 2000, 64);
        gap[0] = block_of(stage->root, 4096, 64);
        gap[1] = block_of(stage->root, 8192, 64);
        block_of(stage->root, 2000, 64);
        uint64_t reserved = stats_of(stage->root).reserved.current;
        assert_int_equal(ebb_region_release(stage->root, gap[first]), 0);
        assert_int_equal(ebb_region_release(stage->root, gap[!first]), 0);
        assert_ptr_equal(block_of(stage->root, 12288, 64), gap[0]);
        assert_int_equal(stats_of(stage->root).reserved.current, reserved);
        ebb_check_pool(stage->pool);
    }
}

static void the_place_released_last_is_not_taken_for_a_wider_alignment(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 1088, 4096);
    char *gap = block_of(stage->root, 2048, 64);
    block_of(stage->root, 2000, 64);
    assert_true((uintptr_t)gap % 4096 != 0);
    assert_int_equal(ebb_region_release(stage->root, gap), 0);
    assert_true((uintptr_t)block_of(stage->root, 2048, 4096) % 4096 == 0);
    assert_ptr_equal(block_of(stage->root, 2048, 64), gap);
}

static void a_block_grows_into_the_place_released_last(void **state) {
    struct stage *stage = *state;
    char *block = block_of(stage->root, 4096, 64), *gap = block_of(stage->root, 4096, 64);
    block_of(stage->root, 2000, 64);
    assert_int_equal(ebb_region_release(stage->root, gap), 0);
    assert_int_equal(ebb_region_resize(stage->root, block, 8192), 0);
    assert_refused(ebb_region_resize(stage->root, block, 8193), EBB_E_NO_ROOM);
    ebb_check_pool(stage->pool);
}

static void the_place_released_last_is_known_as_released(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 2000, 64);
    char *gap = block_of(stage->root, 4096, 64);
    block_of(stage->root, 2000, 64);
    assert_int_equal(ebb_region_release(stage->root, gap), 0);
    assert_refused(ebb_region_release(stage->root, gap), EBB_E_RELEASED);
    assert_refused(ebb_region_release(stage->root, gap + 64), EBB_E_RELEASED);
    assert_refused(ebb_region_resize(stage->root, gap, 2000), EBB_E_RELEASED);
    assert_ptr_equal(block_of(stage->root, 4090, 64), gap); /* the same, rounded */
    assert_int_equal(ebb_region_block_bytes(stage->root, gap), 4090);
}

/* The last but one of a run leaves by the parent's hand, the last lies loose beside it. */
static void the_place_released_last_does_not_keep_its_run(void **state) {
    struct stage *stage = *state;
    ebb_region warm = OPEN(.pool = stage->pool);
    block_of(warm, 4 * MIB, 64);
    ebb_region_close(warm);
    ebb_region region = OPEN(.parent = stage->root, .hint_bytes = 1 * MIB);
    ebb_region behind = OPEN(.pool = stage->pool, .hint_bytes = 1 * MIB);
    struct ebb_survivor kept = {.block = block_of(region, 512 * KIB, 64),
                                .mode = EBB_PROMOTE_RELINK};
    void *last = block_of(region, 512 * KIB, 64);
    block_of(region, 1 * MIB, 64);
    assert_int_equal(stats_of(region).runs, 2);
    assert_int_equal(ebb_promote(region, stage->root, &kept, 1, NULL), 0);
    assert_int_equal(ebb_region_release(region, last), 0);
    assert_int_equal(stats_of(region).runs, 2);
    assert_int_equal(ebb_region_release(stage->root, kept.block), 0);
    assert_int_equal(stats_of(region).runs, 1);
    ebb_check_pool(stage->pool);
    ebb_region_close(region);
    ebb_region_close(behind);
}

/* Regions of other threads may want the pages around, and they count as owned while it is open. */
static void a_small_region_does_not_claim_all_hot_pages(void **state) {
    struct stage *stage = *state;
    ebb_region warm = OPEN(.pool = stage->pool);
    block_of(warm, 64 * MIB, 64);
    ebb_region_close(warm);
    ebb_region region = OPEN(.pool = stage->pool);
    for (size_t had = 0; had < 8 * MIB; had += 32 * KIB) {
        block_of(region, 32 * KIB, 64);
        assert_true(stats_of(region).reserved.current <= 3 * had + 3 * MIB);
    }
    assert_int_equal(stats_of(region).runs, 1);
    assert_true(pool_stats_of(stage->pool).reserved.current <= 65 * MIB); /* nothing cold */
    ebb_check_pool(stage->pool);
    ebb_region_close(region);
}

static void a_gibibyte_block_is_usable_at_both_ends(void **state) {
    struct stage *stage = *state;
    unsigned char *block = ebb_region_alloc(stage->root, (size_t)1 << 30, 4096);
    assert_non_null(block);
    block[0] = 1;
    block[((size_t)1 << 30) - 1] = 2;
    assert_int_equal(block[0] + block[((size_t)1 << 30) - 1], 3);
    ebb_check_pool(stage->pool);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(sizes_around_every_rounding_step_stay_apart),
        STAGED(sizes_round_up_to_64_and_at_least_1024),
        STAGED(every_alignment_up_to_2_mib_is_kept),
        STAGED(alignments_beyond_2_mib_are_refused),
        STAGED(a_wide_alignment_has_room_in_pages_that_others_left),
        STAGED(the_place_of_a_released_block_is_used_at_once),
        STAGED(the_smallest_place_that_fits_is_taken),
        STAGED(the_rest_of_a_split_place_is_used_too),
        STAGED(small_blocks_leave_gaps_whole_where_the_end_was_used),
        STAGED(a_block_that_is_not_small_takes_the_gap),
        STAGED(where_blocks_outlive_steps_gaps_come_first),
        STAGED(places_merge_with_both_neighbours),
        STAGED(places_with_a_high_alignment_leave_what_is_in_front_usable),
        STAGED(releasing_everything_leaves_one_place),
        STAGED(growing_by_a_little_reserves_at_most_a_mib_more),
        STAGED(a_block_larger_than_anything_before_reserves_little_more),
        STAGED(refused_and_rewound_blocks_never_enlarge_growth),
        STAGED(alloc_of_huge_size_does_not_wrap),
        STAGED(a_run_that_is_wholly_free_goes_back_to_the_pool),
        STAGED(the_place_released_last_merges_before_another_size_is_placed),
        STAGED(the_place_released_last_is_not_taken_for_a_wider_alignment),
        STAGED(a_block_grows_into_the_place_released_last),
        STAGED(the_place_released_last_is_known_as_released),
        STAGED(the_place_released_last_does_not_keep_its_run),
        STAGED(a_small_region_does_not_claim_all_hot_pages),
        STAGED(a_gibibyte_block_is_usable_at_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
