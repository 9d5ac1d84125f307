// SPDX-License-Identifier: Apache-2.0
/*
 * alone.c - tensors that nobody else has to do with end by a look at one word. Whatever makes that
 * untrue takes the word back; and the newest that ends at once counts like every other.
 */
#include "kit/tensors.h"

#include "object/object.h"

static const int64_t shape[] = {4, 3, 2};

/* Not the region's first tensor of its kind, which is made in another way. */
static struct ebb_tensor *made(ebb_region region) {
    struct ebb_tensor *first = counting(region, 1, SIZES(1));
    struct ebb_tensor *tensor = counting(region, 3, shape);
    assert_non_null(first);
    return tensor;
}

static bool is_alone(const struct ebb_tensor *tensor) {
    return (tensor->object.state & OBJECT_ALONE) != 0;
}

static void check(ebb_region region) {
    object_check_all((struct region *)region.lane);
}

static void assert_counts(const struct ebb_tensor *tensor) {
    for (int32_t i = 0; i < 24; i++)
        assert_int_equal(element_at(tensor, i), i);
}

static struct ebb_tensor *view_of(ebb_region region, const struct ebb_tensor *base) {
    struct ebb_tensor *view = ebb_tensor_view(region, base, 3, shape, SIZES(6, 2, 1), 0);
    assert_non_null(view);
    return view;
}

static void a_new_tensor_is_alone_and_a_view_is_not(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *first = counting(stage->root, 3, shape), *next = made(stage->root);
    assert_true(is_alone(first) && is_alone(next));
    assert_false(is_alone(view_of(stage->root, next)));
    assert_true(is_alone(first) && !is_alone(next));
    check(stage->root);
}

static void the_storage_of_a_tensor_that_was_seen_outlives_it(void **state) {
    struct stage *stage = *state;
    ebb_region below = OPEN(.parent = stage->root);
    for (int i = 0; i < 2; i++) {
        ebb_region where = i ? below : stage->root;
        struct ebb_tensor *base = made(stage->root), *view = view_of(where, base);
        assert_int_equal(ebb_object_end(base), 0);
        assert_refused(ebb_object_end(base), EBB_E_RELEASED);
        for (int more = 0; more < 50; more++)
            assert_non_null(ebb_tensor_new_zeroed(stage->root, INT32, 3, shape));
        assert_counts(view);
        check(where);
        assert_int_equal(ebb_object_end(view), 0);
    }
}

static void one_that_was_seen_once_ends_as_ever(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = made(stage->root);
    assert_int_equal(ebb_object_end(view_of(stage->root, base)), 0);
    check(stage->root);
    uint64_t blocks = stats_of(stage->root).blocks.current;
    assert_int_equal(ebb_object_end(base), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, blocks - 1);
}

struct pair {
    struct ebb_object object;
    struct ebb_object *left;
};

static const struct ebb_field pair_fields[] = {EBB_FIELD(struct pair, EBB_FIELD_OBJECT, left)};
static struct ebb_type pair_type = {
    .name = "pair", .bytes = sizeof(struct pair), .fields = pair_fields, .field_count = 1};

static void a_member_leaves_its_composite_when_it_ends(void **state) {
    struct stage *stage = *state;
    assert_int_equal(ebb_type_register(&pair_type), 0);
    struct pair *pair = ebb_object_new(stage->root, &pair_type, 0);
    struct ebb_tensor *member = made(stage->root);
    pair->left = &member->object;
    assert_int_equal(ebb_object_compose(pair), 0);
    assert_false(is_alone(member));
    check(stage->root);
    assert_int_equal(ebb_object_end(member), 0);
    assert_null(pair->left);
}

static void one_that_another_region_has_ends_in_its_list(void **state) {
    struct stage *stage = *state;
    ebb_region below = OPEN(.parent = stage->root);
    for (int lend = 0; lend < 2; lend++) {
        struct ebb_tensor *tensor = made(stage->root);
        assert_int_equal(lend ? ebb_object_borrow(tensor, below)
                              : ebb_object_attach(tensor, below), 0);
        assert_false(is_alone(tensor));
        check(stage->root);
        check(below);
        assert_int_equal(ebb_region_list_objects(below, NULL, 0), 1);
        assert_int_equal(ebb_object_end(tensor), 0);
        assert_int_equal(ebb_region_list_objects(below, NULL, 0), 0);
    }
}

