// SPDX-License-Identifier: Apache-2.0
/*
 * d7_upb.c - part D7: upb's arena.
 *
 * Not ours: 101 and 104 (fuse), 102 and 103 (references): regions have neither, ownership moves by
 * promotion. 105: a cleanup of ours runs before the blocks of its region go, which it may still
 * read; what is to run when they are gone is a cleanup of the parent. 99: there is no largest
 * block that a program would choose. 106: of its races only allocating against a space query
 * concerns us, and ours demands quiescent regions for that (ebb/pool.h); threads on one pool are
 * in tests/unit/threads.c and tests/model.
 * 107 is here with a small scenario; tests/failure has all of them.
 */
#include "conformance/law.h"
#include "failure/fault.h"

static void c94_a_hint_serves_the_first_block_and_the_next_grows(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 2459);
    assert_int_equal(stats_of(region).runs, 1);
    assert_int_equal(stats_of(region).reserved.current, PAGE);
    block_of(region, 2459, 16);
    assert_int_equal(stats_of(region).reserved.current, PAGE);
    block_of(region, 500, 16); /* the rest of the page is too small for a window */
    assert_true(stats_of(region).reserved.current > PAGE);
    assert_int_equal(ebb_region_close(region), 0);
    assert_int_equal(pool_stats_of(stage->pool).owned, 0);
}

static void c95_a_limit_without_more_behind_it_refuses(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .limit_bytes = 1024);
    assert_no_block(ebb_region_alloc(region, 2048, 16), EBB_E_REGION_LIMIT);
    assert_no_block(ebb_region_alloc(region, 1025, 16), EBB_E_REGION_LIMIT);
    block_of(region, 1024, 16); /* upb: refused, its header is inside; ours is outside */
    assert_no_block(ebb_region_alloc(region, 1, 1), EBB_E_REGION_LIMIT);
    assert_int_equal(ebb_region_close(region), 0);
}

static void c96_the_last_block_extends_and_no_other(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.pool = stage->pool, .hint_bytes = 4096);
    void *block = block_of(region, 512, 16);
    assert_int_equal(ebb_region_resize(region, block, 700), 0);
    assert_int_equal(ebb_region_resize(region, block, 750), 0); /* our windows are 4 KiB */
    assert_refused(ebb_region_resize(region, block, 10000), EBB_E_NO_ROOM);
    assert_int_equal(ebb_region_block_bytes(region, block), 750);
    block_of(region, 1, 1);
    assert_refused(ebb_region_resize(region, block, 900), EBB_E_NO_ROOM);
    assert_true(pattern_holds(block, 512, 512));
    assert_int_equal(ebb_region_close(region), 0);
}

static void c99_600_kib_in_blocks_of_1_kib_reserve_at_most_700(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 600; i++)
        block_of(stage->root, 1024, 16);
    assert_true(stats_of(stage->root).reserved.current <= 700 * KIB);
}

/* How often it ran, and what the pool's regions had then. */
struct seen {
    struct ebb_cleanup node;
    ebb_pool *pool;
    unsigned runs;
    size_t owned;
};

static int look(void *data) {
    struct seen *seen = data;
    seen->runs++;
    seen->owned = pool_stats_of(seen->pool).owned;
    return 0;
}

static void c105_a_cleanup_runs_once_when_the_blocks_below_are_gone(void **state) {
    struct stage *stage = *state;
    ebb_region parent = OPEN(.pool = stage->pool), region = OPEN(.parent = parent);
    struct seen above = {.pool = stage->pool}, own = above;
    above.node = (struct ebb_cleanup){.run = look, .data = &above};
    own.node = (struct ebb_cleanup){.run = look, .data = &own};
    assert_int_equal(ebb_cleanup_add(parent, &above.node), 0);
    assert_int_equal(ebb_cleanup_add(region, &own.node), 0);
    block_of(region, 2459, 16);
    block_of(region, 100000, 16);
    size_t owned = pool_stats_of(stage->pool).owned;
    assert_int_equal(ebb_region_close(parent), 0);
    assert_int_equal(own.runs, 1);
    assert_int_equal(own.owned, owned);
    assert_int_equal(above.runs, 1);
    assert_int_equal(above.owned, 0);
}

static void c107_the_nth_acquisition_fails_cleanly(void **state) {
    for (unsigned nth = 1, refused = 1; refused; nth++) {
        ebb_pool *pool = POOL(.name = "failing");
        fault_arm(nth, false);
        ebb_region region = OPEN(.pool = pool);
        bool open = ebb_region_is_open(region);
        bool served = open && ebb_region_alloc(region, 100, 16) &&
                      ebb_region_alloc(region, 100000, 64);
        refused = fault_disarm();
        if (!served)
            assert_refused(ebb_last_error(), EBB_E_MEMORY);
        assert_true(served || refused);
        if (open)
            assert_int_equal(ebb_region_close(region), 0);
        pool_end(pool);
    }
}

static void c108_all_bytes_of_a_large_block_are_writable(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 100000, 16);
    memset(block, 0xff, 100000);
    block = block_of(stage->root, 3 * MIB, 16);
    assert_true(pattern_holds(block, 3 * MIB, 3 * MIB));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        CASE(c94_a_hint_serves_the_first_block_and_the_next_grows),
        CASE(c95_a_limit_without_more_behind_it_refuses),
        CASE(c96_the_last_block_extends_and_no_other),
        CASE(c99_600_kib_in_blocks_of_1_kib_reserve_at_most_700),
        CASE(c105_a_cleanup_runs_once_when_the_blocks_below_are_gone),
        cmocka_unit_test(c107_the_nth_acquisition_fails_cleanly),
        CASE(c108_all_bytes_of_a_large_block_are_writable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
