// SPDX-License-Identifier: Apache-2.0
/*
 * d8_talloc.c - part D8: talloc's tree. A talloc chunk with children is a region of ours, a leaf
 * is a block, steal is promotion, "size" is requested bytes and "blocks" counts both.
 *
 * Left to later parts: 109 to 112, 116g (references), 116a, 116b (destructors), 116i (types).
 * Parts of 113 and 114 that need references or destructors, too.
 */
#include "conformance/law.h"
#include "kit/text.h"

#include <pthread.h>

static void c113_odd_sizes_and_pointers(void **state) {
    struct stage *stage = *state;
    unsigned char *zeroed = ebb_region_alloc_zeroed(stage->root, 20, 1);
    assert_true(zeroed && zeroed[19] == 0);
    assert_int_equal(ebb_region_release(stage->root, NULL), 0); /* talloc: -1; ours as free() */
    assert_no_block(ebb_region_alloc_array(stage->root, SIZE_MAX / 8 + 1, 8, 8), EBB_E_SIZE);
    assert_no_block(ebb_region_realloc(stage->root, zeroed, SIZE_MAX - 20, 1), EBB_E_SIZE);
    ebb_region other = OPEN(.pool = stage->pool);
    assert_refused(ebb_region_release(other, zeroed), EBB_E_FOREIGN); /* by a non-owner */
    assert_int_equal(ebb_region_release(stage->root, zeroed), 0);     /* by the parent */
    assert_int_equal(ebb_region_close(other), 0);
}

static void c114_realloc_counts_what_is_there_now(void **state) {
    struct stage *stage = *state;
    void *block = block_of(stage->root, 10, 1);
    block = ebb_region_realloc(stage->root, block, 20, 1);
    assert_non_null(block);
    assert_int_equal(stats_of(stage->root).requested.current, 20);
    ebb_region child = OPEN(.parent = stage->root), grandchild = OPEN(.parent = child);
    void *deep = block_of(grandchild, 30, 1);
    deep = ebb_region_realloc(grandchild, deep, 40, 1);
    assert_non_null(deep);
    assert_int_equal(pool_stats_of(stage->pool).requested.current, 60);
    assert_no_block(ebb_region_realloc(child, deep, 0, 1), EBB_E_FOREIGN); /* wrong parent */
    assert_int_equal(ebb_region_block_bytes(grandchild, deep), 40);
    deep = ebb_region_realloc(grandchild, deep, 0, 1); /* talloc frees; ours is empty, not gone */
    assert_int_equal(ebb_region_block_bytes(grandchild, deep), 0);
    assert_int_equal(ebb_region_release(grandchild, deep), 0);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(pool_stats_of(stage->pool).requested.current, 20);
}

static void c115_regions_stay_right_when_blocks_move(void **state) {
    static const size_t counts[] = {100, 200, 300};
    struct stage *stage = *state;
    ebb_region children[3];
    void *blocks[3];
    for (int i = 0; i < 3; i++) {
        children[i] = OPEN(.parent = stage->root);
        blocks[i] = block_of(children[i], 8, 8);
        block_of(children[i], 8, 8);
    }
    for (int i = 0; i < 3; i++) {
        blocks[i] = ebb_region_realloc(children[i], blocks[i], counts[i] * 8, 8);
        assert_true(pattern_holds(blocks[i], 8, 8));
        assert_ptr_equal(ebb_region_of(blocks[i]).lane, children[i].lane);
        assert_ptr_equal(ebb_region_parent(children[i]).lane, stage->root.lane);
    }
}

static void c116_stealing_counts_every_byte_once(void **state) {
    struct stage *stage = *state;
    ebb_region child = OPEN(.parent = stage->root);
    struct ebb_survivor list[] = {survivor_of(block_of(child, 10, 1), EBB_PROMOTE_COPY),
                                  survivor_of(block_of(child, 20, 1), EBB_PROMOTE_COPY)};
    assert_int_equal(stats_of(child).requested.current, 30);
    struct ebb_region_stats before = stats_of(child);
    assert_int_equal(ebb_promote(child, child, list, 2, NULL), 0); /* to itself: nothing */
    struct ebb_region_stats after = stats_of(child);
    assert_memory_equal(&before, &after, sizeof before);
    struct ebb_survivor none = survivor_of(NULL, EBB_PROMOTE_COPY);
    assert_refused(ebb_promote(child, stage->root, &none, 1, NULL), EBB_E_ARGUMENT);
    assert_int_equal(ebb_close_keeping(child, stage->root, list, 2, NULL, NULL), 0);
    assert_int_equal(stats_of(stage->root).requested.current, 30);
    assert_int_equal(stats_of(stage->root).blocks.current, 2);
}

static void c116h_a_region_keeps_its_name_over_resets(void **state) {
    struct stage *stage = *state;
    static struct page page;
    ebb_region region = OPEN(.name = "formatted name 7", .parent = stage->root);
    for (int round = 0; round < 2; round++) {
        assert_true(ebb_region_is_open(OPEN(.parent = region)));
        block_of(region, 100, 16);
        assert_int_equal(ebb_region_reset(region, 0), 0);
        memset(&page, 0, sizeof page);
        assert_int_equal(ebb_report_region(region, EBB_REPORT_TEXT, page_write, &page), 0);
        assert_memory_equal(page.text, "formatted name 7:", 17);
        assert_int_equal(page_count(&page, "\n"), 1);
    }
}

enum { THREADS = 100 };

static pthread_mutex_t main_tree = PTHREAD_MUTEX_INITIALIZER;

/* Everything below one root belongs to one thread at a time: whoever holds the lock. */
static void *move_one_block(void *context) {
    ebb_region *root = context;
    pthread_mutex_lock(&main_tree);
    ebb_region child = OPEN(.parent = *root);
    struct ebb_survivor survivor = survivor_of(ebb_region_alloc(child, 100, 16), EBB_PROMOTE_AUTO);
    int result = ebb_close_keeping(child, *root, &survivor, 1, NULL, NULL);
    pthread_mutex_unlock(&main_tree);
    return result == 0 ? context : NULL;
}

static void c116j_a_hundred_threads_move_one_block_each(void **state) {
    struct stage *stage = *state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, move_one_block, &stage->root), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &stage->root);
    }
    assert_int_equal(stats_of(stage->root).requested.current, 10000);
    assert_int_equal(stats_of(stage->root).blocks.current, THREADS);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        CASE(c113_odd_sizes_and_pointers),
        CASE(c114_realloc_counts_what_is_there_now),
        CASE(c115_regions_stay_right_when_blocks_move),
        CASE(c116_stealing_counts_every_byte_once),
        CASE(c116h_a_region_keeps_its_name_over_resets),
        CASE(c116j_a_hundred_threads_move_one_block_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
