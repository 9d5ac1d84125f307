// SPDX-License-Identifier: Apache-2.0
/*
 * realloc.c - as realloc: in place where it can, else a new block with the old contents; across
 * the lanes, with alignments, and with the old block intact after every failure.
 */
#include "kit/test.h"

#include <pthread.h>

static void no_block_is_an_allocation(void **state) {
    struct stage *stage = *state;
    void *block = ebb_region_realloc(stage->root, NULL, 100, 32);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 32, 0);
    assert_int_equal(ebb_region_block_bytes(stage->root, block), 100);
}

static void contents_survive_every_pair_of_sizes(void **state) {
    static const size_t sizes[] = {0, 1, 16, 17, 1023, 1024, 1025, 4096, 16367, 16368, 100000};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    struct stage *stage = *state;
    for (size_t from = 0; from < COUNT; from++)
        for (size_t to = 0; to < COUNT; to++)
            for (int hemmed = 0; hemmed < 2; hemmed++) {
                void *block = block_of(stage->root, sizes[from], 16);
                void *behind = hemmed ? block_of(stage->root, sizes[from], 16) : NULL;
                size_t common = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
                block = ebb_region_realloc(stage->root, block, sizes[to], 16);
                assert_non_null(block);
                assert_true(pattern_holds(block, common, (unsigned)sizes[from]));
                assert_int_equal(ebb_region_block_bytes(stage->root, block), sizes[to]);
                memset(block, 1, sizes[to]);
                assert_true(!behind || pattern_holds(behind, sizes[from], (unsigned)sizes[from]));
                assert_int_equal(stats_of(stage->root).blocks.current, 1 + (unsigned)hemmed);
                assert_int_equal(ebb_region_release(stage->root, block), 0);
                assert_int_equal(ebb_region_release(stage->root, behind), 0);
            }
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

static void a_block_that_can_stay_stays(void **state) {
    struct stage *stage = *state;
    void *small = block_of(stage->root, 100, 16);
    assert_ptr_equal(ebb_region_realloc(stage->root, small, 300, 16), small);
    assert_ptr_equal(ebb_region_realloc(stage->root, small, 20, 1), small);
    void *large = block_of(stage->root, 5000, 64);
    assert_ptr_equal(ebb_region_realloc(stage->root, large, 2000, 64), large);
}

static void a_higher_alignment_moves_the_block(void **state) {
    struct stage *stage = *state;
    for (size_t align = 32; align <= 2 * MIB; align *= 4) {
        block_of(stage->root, 16, 16);
        void *block = block_of(stage->root, 48, 16);
        while ((uintptr_t)block % align == 0)
            block = block_of(stage->root, 48, 16);
        block = ebb_region_realloc(stage->root, block, 48, align);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % align, 0);
        assert_true(pattern_holds(block, 48, 48));
    }
}

static void a_failed_realloc_leaves_the_block(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 20000);
    static const size_t sizes[] = {100, 5000};
    for (int i = 0; i < 2; i++) {
        void *block = block_of(region, sizes[i], 16);
        block_of(region, sizes[i], 16);
        struct ebb_region_stats before = stats_of(region);
        assert_no_block(ebb_region_realloc(region, block, SIZE_MAX, 16), EBB_E_SIZE);
        assert_no_block(ebb_region_realloc(region, block, 19900, 16), EBB_E_REGION_LIMIT);
        assert_no_block(ebb_region_realloc(region, block, 200, 3), EBB_E_ALIGNMENT);
        assert_no_block(ebb_region_realloc(region, block, 200, 0), EBB_E_ALIGNMENT);
        assert_no_block(ebb_region_realloc(region, block, 200, 4 * MIB), EBB_E_ALIGNMENT);
        struct ebb_region_stats after = stats_of(region);
        assert_memory_equal(&before, &after, sizeof before);
        assert_true(pattern_holds(block, sizes[i], (unsigned)sizes[i]));
        assert_int_equal(ebb_region_block_bytes(region, block), sizes[i]);
    }
}

