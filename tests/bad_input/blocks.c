// SPDX-License-Identifier: Apache-2.0
/*
 * blocks.c - misuses around blocks: sizes that overflow, alignments that are none, memory and
 * limits that are exhausted, and pointers that are foreign, interior, released or of yesterday.
 */
#include "bad_input/court.h"

#include <stdio.h>
#include <stdlib.h>

static void alignments_that_are_no_power_of_two_are_refused(void **state) {
    static const size_t aligns[] = {0, 3, 5, 6, 7, 12, 63, 65, 4095, 4097, ((size_t)2 << 20) + 1,
                                    (size_t)4 << 20, (size_t)1 << 63, SIZE_MAX};
    static const size_t sizes[] = {0, 1, 1024, 1025, 100000};
    struct court *court = *state;
    char number[32];
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        snprintf(number, sizeof number, "%zu", aligns[i]);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            court_refused_block(court, ebb_region_alloc(court->child, sizes[k], aligns[i]),
                                EBB_E_ALIGNMENT, number);
            court_refused_block(court, ebb_region_alloc_zeroed(court->child, sizes[k], aligns[i]),
                                EBB_E_ALIGNMENT, number);
        }
        court_refused_block(court, ebb_region_alloc_array(court->child, 3, 5, aligns[i]),
                            EBB_E_ALIGNMENT, number);
        court_refused_block(court, ebb_region_realloc(court->child, court->small, 200, aligns[i]),
                            EBB_E_ALIGNMENT, number);
    }
}

static void sizes_that_overflow_are_refused(void **state) {
    struct court *court = *state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 63, SIZE_MAX - 4096,
                                   (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX};
    char number[32];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(number, sizeof number, "%zu", sizes[i]);
        court_refused_block(court, ebb_region_alloc(court->child, sizes[i], 1), EBB_E_SIZE, number);
        court_refused_block(court, ebb_region_alloc_zeroed(court->child, sizes[i], 64), EBB_E_SIZE,
                            number);
        court_refused_block(court, ebb_region_realloc(court->child, court->large, sizes[i], 64),
                            EBB_E_SIZE, number);
        court_refused_block(court, ebb_region_realloc(court->child, court->small, sizes[i], 16),
                            EBB_E_SIZE, number);
    }
    court_refused_block(court, ebb_region_alloc_array(court->child, SIZE_MAX, 2, 1), EBB_E_SIZE,
                        "18446744073709551615 elements of 2 bytes");
    court_refused_block(court, ebb_region_alloc_array(court->child, 3, SIZE_MAX / 2, 1),
                        EBB_E_SIZE, "3 elements");
    court_refused(court, ebb_region_resize(court->child, court->large, SIZE_MAX), EBB_E_SIZE,
                  "18446744073709551615", NULL);
}

static void exhausted_addresses_are_named_with_their_numbers(void **state) {
    struct court *court = *state;
    court_refused_block(court, ebb_region_alloc(court->child, (size_t)1 << 45, 64), EBB_E_MEMORY,
                        "35184372088832");
    court_refused_block(court, ebb_region_realloc(court->child, court->large, (size_t)1 << 45, 64),
                        EBB_E_MEMORY, "35184372088832");
    ebb_region region = OPEN(.parent = court->child, .hint_bytes = (size_t)1 << 45);
    assert_false(ebb_region_is_open(region));
    court_refused(court, ebb_last_error(), EBB_E_MEMORY, "35184372088832", NULL);
    region = OPEN(.parent = court->child, .hint_bytes = SIZE_MAX);
    assert_false(ebb_region_is_open(region));
    court_refused(court, ebb_last_error(), EBB_E_SIZE, "18446744073709551615", NULL);
}

static void limits_name_what_is_asked_and_what_is_used(void **state) {
    struct court *court = *state;
    court_refused_block(court, ebb_region_alloc(court->limited, 4097, 64), EBB_E_REGION_LIMIT,
                        "4160 bytes asked in 'limited', 'limited' has 0 of 4096");
    court_refused_block(court, ebb_region_alloc_zeroed(court->limited, 5000, 64),
                        EBB_E_REGION_LIMIT, "5056");
    court_refused_block(court, ebb_region_alloc_array(court->limited, 100, 100, 64),
                        EBB_E_REGION_LIMIT, "10048");
    court_refused_block(court, ebb_region_realloc(court->limited, NULL, 10000, 64),
                        EBB_E_REGION_LIMIT, "10048");
    ebb_region neighbour = OPEN(.pool = court->limited_pool);
    court_note(court);
    court_refused_block(court, ebb_region_alloc(neighbour, 6001, 64), EBB_E_POOL_LIMIT,
                        "6016 bytes asked, pool 'limited pool' has 0 of 6000");
    assert_int_equal(ebb_region_close(neighbour), 0);
}

