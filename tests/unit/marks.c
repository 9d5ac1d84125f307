// SPDX-License-Identifier: Apache-2.0
/*
 * marks.c - a mark is a point to come back to: what is newer ends, what is older stays, and marks
 * that were rewound past, reset away or are another region's are refused.
 */
#include "kit/test.h"

static ebb_mark mark_of(ebb_region region) {
    ebb_mark mark = ebb_region_mark(region);
    assert_int_not_equal(mark.serial, 0);
    return mark;
}

static void rewinding_ends_what_is_newer_and_keeps_what_is_older(void **state) {
    struct stage *stage = *state;
    for (unsigned older = 0; older < 300; older += 23)
        for (unsigned newer = 0; newer < 300; newer += 37) {
            void *kept[300];
            for (unsigned i = 0; i < older; i++)
                kept[i] = block_of(stage->root, i * 11 % 2000, 16);
            struct ebb_region_stats before = stats_of(stage->root);
            ebb_mark mark = mark_of(stage->root);
            for (unsigned i = 0; i < newer; i++)
                block_of(stage->root, i * 17 % 3000, 32);
            assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
            ebb_check_pool(stage->pool);
            struct ebb_region_stats after = stats_of(stage->root);
            assert_int_equal(after.blocks.current, before.blocks.current);
            assert_int_equal(after.requested.current, before.requested.current);
            for (unsigned i = 0; i < older; i++)
                assert_true(pattern_holds(kept[i], i * 11 % 2000, i * 11 % 2000));
            assert_int_equal(ebb_region_reset(stage->root, 0), 0);
        }
}

static void a_mark_in_an_empty_region_rewinds_to_nothing(void **state) {
    struct stage *stage = *state;
    ebb_mark mark = mark_of(stage->root);
    block_of(stage->root, 100, 16);
    block_of(stage->root, 5000, 64);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
    assert_int_equal(stats_of(stage->root).used.current, 0);
}

static void rewound_places_are_used_again(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16);
    uint64_t reserved = 0;
    for (int round = 0; round < 300; round++) {
        ebb_mark mark = mark_of(stage->root);
        for (size_t i = 0; i < 100; i++)
            block_of(stage->root, i * 50, 16);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        if (round == 0)
            reserved = stats_of(stage->root).reserved.current;
        assert_int_equal(stats_of(stage->root).reserved.current, reserved);
    }
}

static void the_first_small_block_after_a_rewind_is_where_it_was(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16);
    ebb_mark mark = mark_of(stage->root);
    void *block = block_of(stage->root, 100, 16);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_ptr_equal(block_of(stage->root, 100, 16), block);
}

static void marks_nest_to_any_depth(void **state) {
    enum { DEPTH = 200 };
    struct stage *stage = *state;
    ebb_mark marks[DEPTH];
    uint64_t blocks[DEPTH];
    for (unsigned i = 0; i < DEPTH; i++) {
        blocks[i] = stats_of(stage->root).blocks.current;
        marks[i] = mark_of(stage->root);
        block_of(stage->root, i * 31 % 1500, 16);
        block_of(stage->root, i * 7 % 40, 16);
    }
    for (unsigned i = DEPTH; i > 0; i -= i > 1 ? 2 : 1) {
        assert_int_equal(ebb_region_rewind(stage->root, marks[i - 1]), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, blocks[i - 1]);
        ebb_check_pool(stage->pool);
    }
}

static void marks_without_blocks_take_no_pages(void **state) {
    struct stage *stage = *state;
    for (unsigned i = 0; i < 3000; i++)
        block_of(stage->root, 500, 16); /* so that a window is as long as they come */
    ebb_mark first = mark_of(stage->root), last = first;
    struct ebb_region_stats before = stats_of(stage->root);
    for (unsigned i = 0; i < 1000; i++)
        last = mark_of(stage->root);
    struct ebb_region_stats after = stats_of(stage->root);
    assert_int_equal(after.reserved.current, before.reserved.current);
    assert_int_equal(after.used.current, before.used.current);
    block_of(stage->root, 500, 16);
    assert_int_equal(ebb_region_rewind(stage->root, last), 0);
    ebb_check_pool(stage->pool);
    block_of(stage->root, 500, 16);
    assert_int_equal(ebb_region_rewind(stage->root, first), 0);
    ebb_check_pool(stage->pool);
    assert_int_equal(stats_of(stage->root).used.current, before.used.current);
}