static void who_takes_over_has_the_storage_of_another(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *tensor = made(stage->root), *taker = ebb_tensor_take(tensor);
    assert_false(is_alone(taker));
    check(stage->root);
    assert_counts(taker);
    assert_int_equal(ebb_object_end(taker), 0);
    check(stage->root);
}

static void what_was_promoted_ends_where_it_went(void **state) {
    struct stage *stage = *state;
    ebb_region below = OPEN(.parent = stage->root);
    struct ebb_tensor *tensor = made(below);
    void *list[] = {tensor};
    assert_int_equal(ebb_objects_close_keeping(below, stage->root, list, 1, NULL, NULL, NULL), 0);
    assert_counts(list[0]);
    check(stage->root);
    assert_int_equal(ebb_object_end(list[0]), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

/* Ends are refused as they are everywhere: see bad_input; here, what a closed region leaves. */
static void nothing_of_a_closed_region_is_alone(void **state) {
    struct stage *stage = *state;
    ebb_region closed = OPEN(.pool = stage->pool);
    struct ebb_tensor *tensor = made(closed);
    assert_int_equal(ebb_region_close(closed), 0);
    assert_refused(ebb_object_end(tensor), EBB_E_FOREIGN);
    ebb_region again = OPEN(.pool = stage->pool);
    char *block = ebb_region_alloc(again, 1000, 64);
    assert_non_null(block);
    assert_true(ebb_object_end(block) != 0);
    assert_int_equal(ebb_region_close(again), 0);
}

static void the_newest_that_ends_counts_like_every_other(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *kept = made(stage->root), *old = counting(stage->root, 3, shape);
    struct ebb_tensor *top = counting(stage->root, 3, shape);
    assert_int_equal(ebb_object_end(top), 0);
    struct counted before = counted_of(stage->root);
    for (uint64_t i = 1; i <= 70000; i++) {
        struct ebb_tensor *tensor = ebb_tensor_new(stage->root, INT32, 3, shape);
        assert_int_equal(ebb_object_end(tensor), 0);
        if (i % 7777 && i != 70000)
            continue;
        struct ebb_pool_stats pool = pool_stats_of(stage->pool); /* without folding */
        struct counted now = counted_of(stage->root);
        assert_int_equal(now.stats.blocks.total, before.stats.blocks.total + i);
        assert_int_equal(pool.blocks.total, now.stats.blocks.total);
        assert_int_equal(pool.requested.total, now.stats.requested.total);
        assert_int_equal(pool.used.total, now.stats.used.total);
        assert_int_equal(pool.used.current, now.stats.used.current);
        assert_int_equal(now.objects.created_outside, before.objects.created_outside + i);
        assert_int_equal(now.objects.ended_outside, before.objects.ended_outside + i);
        assert_int_equal(now.objects.live, before.objects.live);
        assert_int_equal(now.stats.blocks.current, before.stats.blocks.current);
        assert_int_equal(now.stats.blocks.peak, before.stats.blocks.peak);
        assert_int_equal(now.stats.requested.peak, before.stats.requested.peak);
        assert_int_equal(now.stats.used.peak, before.stats.used.peak);
    }
    check(stage->root);
    assert_counts(kept);
    assert_counts(old);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_new_tensor_is_alone_and_a_view_is_not),
        STAGED(the_storage_of_a_tensor_that_was_seen_outlives_it),
        STAGED(one_that_was_seen_once_ends_as_ever),
        STAGED(a_member_leaves_its_composite_when_it_ends),
        STAGED(one_that_another_region_has_ends_in_its_list),
        STAGED(who_takes_over_has_the_storage_of_another),
        STAGED(what_was_promoted_ends_where_it_went),
        STAGED(nothing_of_a_closed_region_is_alone),
        STAGED(the_newest_that_ends_counts_like_every_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
