// SPDX-License-Identifier: Apache-2.0
/*
 * region.c - regions open and close, handles go stale for ever, trees answer who is above whom,
 * and a pointer leads back to the region it is in.
 */
#include "kit/test.h"

#include <stdlib.h>

static bool same(ebb_region a, ebb_region b) {
    return a.lane == b.lane && a.generation == b.generation;
}

static void an_empty_region_costs_no_pages(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 100; i++) {
        ebb_region region = OPEN(.pool = stage->pool), child = OPEN(.parent = region);
        assert_int_equal(stats_of(child).reserved.current, 0);
        assert_int_equal(ebb_region_close(region), 0);
    }
    assert_int_equal(pool_stats_of(stage->pool).reserved.total, 0);
}

static void closed_handles_stay_stale_whatever_is_opened_since(void **state) {
    struct stage *stage = *state;
    static ebb_region old[200];
    for (int i = 0; i < 200; i++) {
        old[i] = OPEN(.pool = stage->pool);
        assert_true(ebb_region_is_open(old[i]));
        assert_int_equal(ebb_region_close(old[i]), 0);
        for (int j = 0; j <= i; j++)
            assert_false(ebb_region_is_open(old[j]));
    }
    ebb_region open = OPEN(.pool = stage->pool);
    for (int j = 0; j < 200; j++) {
        assert_refused(ebb_region_close(old[j]), EBB_E_STALE);
        assert_no_block(ebb_region_alloc(old[j], 16, 16), EBB_E_STALE);
    }
    assert_int_equal(stats_of(open).blocks.total, 0);
    assert_int_equal(ebb_region_close(open), 0);
}

static void a_failed_open_gives_a_handle_that_every_call_refuses(void **state) {
    struct ebb_region_options wrong = {.size = 1};
    ebb_region none = ebb_region_open(&wrong);
    assert_refused(ebb_last_error(), EBB_E_ARGUMENT);
    assert_false(ebb_region_is_open(none));
    assert_no_block(ebb_region_alloc(none, 16, 16), EBB_E_STALE);
    assert_no_block(ebb_region_alloc(none, 0, 1), EBB_E_STALE);
    assert_no_block(ebb_region_alloc(none, 5000, 64), EBB_E_STALE);
    assert_no_block(ebb_region_alloc_zeroed(none, 16, 16), EBB_E_STALE);
    assert_refused(ebb_region_close(none), EBB_E_STALE);
    assert_int_equal(ebb_region_mark(none).serial, 0);
}

static void closing_a_parent_closes_its_descendants_and_only_them(void **state) {
    struct stage *stage = *state;
    ebb_region a = OPEN(.parent = stage->root), b = OPEN(.parent = stage->root);
    ebb_region below[6] = {a, OPEN(.parent = a), OPEN(.parent = a)};
    below[3] = OPEN(.parent = below[1]);
    below[4] = OPEN(.parent = below[3]);
    below[5] = OPEN(.parent = below[2]);
    for (int i = 0; i < 6; i++)
        block_of(below[i], 100 + 3000 * (size_t)i, 16);
    void *kept = block_of(b, 5000, 64);
    assert_int_equal(stats_of(stage->root).children, 2);
    assert_int_equal(ebb_region_close(a), 0);
    for (int i = 0; i < 6; i++)
        assert_false(ebb_region_is_open(below[i]));
    assert_true(ebb_region_is_open(b) && ebb_region_is_open(stage->root));
    assert_true(pattern_holds(kept, 5000, 5000));
    assert_int_equal(stats_of(stage->root).children, 1);
    assert_int_equal(pool_stats_of(stage->pool).open_regions, 2);
}

static void children_close_in_any_order(void **state) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct stage *stage = *state;
    for (int order = 0; order < 6; order++) {
        ebb_region children[3];
        for (int i = 0; i < 3; i++)
            children[i] = OPEN(.parent = stage->root);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(stats_of(stage->root).children, 3 - i);
            assert_int_equal(ebb_region_close(children[orders[order][i]]), 0);
            ebb_check_pool(stage->pool);
        }
        assert_int_equal(stats_of(stage->root).children, 0);
    }
}

