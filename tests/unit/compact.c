// SPDX-License-Identifier: Apache-2.0
/*
 * compact.c - views that travel alone get blocks of their own before anything else goes: a limit
 * that is met in them, or in what goes along, leaves no trace of any. One that sees nothing, too.
 * In shared memory copies are where others write only if what they are of was.
 */
#include "kit/boxes.h"
#include "kit/sight.h"
#include "kit/tensors.h"

#include <ebb/ragged.h>

/* Every third element, from the second on, of as many rows. */
static struct ebb_tensor *column_of(ebb_region region, const struct ebb_tensor *base) {
    struct ebb_tensor *column =
        ebb_tensor_view(region, base, 1, SIZES(base->shape[0]), SIZES(3), 1);
    assert_non_null(column);
    return column;
}

static void assert_column(const struct ebb_tensor *column, int64_t rows) {
    assert_true(ebb_tensor_is_contiguous(column));
    for (int64_t row = 0; row < rows; row++)
        assert_int_equal(element_at(column, row), 3 * row + 1);
}

/* A small view, a large one, and a tensor go; true if so much more than they have is enough. */
static bool is_enough(struct stage *stage, size_t more) {
    struct ebb_own_options compact = {.size = sizeof compact, .compact = true};
    static size_t used;
    ebb_region target = OPEN(.parent = stage->root, .limit_bytes = more ? used + more : MIB);
    ebb_region inner = OPEN(.parent = target);
    struct ebb_tensor *bases[] = {counting(inner, SHAPE(60, 3)), counting(inner, SHAPE(6000, 3))};
    void *objects[] = {column_of(inner, bases[0]), column_of(inner, bases[1]),
                       floats_in(inner, 100)};
    used = stats_of(target).subtree_used;
    struct sight below = sight_of(inner), above = sight_of(target);
    int result = ebb_objects_promote(inner, target, objects, 3, &compact, NULL);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    if (result) {
        assert_refused(result, EBB_E_REGION_LIMIT);
        assert_sight_same(inner, &below);
        assert_sight_same(target, &above);
        assert_int_equal(bases[0]->storage->tensors + bases[1]->storage->tensors, 4);
    } else {
        assert_column(objects[0], 60);
        assert_column(objects[1], 6000);
    }
    assert_true(floats_hold(objects[2], 100));
    assert_int_equal(ebb_region_close(target), 0);
    return result == 0;
}

static void a_limit_refuses_compact_views_and_all_that_goes_along(void **state) {
    struct stage *stage = *state;
    assert_true(is_enough(stage, 0));
    size_t more = 64;
    while (!is_enough(stage, more))
        more += 64;
    assert_in_range(more, 60 * 4 + 6000 * 4 + 400, 60 * 4 + 6000 * 4 + 400 + 1024);
}

/* Elements in shared memory are a block of their own, which nothing else may lie in. */
static void a_view_of_nothing_in_shared_memory_lies_apart(void **state) {
    (void)state;
    struct ebb_own_options compact = {.size = sizeof compact, .compact = true};
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 16 * MIB);
    ebb_region target = OPEN(.pool = pool);
    ebb_region inner = OPEN(.parent = target);
    struct ebb_tensor *before = counting(target, SHAPE(7));
    struct ebb_tensor *base = counting(inner, SHAPE(7));
    void *view = ebb_tensor_view(inner, base, SHAPE(0), SIZES(1), 3);
    assert_int_equal(ebb_objects_promote(inner, target, &view, 1, &compact, NULL), 0);
    struct ebb_tensor *after = counting(target, SHAPE(7));
    assert_int_equal(ebb_check_pool(pool), 0);
    assert_shape(view, SHAPE(0));
    assert_int_equal(ebb_object_end(view), 0);
    ASSERT_ELEMENTS(before, 0, 1, 2, 3, 4, 5, 6);
    ASSERT_ELEMENTS(after, 0, 1, 2, 3, 4, 5, 6);
    assert_int_equal(ebb_objects_end_but(target, NULL, 0), 0);
    assert_int_equal(ebb_region_close(inner), 0);
    assert_int_equal(stats_of(target).blocks.current, 0);
    assert_int_equal(ebb_region_close(target), 0);
    pool_end(pool);
}

enum { MADE_THERE, MOVED_THERE, LENT, MADE_BY_EBB, ORIGINS };

static struct ebb_tensor *tensor_from(int origin, ebb_region region, ebb_region ordinary) {
    struct ebb_tensor *tensor = counting(origin == MADE_THERE ? region : ordinary, SHAPE(7));
    if (origin == MOVED_THERE)
        tensor = ebb_object_move(tensor, region);
    if (origin == LENT)
        tensor = ebb_tensor_import(region, ebb_tensor_export(tensor, EBB_EXCHANGE_COPY),
                                   EBB_EXCHANGE_SHARE);
    if (origin == MADE_BY_EBB)
        tensor = ebb_sequences_join(region, &tensor, 1)->offsets;
    assert_non_null(tensor);
    return tensor;
}

static bool is_in_slot(ebb_region region, const struct ebb_tensor *tensor) {
    return ebb_region_offset(region, tensor->data) != SIZE_MAX;
}

/* Offsets, for one, by which ebb goes. */
static void what_was_in_the_safe_stays_there_when_it_is_compact(void **state) {
    struct ebb_own_options compact = {.size = sizeof compact, .compact = true};
    struct stage *stage = *state;
    ebb_pool *pool = POOL(.kind = EBB_KIND_SHARED, .slots = 1, .slot_bytes = 16 * MIB);
    for (int origin = 0; origin < ORIGINS; origin++) {
        ebb_region target = OPEN(.pool = pool), inner = OPEN(.parent = target);
        struct ebb_tensor *base = tensor_from(origin, inner, stage->root);
        void *object = ebb_tensor_view(inner, base, SHAPE(1), SIZES(1), 1);
        assert_int_equal(is_in_slot(target, base), origin == MADE_THERE);
        assert_int_equal(ebb_objects_promote(inner, target, &object, 1, &compact, NULL), 0);
        struct ebb_tensor *view = object;
        assert_int_equal(view->storage->bytes, ebb_dtype_bytes(base->dtype));
        assert_int_equal(is_in_slot(target, view), origin == MADE_THERE || origin == LENT);
        assert_int_equal(element_at(view, 0), origin == MADE_BY_EBB ? 7 : 1);
        assert_int_equal(ebb_check_pool(pool), 0);
        assert_int_equal(ebb_object_end(view), 0);
        assert_int_equal(ebb_region_close(inner), 0);
        assert_int_equal(stats_of(target).blocks.current, 0);
        assert_int_equal(ebb_region_close(target), 0);
    }
    pool_end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_limit_refuses_compact_views_and_all_that_goes_along),
        cmocka_unit_test(a_view_of_nothing_in_shared_memory_lies_apart),
        STAGED(what_was_in_the_safe_stays_there_when_it_is_compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