static void sealed_regions_refuse_blocks(void **state) {
    struct court *court = *state;
    court_refused_block(court, ebb_region_alloc(court->sealed, 77, 8), EBB_E_SEALED, "'sealed'");
    court_refused_block(court, ebb_region_alloc(court->sealed, 7777, 8), EBB_E_SEALED, "7777");
    court_refused_block(court, ebb_region_alloc_zeroed(court->sealed, 77, 8), EBB_E_SEALED, "77");
    court_refused_block(court, ebb_region_alloc_array(court->sealed, 7, 11, 8), EBB_E_SEALED, "77");
    court_refused_block(court, ebb_region_realloc(court->sealed, NULL, 77, 8), EBB_E_SEALED, "77");
}

/* Everything that takes a block refuses this pointer in this region with this code. */
static void assert_no_block_of(struct court *court, ebb_region region, void *pointer, int code) {
    court_refused(court, ebb_region_release(region, pointer), code, NULL);
    court_refused(court, ebb_region_resize(region, pointer, 10), code, NULL);
    court_refused(court, ebb_region_resize(region, pointer, 100000), code, NULL);
    court_refused_block(court, ebb_region_realloc(region, pointer, 10, 16), code, "");
    court_refused_block(court, ebb_region_realloc(region, pointer, 100000, 16), code, "");
    assert_int_equal(ebb_region_block_bytes(region, pointer), 0);
    court_refused(court, ebb_last_error(), code, NULL);
}