/* Nothing tells which of two blocks at one address is meant. */
static void a_late_release_is_refused_until_its_place_is_taken(void **state) {
    struct stage *stage = *state;
    static const size_t sizes[] = {3 * MIB, 100000, 64};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ebb_mark mark = mark_of(stage->root);
        void *late = block_of(stage->root, sizes[i], 64);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        assert_int_not_equal(ebb_region_release(stage->root, late), 0);
        assert_ptr_equal(block_of(stage->root, sizes[i], 64), late);
        assert_int_equal(ebb_region_release(stage->root, late), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
    }
}

static void a_mark_rewound_past_is_refused(void **state) {
    struct stage *stage = *state;
    ebb_mark outer = mark_of(stage->root);
    block_of(stage->root, 100, 16);
    ebb_mark inner = mark_of(stage->root);
    block_of(stage->root, 100, 16);
    assert_int_equal(ebb_region_rewind(stage->root, outer), 0);
    assert_refused(ebb_region_rewind(stage->root, inner), EBB_E_MARK);
    assert_refused(ebb_region_rewind(stage->root, outer), EBB_E_MARK);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

static void an_older_mark_survives_a_rewind_to_a_newer_one(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16);
    ebb_mark outer = mark_of(stage->root);
    block_of(stage->root, 200, 16);
    ebb_mark inner = mark_of(stage->root);
    block_of(stage->root, 300, 16);
    assert_int_equal(ebb_region_rewind(stage->root, inner), 0);
    assert_int_equal(stats_of(stage->root).requested.current, 300);
    block_of(stage->root, 50, 16);
    assert_int_equal(ebb_region_rewind(stage->root, outer), 0);
    assert_int_equal(stats_of(stage->root).requested.current, 100);
}

static void older_blocks_released_since_stay_released(void **state) {
    static const size_t sizes[] = {40, 500, 1024, 1025, 5000, 100000};
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *gone = block_of(stage->root, sizes[i], 16), *kept = block_of(stage->root, 77, 16);
        ebb_mark mark = mark_of(stage->root);
        block_of(stage->root, sizes[i], 16);
        assert_int_equal(ebb_region_release(stage->root, gone), 0);
        block_of(stage->root, sizes[i], 16);
        uint64_t blocks = stats_of(stage->root).blocks.current;
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, blocks - 2);
        assert_true(ebb_region_release(stage->root, gone) < 0);
        assert_true(pattern_holds(kept, 77, 77));
        ebb_check_pool(stage->pool);
    }
}

static void an_older_block_is_never_ended_though_its_neighbours_moved(void **state) {
    enum { COUNT = 64 };
    struct stage *stage = *state;
    void *older[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        older[i] = block_of(stage->root, 500, 16);
    for (size_t i = 0; i < COUNT; i += 2)
        assert_int_equal(ebb_region_release(stage->root, older[i]), 0);
    ebb_mark mark = mark_of(stage->root);
    for (size_t i = 0; i < COUNT; i++)
        block_of(stage->root, 400, 16); /* must not hide in holes that are older */
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    for (size_t i = 1; i < COUNT; i += 2)
        assert_true(pattern_holds(older[i], 500, 500));
    assert_int_equal(stats_of(stage->root).blocks.current, COUNT / 2);
    ebb_check_pool(stage->pool);
}

static void newer_blocks_released_before_the_rewind_are_ended_once(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16);
    ebb_mark mark = mark_of(stage->root);
    for (size_t i = 0; i < 200; i++) {
        void *block = block_of(stage->root, i * 20, 16);
        block_of(stage->root, 10, 16);
        if (i % 3)
            assert_int_equal(ebb_region_release(stage->root, block), 0);
    }
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 1);
    assert_int_equal(stats_of(stage->root).requested.current, 100);
    assert_int_equal(stats_of(stage->root).blocks.total, 401);
}

static void windows_that_were_emptied_since_the_mark_are_given_back_once(void **state) {
    enum { COUNT = 3000 };
    struct stage *stage = *state;
    static void *blocks[COUNT];
    block_of(stage->root, 16, 16);
    for (int round = 0; round < 3; round++) {
        ebb_mark mark = ebb_region_mark(stage->root);
        for (int i = 0; i < COUNT; i++)
            blocks[i] = block_of(stage->root, 16, 64); /* with padding between them */
        for (int i = 0; i < COUNT - 10 * round; i++)
            assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        ebb_check_pool(stage->pool);
        assert_int_equal(stats_of(stage->root).blocks.current, 1);
        assert_true(stats_of(stage->root).used.current <= 64);
    }
}

