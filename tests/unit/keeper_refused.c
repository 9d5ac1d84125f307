// SPDX-License-Identifier: Apache-2.0
/*
 * keeper_refused.c - a root gives nothing back while there are no entries for a cut, and is whole;
 * and what is refused to it leaves it as it was.
 */
#include "kit/test.h"

#include "failure/fault.h"
#include "region/region.h"

#define BYTES (4 * MIB)

static ebb_region begin_step(const struct stage *stage) {
    ebb_region step = OPEN(.pool = stage->pool, .parent = stage->root);
    block_of(step, 5000, 64);
    return step;
}

static void end_steps(const struct stage *stage, unsigned count) {
    while (count--)
        assert_int_equal(ebb_region_close(begin_step(stage)), 0);
}

/* Whoever wants more than `left` entries has to acquire some. */
static void use_up(struct piece_store *store, unsigned left) {
    assert_true(piece_prepare(store, left));
    while (store->ready > left || store->current != store->last)
        assert_non_null(piece_take(store));
}

/* At the end of the eighth step the pages between two blocks would go. */
static void give_without_entries(struct stage *stage, struct piece_store *store, unsigned left) {
    void *first = block_of(stage->root, 3000, 64), *large = block_of(stage->root, BYTES, 64);
    void *last = block_of(stage->root, 3000, 64);
    size_t before = stats_of(stage->root).reserved.current;
    assert_int_equal(ebb_region_release(stage->root, large), 0);
    end_steps(stage, 7);
    ebb_region step = begin_step(stage);
    use_up(store, left);
    fault_arm(1, true);
    assert_int_equal(ebb_region_close(step), 0);
    assert_true(fault_disarm() > 0);
    assert_int_equal(stats_of(stage->root).reserved.current, before);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    end_steps(stage, 4);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_true(stats_of(stage->root).reserved.current < before / 4);
    assert_int_equal(ebb_region_release(stage->root, first), 0);
    assert_int_equal(ebb_region_release(stage->root, last), 0);
}

static void none_of_the_region(void **state) {
    struct stage *stage = *state;
    give_without_entries(stage, &((struct region *)stage->root.lane)->store, 0);
}

static void one_of_the_region(void **state) {
    struct stage *stage = *state;
    give_without_entries(stage, &((struct region *)stage->root.lane)->store, 1);
}

static void none_of_the_pool(void **state) {
    struct stage *stage = *state;
    give_without_entries(stage, &stage->pool->pages.store, 0);
}

static void one_of_the_pool(void **state) {
    struct stage *stage = *state;
    give_without_entries(stage, &stage->pool->pages.store, 1);
}

/* It never had a child. */
static void a_root_whose_child_is_refused_is_no_keeper(void **state) {
    struct stage *stage = *state;
    const struct region *root = (struct region *)stage->root.lane;
    ebb_region child = ebb_region_open(EBB_REGION_OPTIONS(.parent = stage->root,
                                                          .hint_bytes = SIZE_MAX / 2));
    assert_false(ebb_region_is_open(child));
    assert_false(root->keeper);
    child = OPEN(.parent = stage->root);
    assert_true(root->keeper);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(none_of_the_region),
        STAGED(one_of_the_region),
        STAGED(none_of_the_pool),
        STAGED(one_of_the_pool),
        STAGED(a_root_whose_child_is_refused_is_no_keeper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