static void a_child_lives_on_its_parents_pool(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    ebb_region named = OPEN(.parent = stage->root, .pool = stage->pool);
    block_of(child, 5000, 64);
    block_of(named, 5000, 64);
    assert_int_equal(pool_stats_of(stage->pool).blocks.current, 2);
}

static void ancestors_are_all_regions_on_the_way_up(void **state) {
    struct stage *stage = *state;
    ebb_region chain[6] = {stage->root};
    for (int i = 1; i < 6; i++)
        chain[i] = OPEN(.parent = chain[i - 1]);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            assert_int_equal(ebb_region_is_ancestor(chain[i], chain[j]), i < j);
    ebb_region side = OPEN(.parent = chain[2]), root = OPEN(.pool = stage->pool);
    assert_true(ebb_region_is_ancestor(chain[0], side));
    assert_false(ebb_region_is_ancestor(chain[3], side));
    assert_false(ebb_region_is_ancestor(side, chain[5]));
    assert_false(ebb_region_is_ancestor(root, chain[1]));
    assert_false(ebb_region_is_ancestor(chain[0], root));
    assert_int_equal(ebb_region_close(chain[4]), 0);
    assert_false(ebb_region_is_ancestor(chain[0], chain[5]));
    assert_false(ebb_region_is_ancestor(chain[4], chain[5]));
    ebb_region_close(root);
}

static void the_parent_is_the_handle_that_was_named(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root), grandchild = OPEN(.parent = child);
    assert_true(same(ebb_region_parent(grandchild), child));
    assert_true(same(ebb_region_parent(child), stage->root));
    assert_false(ebb_region_is_open(ebb_region_parent(stage->root)));
    ebb_region_close(child);
    assert_false(ebb_region_is_open(ebb_region_parent(child)));
}

static void every_byte_of_a_block_leads_to_its_region(void **state) {
    static const size_t sizes[] = {0, 1, 16, 1000, 1024, 1025, 4096, 100000};
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ebb_region owner = i % 2 ? child : stage->root;
        char *block = block_of(owner, sizes[i], 16);
        for (size_t at = 0; at <= sizes[i]; at += sizes[i] / 7 + 1)
            assert_true(same(ebb_region_of(block + at - (at == sizes[i] && at)), owner));
    }
}

static void pointers_of_others_lead_to_no_region(void **state) {
    struct stage *stage = *state;
    int local = 0;
    void *heap = malloc(16), *block = block_of(stage->root, 5000, 64);
    assert_false(ebb_region_is_open(ebb_region_of(NULL)));
    assert_false(ebb_region_is_open(ebb_region_of(&local)));
    assert_false(ebb_region_is_open(ebb_region_of(heap)));
    assert_false(ebb_region_is_open(ebb_region_of((void *)UINTPTR_MAX)));
    assert_true(ebb_region_is_open(ebb_region_of(block)));
    ebb_region_close(stage->root);
    assert_false(ebb_region_is_open(ebb_region_of(block)));
    free(heap);
}

static void a_strict_close_refuses_live_blocks_and_open_children(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.name = "strict", .pool = stage->pool);
    ebb_region child = OPEN(.name = "kid", .parent = region);
    void *small = block_of(region, 100, 16), *large = block_of(region, 5000, 64);
    struct ebb_region_stats before = stats_of(region);
    assert_refused(ebb_region_close_strict(region), EBB_E_CHILD_OPEN);
    assert_text_names("strict");
    assert_text_names("kid");
    assert_int_equal(ebb_region_close_strict(child), 0);
    assert_refused(ebb_region_close_strict(region), EBB_E_LIVE_BLOCKS);
    assert_text_names("2 live blocks");
    assert_text_names("5100");
    struct ebb_region_stats after = stats_of(region);
    before.children = 0;
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ebb_region_release(region, small), 0);
    assert_refused(ebb_region_close_strict(region), EBB_E_LIVE_BLOCKS);
    assert_true(pattern_holds(large, 5000, 5000));
    assert_int_equal(ebb_region_release(region, large), 0);
    assert_int_equal(ebb_region_close_strict(region), 0);
    assert_refused(ebb_region_close_strict(region), EBB_E_STALE);
}