static void a_window_is_free_to_go_once_no_mark_points_into_it(void **state) {
    enum { COUNT = 2000 };
    struct stage *stage = *state;
    static void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = block_of(stage->root, 512, 16);
        if (i % 5 == 0) {
            ebb_mark mark = mark_of(stage->root);
            assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        }
    }
    uint64_t reserved = stats_of(stage->root).reserved.current;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(ebb_region_release(stage->root, blocks[i]), 0);
    block_of(stage->root, reserved * 3 / 4, 64);
    assert_int_equal(stats_of(stage->root).reserved.peak, reserved);
}

static void blocks_promoted_to_the_region_since_the_mark_end(void **state) {
    struct stage *stage = *state;
    for (int closed = 0; closed < 2; closed++) {
        ebb_region child = OPEN(.parent = stage->root);
        ebb_mark mark = mark_of(stage->root);
        struct ebb_survivor list[] = {survivor_of(block_of(child, 20000, 4096), EBB_PROMOTE_RELINK),
                                      survivor_of(block_of(child, 100, 16), EBB_PROMOTE_COPY)};
        assert_int_equal(ebb_promote(child, stage->root, list, 2, NULL), 0);
        if (closed)
            ebb_region_close(child);
        assert_int_equal(stats_of(stage->root).blocks.current, 2);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        assert_int_equal(stats_of(stage->root).blocks.current, 0);
        ebb_check_pool(stage->pool);
        ebb_region_close(child);
    }
}

static void children_are_not_touched_by_a_rewind(void **state) {
    struct stage *stage = *state;
    ebb_mark mark = mark_of(stage->root);
    ebb_region child = OPEN(.parent = stage->root);
    void *block = block_of(child, 5000, 64);
    block_of(stage->root, 5000, 64);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    assert_true(ebb_region_is_open(child));
    assert_true(pattern_holds(block, 5000, 5000));
}

static void marks_of_other_regions_are_refused(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    block_of(child, 100, 16);
    ebb_mark foreign = mark_of(child);
    block_of(child, 100, 16);
    assert_refused(ebb_region_rewind(stage->root, foreign), EBB_E_MARK);
    assert_refused(ebb_region_rewind(stage->root, (ebb_mark){NULL, 0}), EBB_E_MARK);
    assert_refused(ebb_region_rewind(stage->root, (ebb_mark){&foreign, 1}), EBB_E_MARK);
    assert_int_equal(stats_of(child).blocks.current, 2);
    assert_int_equal(ebb_region_rewind(child, foreign), 0);
}

static void a_mark_does_not_outlive_reset_or_close(void **state) {
    struct stage *stage = *state;
    ebb_mark mark = mark_of(stage->root);
    assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
    void *block = block_of(stage->root, 100, 16);
    assert_refused(ebb_region_rewind(stage->root, mark), EBB_E_MARK);
    mark = mark_of(stage->root);
    assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    assert_refused(ebb_region_rewind(stage->root, mark), EBB_E_MARK);
    ebb_region child = OPEN(.parent = stage->root);
    mark = mark_of(child);
    ebb_region_close(child);
    assert_refused(ebb_region_rewind(child, mark), EBB_E_STALE);
    child = OPEN(.parent = stage->root);
    block = block_of(child, 100, 16);
    assert_refused(ebb_region_rewind(child, mark), EBB_E_MARK);
    assert_true(pattern_holds(block, 100, 100));
}

/* What described the mark of a closed region may describe one of a region that opened since. */
static void a_mark_of_a_closed_region_is_never_one_of_another(void **state) {
    enum { REGIONS = 3, ROUNDS = 40 };
    struct stage *stage = *state;
    ebb_mark stale[ROUNDS];
    unsigned same_place = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        ebb_region regions[REGIONS];
        unsigned count = 1 + round % REGIONS;
        for (unsigned i = 0; i < count; i++)
            regions[i] = OPEN(.pool = stage->pool);
        ebb_region last = regions[count - 1];
        stale[round] = mark_of(last);
        void *block = block_of(last, 100, 16);
        for (unsigned at = 0; at < round; at++) {
            same_place += stale[round].place == stale[at].place;
            assert_refused(ebb_region_rewind(last, stale[at]), EBB_E_MARK);
        }
        assert_true(pattern_holds(block, 100, 100));
        for (unsigned i = 0; i < count; i++)
            assert_int_equal(ebb_region_close(regions[i]), 0);
    }
    assert_true(same_place > 0);
}

