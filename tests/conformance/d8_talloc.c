// SPDX-License-Identifier: Apache-2.0
/*
 * d8_talloc.c - part D8: talloc's tree. A talloc chunk with children is a region of ours, a leaf
 * is a block, steal is promotion, "size" is requested bytes and "blocks" counts both.
 *
 * Not ours: 109 to 112, 116g and what 113 and 114 say of references: a block has one owner. A
 * destructor is a cleanup, which is a region's: one that fails keeps nothing alive (113; see
 * tests/unit/cleanup.c), and it cannot end a region that is closing (116b). Names cost no chunk
 * and 2 GiB are no limit (113).
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

/* What the cleanup of a region that is being closed saves for an ancestor, and what it ends. */
struct saving {
    struct ebb_cleanup node;
    ebb_region region, other;
    struct ebb_survivor survivor;
    int result;
};

static int save(void *data) {
    struct saving *saving = data;
    saving->result = ebb_promote(saving->region, saving->other, &saving->survivor, 1, NULL);
    return 0;
}

static void c116a_what_a_cleanup_saves_outlives_its_region(void **state) {
    struct stage *stage = *state;
    for (int mode = EBB_PROMOTE_AUTO; mode <= EBB_PROMOTE_RELINK; mode++) {
        ebb_region parent = OPEN(.parent = stage->root), region = OPEN(.parent = parent);
        struct saving saving = {.region = region, .other = stage->root};
        saving.survivor = survivor_of(block_of(region, 5000, 64), mode);
        saving.node = (struct ebb_cleanup){.run = save, .data = &saving};
        assert_int_equal(ebb_cleanup_add(region, &saving.node), 0);
        assert_int_equal(ebb_region_close(parent), 0);
        assert_int_equal(saving.result, 0);
        void *saved = saving.survivor.block;
        assert_ptr_equal(ebb_region_of(saved).lane, stage->root.lane);
        assert_true(pattern_holds(saved, 5000, 5000));
        assert_conserved(stage->pool);
        assert_int_equal(ebb_region_release(stage->root, saved), 0);
    }
}

static int end_other(void *data) {
    struct saving *saving = data;
    saving->result = ebb_region_close(saving->other);
    return 0;
}

/* The cleanup of level 5 would end level 3, around it, while that ends; and ends one beside it. */
static void c116b_a_cleanup_ends_what_does_not_end_already(void **state) {
    struct stage *stage = *state;
    for (int beside = 0; beside < 2; beside++) {
        ebb_region levels[6] = {OPEN(.parent = stage->root)};
        for (int i = 1; i < 5; i++)
            levels[i] = OPEN(.parent = levels[i - 1]);
        ebb_region sibling = OPEN(.parent = levels[4]); /* the older: its turn is after level 5 */
        levels[5] = OPEN(.parent = levels[4]);
        block_of(sibling, 5000, 64);
        struct saving ending = {.other = beside ? sibling : levels[3]};
        ending.node = (struct ebb_cleanup){.run = end_other, .data = &ending};
        assert_int_equal(ebb_cleanup_add(levels[5], &ending.node), 0);
        assert_int_equal(ebb_region_close(levels[0]), 0);
        assert_int_equal(ending.result, beside ? 0 : EBB_E_BUSY);
        assert_false(ebb_region_is_open(levels[0]) || ebb_region_is_open(levels[3]));
        assert_false(ebb_region_is_open(levels[5]) || ebb_region_is_open(sibling));
    }
    assert_int_equal(pool_stats_of(stage->pool).blocks.current, 0);
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

/* Where a tag is set when the chunk is there, ours is the type that an object is made of. */
static void c116i_an_object_is_of_its_type_alone(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor =
        ebb_tensor_new(stage->root, (struct ebb_dtype){EBB_INT, 8, 1}, 1, (int64_t[]){3});
    assert_ptr_equal(ebb_object_as(tensor, &ebb_type_tensor), tensor);
    assert_no_block(ebb_object_as(tensor, &ebb_type_sample), EBB_E_TYPE);
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
        CASE(c116a_what_a_cleanup_saves_outlives_its_region),
        CASE(c116b_a_cleanup_ends_what_does_not_end_already),
        CASE(c116h_a_region_keeps_its_name_over_resets),
        CASE(c116i_an_object_is_of_its_type_alone),
        CASE(c116j_a_hundred_threads_move_one_block_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