static void a_sealed_region_takes_no_blocks_but_children_and_releases(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    void *small = block_of(region, 100, 16), *large = block_of(region, 5000, 64);
    assert_int_equal(ebb_region_seal(region), 0);
    assert_int_equal(ebb_region_seal(region), 0);
    assert_no_block(ebb_region_alloc(region, 1, 1), EBB_E_SEALED);
    assert_no_block(ebb_region_alloc(region, 5000, 64), EBB_E_SEALED);
    assert_no_block(ebb_region_alloc_zeroed(region, 1, 1), EBB_E_SEALED);
    assert_no_block(ebb_region_alloc_array(region, 2, 8, 8), EBB_E_SEALED);
    assert_no_block(ebb_region_realloc(region, NULL, 8, 8), EBB_E_SEALED);
    ebb_region child = OPEN(.parent = region);
    block_of(child, 100, 16);
    assert_int_equal(ebb_region_release(region, small), 0);
    assert_int_equal(ebb_region_release(region, large), 0);
    assert_no_block(ebb_region_alloc(region, 100, 16), EBB_E_SEALED);
    assert_int_equal(stats_of(region).blocks.current, 0);
}

static void a_region_can_be_sealed_from_the_start(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root, .sealed = true);
    assert_no_block(ebb_region_alloc(region, 1, 1), EBB_E_SEALED);
    assert_no_block(ebb_region_alloc(region, 2 * MIB, 1), EBB_E_SEALED);
    assert_int_equal(ebb_region_reset(region, EBB_KEEP_ALL), 0);
    assert_no_block(ebb_region_alloc(region, 1, 1), EBB_E_SEALED);
    assert_int_equal(stats_of(region).reserved.total, 0);
}

static void thousands_of_regions_are_open_at_once(void **state) {
    enum { COUNT = 5000 };
    static ebb_region regions[COUNT];
    static void *blocks[COUNT];
    struct stage *stage = *state;
    for (int i = 0; i < COUNT; i++) {
        regions[i] = OPEN(.parent = i % 10 ? regions[i - i % 10] : stage->root);
        blocks[i] = block_of(regions[i], (size_t)i % 3000, 16);
    }
    ebb_check_pool(stage->pool);
    for (int i = 0; i < COUNT; i++)
        assert_true(pattern_holds(blocks[i], (size_t)i % 3000, (unsigned)i % 3000));
    assert_int_equal(pool_stats_of(stage->pool).open_regions, COUNT + 1);
    for (int i = COUNT - 10; i >= 0; i -= 20)
        assert_int_equal(ebb_region_close(regions[i]), 0);
    assert_int_equal(pool_stats_of(stage->pool).open_regions, COUNT / 2 + 1);
}

static void a_chain_of_thousands_closes_from_its_root(void **state) {
    struct stage *stage = *state;
    ebb_region at = stage->root;
    for (int i = 0; i < 3000; i++)
        at = OPEN(.parent = at);
    block_of(at, 5000, 64);
    assert_true(ebb_region_is_ancestor(stage->root, at));
    assert_int_equal(ebb_region_close(stage->root), 0);
    assert_false(ebb_region_is_open(at));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(an_empty_region_costs_no_pages),
        STAGED(closed_handles_stay_stale_whatever_is_opened_since),
        cmocka_unit_test(a_failed_open_gives_a_handle_that_every_call_refuses),
        STAGED(closing_a_parent_closes_its_descendants_and_only_them),
        STAGED(children_close_in_any_order),
        STAGED(a_child_lives_on_its_parents_pool),
        STAGED(ancestors_are_all_regions_on_the_way_up),
        STAGED(the_parent_is_the_handle_that_was_named),
        STAGED(every_byte_of_a_block_leads_to_its_region),
        STAGED(pointers_of_others_lead_to_no_region),
        STAGED(a_strict_close_refuses_live_blocks_and_open_children),
        STAGED(a_sealed_region_takes_no_blocks_but_children_and_releases),
        STAGED(a_region_can_be_sealed_from_the_start),
        STAGED(thousands_of_regions_are_open_at_once),
        STAGED(a_chain_of_thousands_closes_from_its_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