static void limits_are_given_back_by_a_rewind(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = 64 * KIB);
    block_of(region, 1000, 64);
    for (int round = 0; round < 50; round++) {
        ebb_mark mark = mark_of(region);
        block_of(region, 48 * KIB, 64);
        for (int i = 0; i < 8; i++)
            block_of(region, 900, 64);
        assert_no_block(ebb_region_alloc(region, 48 * KIB, 64), EBB_E_REGION_LIMIT);
        assert_int_equal(ebb_region_rewind(region, mark), 0);
        assert_int_equal(stats_of(region).subtree_used, 1008);
    }
}

/* What another thread handed in is released before its place goes to others. */
static void a_rewind_takes_in_what_others_released(void **state) {
    struct stage *stage = *state;
    block_of(stage->root, 100, 16);
    ebb_mark mark = ebb_region_mark(stage->root);
    void *gone = block_of(stage->root, 64, 16);
    assert_int_equal(ebb_region_release_remote(stage->root, gone), 0);
    assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
    void *next = ebb_region_alloc(stage->root, 64, 16);
    assert_ptr_equal(next, gone);
    memset(next, 0, 64);
    block_of(stage->root, 5000, 64); /* looks */
    assert_int_equal(ebb_region_block_bytes(stage->root, next), 64);
}

struct handed {
    ebb_region region;
    void *block;
};

/* As a cleanup does that waits for a thread which is not done yet. */
static int hand_in(void *context) {
    struct handed *handed = context;
    return ebb_region_release_remote(handed->region, handed->block);
}

static void a_rewind_takes_in_what_its_cleanups_handed_in(void **state) {
    struct stage *stage = *state;
    struct handed handed = {.region = stage->root};
    struct ebb_cleanup node = {.run = hand_in, .data = &handed};
    for (size_t bytes = 64; bytes < 20000; bytes += 8000) {
        void *older = block_of(stage->root, bytes, 64);
        ebb_mark mark = mark_of(stage->root);
        handed.block = block_of(stage->root, bytes, 64);
        assert_int_equal(ebb_cleanup_add(stage->root, &node), 0);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        void *next = ebb_region_alloc(stage->root, bytes, 64);
        assert_ptr_equal(next, handed.block);
        memset(next, 0, bytes);
        block_of(stage->root, 30000, 64); /* looks */
        assert_int_equal(ebb_region_block_bytes(stage->root, next), bytes);
        mark = mark_of(stage->root);
        handed.block = older;
        assert_int_equal(ebb_cleanup_add(stage->root, &node), 0);
        assert_int_equal(ebb_region_rewind(stage->root, mark), 0);
        assert_int_equal(ebb_region_block_bytes(stage->root, older), 0);
        assert_int_equal(ebb_region_reset(stage->root, EBB_KEEP_ALL), 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(rewinding_ends_what_is_newer_and_keeps_what_is_older),
        STAGED(a_mark_in_an_empty_region_rewinds_to_nothing),
        STAGED(rewound_places_are_used_again),
        STAGED(the_first_small_block_after_a_rewind_is_where_it_was),
        STAGED(marks_nest_to_any_depth),
        STAGED(marks_without_blocks_take_no_pages),
        STAGED(a_late_release_is_refused_until_its_place_is_taken),
        STAGED(a_mark_rewound_past_is_refused),
        STAGED(an_older_mark_survives_a_rewind_to_a_newer_one),
        STAGED(older_blocks_released_since_stay_released),
        STAGED(an_older_block_is_never_ended_though_its_neighbours_moved),
        STAGED(newer_blocks_released_before_the_rewind_are_ended_once),
        STAGED(windows_that_were_emptied_since_the_mark_are_given_back_once),
        STAGED(a_window_is_free_to_go_once_no_mark_points_into_it),
        STAGED(blocks_promoted_to_the_region_since_the_mark_end),
        STAGED(children_are_not_touched_by_a_rewind),
        STAGED(marks_of_other_regions_are_refused),
        STAGED(a_mark_does_not_outlive_reset_or_close),
        STAGED(a_mark_of_a_closed_region_is_never_one_of_another),
        STAGED(limits_are_given_back_by_a_rewind),
        STAGED(a_rewind_takes_in_what_others_released),
        STAGED(a_rewind_takes_in_what_its_cleanups_handed_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