static void pointers_of_others_are_foreign(void **state) {
    struct court *court = *state;
    int local = 0;
    void *heap = malloc(100);
    void *foreign[] = {&local, heap, court, court->root_large, court->root_large + 17,
                       court->foreign, court->phantom, (void *)(uintptr_t)1, (void *)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        assert_no_block_of(court, court->child, foreign[i], EBB_E_FOREIGN);
    court_refused(court, ebb_region_release(court->child, court->root_large), EBB_E_FOREIGN,
                  "'root'", "'child'", NULL);
    assert_no_block_of(court, court->root, court->small, EBB_E_FOREIGN);
    assert_no_block_of(court, court->root, court->large, EBB_E_FOREIGN);
    assert_no_block_of(court, court->elsewhere, court->small, EBB_E_FOREIGN);
    free(heap);
}

static void pointers_into_blocks_are_interior(void **state) {
    struct court *court = *state;
    static const size_t into_small[] = {1, 8, 15, 16, 17, 64, 96, 99, 111};
    static const size_t into_large[] = {1, 16, 63, 64, 1023, 1024, 4096, 4999, 5055};
    for (size_t i = 0; i < sizeof into_small / sizeof *into_small; i++)
        assert_no_block_of(court, court->child, court->small + into_small[i], EBB_E_INTERIOR);
    for (size_t i = 0; i < sizeof into_large / sizeof *into_large; i++)
        assert_no_block_of(court, court->child, court->large + into_large[i], EBB_E_INTERIOR);
}

static void blocks_released_before_are_released(void **state) {
    struct court *court = *state;
    assert_no_block_of(court, court->child, court->gone_small, EBB_E_RELEASED);
    assert_no_block_of(court, court->child, court->gone_large, EBB_E_RELEASED);
    assert_no_block_of(court, court->child, court->gone_window, EBB_E_RELEASED);
    void *top = block_of(court->child, 200, 16);
    assert_int_equal(ebb_region_release(court->child, top), 0);
    court_note(court);
    assert_no_block_of(court, court->child, top, EBB_E_RELEASED);
}

static void blocks_released_twice_stay_released_in_empty_regions(void **state) {
    struct court *court = *state;
    static const size_t sizes[] = {1, 1024, 1025, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ebb_region region = OPEN(.parent = court->root);
        void *block = block_of(region, sizes[i], 16);
        assert_int_equal(ebb_region_release(region, block), 0);
        court_note(court);
        for (int again = 0; again < 3; again++)
            court_refused(court, ebb_region_release(region, block), EBB_E_RELEASED, NULL);
        assert_int_equal(ebb_region_close(region), 0);
    }
}

static void blocks_of_closed_regions_are_never_taken_for_live_ones(void **state) {
    struct court *court = *state;
    for (int round = 0; round < 20; round++) {
        ebb_region region = OPEN(.parent = court->root);
        void *small = block_of(region, 100, 16), *other = block_of(region, 100, 16);
        void *large = block_of(region, 5000, 64);
        assert_non_null(other);
        assert_int_equal(ebb_region_close(region), 0);
        ebb_region next = OPEN(.parent = court->root); /* most likely in the same slot */
        assert_true(ebb_region_release(next, large) < 0);
        assert_true(ebb_region_release(next, small) < 0);
        assert_true(ebb_region_release(next, other) < 0);
        void *filler = block_of(next, round % 2 ? 40 : 9000, 64);
        struct ebb_region_stats before = stats_of(next);
        if (filler != large)
            assert_true(ebb_region_release(next, large) < 0);
        if (filler != other)
            assert_true(ebb_region_release(next, other) < 0);
        assert_true(ebb_region_resize(next, other, 10) < 0 || filler == other);
        struct ebb_region_stats after = stats_of(next);
        assert_memory_equal(&before, &after, sizeof before);
        ebb_check_pool(court->pool);
        assert_int_equal(ebb_region_close(next), 0);
    }
}

static void blocks_from_before_a_reset_are_never_taken_for_live_ones(void **state) {
    struct court *court = *state;
    static const size_t keeps[] = {0, EBB_KEEP_ALL};
    for (int round = 0; round < 10; round++) {
        ebb_region region = OPEN(.parent = court->root);
        void *first = block_of(region, 16, 16), *small = block_of(region, 100, 16);
        void *large = block_of(region, 5000, 64), *last = block_of(region, 70000, 64);
        assert_non_null(first);
        assert_int_equal(ebb_region_reset(region, keeps[round % 2]), 0);
        struct ebb_region_stats before = stats_of(region);
        assert_true(ebb_region_release(region, small) < 0);
        assert_true(ebb_region_release(region, large) < 0);
        assert_true(ebb_region_release(region, last) < 0);
        assert_true(ebb_region_resize(region, last, 100) < 0);
        assert_int_equal(ebb_region_block_bytes(region, large), 0);
        struct ebb_region_stats after = stats_of(region);
        assert_memory_equal(&before, &after, sizeof before);
        block_of(region, 16, 16);
        assert_true(ebb_region_release(region, small) < 0);
        assert_true(ebb_region_release(region, last) < 0);
        ebb_check_pool(court->pool);
        assert_int_equal(ebb_region_close(region), 0);
    }
}

static void releasing_nothing_is_nothing(void **state) {
    struct court *court = *state;
    assert_int_equal(ebb_region_release(court->child, NULL), 0);
    court_refused(court, ebb_region_resize(court->child, NULL, 5), EBB_E_FOREIGN,
                  "not memory of ebb, asked in region 'child'", NULL);
    assert_int_equal(ebb_region_block_bytes(court->child, NULL), 0);
    assert_text_names("not memory of ebb, asked in region 'child'");
    court_refused(court, ebb_region_release(court->closed, NULL), EBB_E_STALE, NULL);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TRIAL(alignments_that_are_no_power_of_two_are_refused),
        TRIAL(sizes_that_overflow_are_refused),
        TRIAL(exhausted_addresses_are_named_with_their_numbers),
        TRIAL(limits_name_what_is_asked_and_what_is_used),
        TRIAL(sealed_regions_refuse_blocks),
        TRIAL(pointers_of_others_are_foreign),
        TRIAL(pointers_into_blocks_are_interior),
        TRIAL(blocks_released_before_are_released),
        TRIAL(blocks_released_twice_stay_released_in_empty_regions),
        TRIAL(blocks_of_closed_regions_are_never_taken_for_live_ones),
        TRIAL(blocks_from_before_a_reset_are_never_taken_for_live_ones),
        TRIAL(releasing_nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