static void a_block_grown_step_by_step_keeps_what_was_written(void **state) {
    struct stage *stage = *state;
    unsigned char *block = NULL;
    size_t bytes = 0;
    while (bytes < 3 * MIB) {
        size_t more = bytes / 3 + 7;
        block = ebb_region_realloc(stage->root, block, bytes + more, 16);
        assert_non_null(block);
        for (size_t i = bytes; i < bytes + more; i++)
            block[i] = (unsigned char)(i * 13);
        bytes += more;
    }
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(block[i], (unsigned char)(i * 13));
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    assert_int_equal(stats_of(stage->root).requested.current, bytes);
}

/* On a thread that has seen no error yet: nothing may depend on an older one. */
static void *grow_beyond_the_limit(void *context) {
    ebb_region region = OPEN(.parent = *(ebb_region *)context, .limit_bytes = 8192);
    void *block = ebb_region_alloc(region, 4096, 64), *small = ebb_region_alloc(region, 16, 16);
    bool refused = !ebb_region_realloc(region, block, 16384, 64) &&
                   !ebb_region_realloc(region, small, 5000, 16);
    bool same = ebb_region_block_bytes(region, block) == 4096 &&
                ebb_region_block_bytes(region, small) == 16;
    return refused && same && ebb_region_close(region) == 0 ? context : NULL;
}

static void growing_in_place_beyond_a_limit_is_refused(void **state) {
    struct stage *stage = *state;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, grow_beyond_the_limit, &stage->root), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &stage->root);
}

static void a_successful_realloc_leaves_the_last_error_alone(void **state) {
    struct stage *stage = *state;
    assert_refused(ebb_region_release(stage->root, &stage), EBB_E_FOREIGN);
    void *block = block_of(stage->root, 100, 16);
    block_of(stage->root, 16, 16);
    assert_non_null(ebb_region_realloc(stage->root, block, 500, 16)); /* has to move */
    assert_int_equal(ebb_last_error(), EBB_E_FOREIGN);
}

static void count_report(void *context, const char *text) {
    (void)text;
    ++*(unsigned *)context;
}

/* In a region whose limit leaves no room for another block, and in one without a limit. */
static void a_block_stays_where_others_released_what_was_behind_it(void **state) {
    struct stage *stage = *state;
    unsigned reports = 0;
    ebb_report_on_exhausted(count_report, &reports);
    for (unsigned limited = 0; limited < 2; limited++) {
        ebb_region region = OPEN(.parent = stage->root, .limit_bytes = limited * 300 * KIB);
        char *block = block_of(region, 200 * KIB, 64), *behind = block_of(region, 50 * KIB, 64);
        assert_ptr_equal(behind, block + 200 * KIB);
        assert_int_equal(ebb_region_release_remote(region, behind), 0);
        assert_refused(ebb_region_release(region, &stage), EBB_E_FOREIGN);
        assert_ptr_equal(ebb_region_realloc(region, block, 240 * KIB, 64), block);
        assert_int_equal(ebb_last_error(), EBB_E_FOREIGN);
        assert_true(pattern_holds(block, 200 * KIB, 200 * KIB));
        assert_int_equal(stats_of(region).blocks.total, 2);
        assert_int_equal(ebb_region_close(region), 0);
    }
    ebb_report_on_exhausted(NULL, NULL);
    assert_int_equal(reports, 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(no_block_is_an_allocation),
        STAGED(contents_survive_every_pair_of_sizes),
        STAGED(a_block_that_can_stay_stays),
        STAGED(a_higher_alignment_moves_the_block),
        STAGED(a_failed_realloc_leaves_the_block),
        STAGED(a_block_grown_step_by_step_keeps_what_was_written),
        STAGED(growing_in_place_beyond_a_limit_is_refused),
        STAGED(a_successful_realloc_leaves_the_last_error_alone),
        STAGED(a_block_stays_where_others_released_what_was_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
