// SPDX-License-Identifier: Apache-2.0
/*
 * lost.c - members whose composite ended or went to another region without them: they and it are
 * nothing to each other from then on, whatever fields say.
 */
#include "kit/boxes.h"
#include "kit/dlpack.h"
#include "kit/tensors.h"
#include "kit/text.h"

/* A region whose serials are lower than its parent's, if `earlier`. */
static ebb_region region_below(struct stage *stage, ebb_region *root, bool earlier) {
    ebb_region first = OPEN(.pool = stage->pool);
    *root = OPEN(.pool = stage->pool);
    if (earlier)
        ebb_region_close(first);
    ebb_region below = OPEN(.parent = *root);
    if (!earlier)
        ebb_region_close(first);
    return below;
}

/* A box that lost a member and went up where it lies, and whose field names that again. */
static struct box *box_that_went(ebb_region below, ebb_region root, void *lost) {
    const struct ebb_own_options options = {.size = sizeof options, .mode = EBB_PROMOTE_RELINK};
    struct box *box = ebb_object_new(below, &box_type, 1 << 20); /* a run of pages of its own */
    void *list[] = {box};
    assert_non_null(box);
    box->left = lost;
    assert_int_equal(ebb_object_compose(box), 0);
    box->left = NULL;
    assert_int_equal(ebb_objects_promote(below, root, list, 1, &options, NULL), 0);
    assert_ptr_equal(list[0], box);
    box->left = lost;
    return box;
}

static void what_stayed_below_is_no_member(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 8; way++) {
        ebb_region root, below = region_below(stage, &root, way % 2);
        struct ebb_object *lost = &floats_in(below, 3)->object;
        struct box *box = box_that_went(below, root, lost);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_refused(ebb_object_compose(box), EBB_E_NOT_OWNED);
        if (way / 2 == 0) {
            assert_int_equal(ebb_object_end(box), 0);
        } else if (way / 2 == 1) {
            assert_int_equal(ebb_object_replace(box, BOX_LEFT, floats_in(root, 4)), 0);
        } else if (way / 2 == 2) {
            assert_int_equal(ebb_object_attach(box, below), 0);
            assert_int_equal(live_in(below), 2);
            assert_ptr_equal(ebb_object_detach(box), box);
        } else {
            box->left = NULL;
        }
        assert_true(is_object(lost) && ebb_region_owns(below, lost));
        assert_refused(ebb_object_attach(lost, root), EBB_E_MEMBER);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(live_in(below), 1);
        assert_int_equal(ebb_object_end(lost), 0);
        assert_int_equal(ebb_region_close(root), 0);
    }
}

/* It gets something newer, which makes nothing newer in a list that its region has not got. */
static void what_stayed_below_makes_nothing_newer(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 2; way++) {
        ebb_region root, below = region_below(stage, &root, way);
        struct box *lost = box_in(below), *box = box_that_went(below, root, lost);
        struct ebb_tensor *other = floats_in(root, 5), *own = floats_in(below, 6);
        ebb_mark mark = ebb_region_mark(below);
        lost->left = &floats_in(below, 3)->object;
        assert_int_equal(ebb_object_compose(lost), 0);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_rewind(below, mark), 0);
        assert_true(is_object(box) && is_object(other) && is_object(own));
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(live_in(root), 2);
        assert_int_equal(ebb_region_close(root), 0);
    }
}

/* What was lent to the region that closes, or from it, has a member again that others count. */
static void what_is_counted_elsewhere_does_not_end_with_others(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 2; way++) {
        ebb_region inner = OPEN(.parent = stage->root), other = OPEN(.parent = stage->root);
        struct box *box = box_in(way ? inner : stage->root);
        struct ebb_object *lost = &floats_in(way ? inner : stage->root, 3)->object;
        uint64_t ended = 77;
        box->left = lost;
        assert_int_equal(ebb_object_compose(box), 0);
        box->left = NULL;
        assert_int_equal(ebb_object_borrow(box, way ? other : inner), 0);
        box->left = lost;
        assert_int_equal(ebb_objects_close_keeping(inner, stage->root, NULL, 0, NULL, NULL,
                                                   &ended), 0);
        assert_int_equal(ended, way ? 2 : 0);
        assert_int_equal(live_in(stage->root), way ? 0 : 2);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_close(other), 0);
        assert_int_equal(ebb_region_reset(stage->root, 0), 0);
    }
}

/* Of what has ended nobody is a level deeper. */
static void what_outlives_its_composite_is_at_the_top(void **state) {
    struct stage *stage = *state;
    struct box *whole = box_in(stage->root), *lost = box_in(stage->root);
    struct box *box = box_in(stage->root);
    whole->left = &lost->object;
    assert_int_equal(ebb_object_compose(whole), 0);
    whole->left = NULL;
    assert_int_equal(ebb_object_end(whole), 0);
    for (int depth = 1; depth < EBB_DEPTH_MAX; depth++) {
        struct box *above = box_in(stage->root);
        above->left = &box->object;
        assert_int_equal(ebb_object_compose(above), 0);
        box = above;
    }
    assert_int_equal(ebb_object_replace(lost, BOX_LEFT, box), 0);
    assert_int_equal(ebb_object_compose(lost), 0);
    assert_int_equal(ebb_object_end(lost), 0);
    assert_int_equal(live_in(stage->root), 0);
}

/* So many boxes in each other, as members are written back when what lost them has gone down. */
static struct box *deep_box(ebb_region region, int depth) {
    struct box *box = box_in(region), *lost[8], *losers[8];
    int count = 0;
    for (int i = 1; i <= depth; i++) {
        struct box *above = box_in(region);
        above->left = &box->object;
        assert_int_equal(ebb_object_compose(above), 0);
        if (i % EBB_DEPTH_MAX == 0) {
            lost[count] = box;
            losers[count++] = above;
            above->left = NULL;
        }
        box = above;
    }
    while (count-- > 0)
        losers[count]->left = &lost[count]->object;
    return box;
}

static size_t boxes_told(const void *box, bool tree) {
    static struct page page;
    memset(&page, 0, sizeof page);
    assert_int_equal((tree ? ebb_report_batch : ebb_report_object)(box, EBB_REPORT_JSON, page_write,
                                                                   &page), 0);
    assert_true(page_is_json(&page));
    return page_count(&page, "\"box\"");
}

/* Whoever goes down level by level stops at the limit. */
static void what_is_found_again_too_deep_is_not_followed(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    for (int depth = EBB_DEPTH_MAX; depth <= 4 * EBB_DEPTH_MAX; depth += EBB_DEPTH_MAX / 2) {
        bool fits = depth == EBB_DEPTH_MAX;
        struct box *box = deep_box(inner, depth), *same = deep_box(inner, depth);
        void *list[] = {box};
        for (int tree = 0; tree < 2; tree++)
            assert_int_equal(boxes_told(box, tree), EBB_DEPTH_MAX + 1);
        assert_int_equal(ebb_batch_equal(box, same), fits);
        if (!fits)
            assert_int_equal(ebb_last_error(), EBB_E_DEPTH);
        if (!fits)
            assert_refused(ebb_objects_promote(inner, stage->root, list, 1, NULL, NULL),
                           EBB_E_DEPTH);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(live_in(inner), 2 * depth + 2);
        assert_int_equal(ebb_object_end(box), 0);
        assert_int_equal(ebb_object_end(same), 0);
        assert_int_equal(live_in(inner), 0);
    }
}

/* The member of a box that has ended, whose place another has now. */
static struct box *box_where_one_was(ebb_region region, struct ebb_object *lost) {
    struct box *old = box_in(region);
    old->left = lost;
    assert_int_equal(ebb_object_compose(old), 0);
    old->left = NULL;
    assert_int_equal(ebb_object_end(old), 0);
    struct box *box = box_in(region);
    assert_ptr_equal(box, old);
    box->left = lost;
    return box;
}

static void what_comes_to_lie_where_a_composite_was_does_not_have_its_members(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    for (int way = 0; way < 5; way++) {
        struct ebb_object *lost = &floats_in(inner, 3)->object;
        struct box *box = box_where_one_was(inner, lost);
        void *list[] = {box};
        if (way == 0)
            assert_refused(ebb_object_compose(box), EBB_E_MEMBER);
        else if (way == 1)
            assert_int_equal(ebb_object_replace(box, BOX_LEFT, NULL), 0);
        else if (way == 2)
            assert_refused(ebb_object_replace(box, BOX_RIGHT, lost), EBB_E_MEMBER);
        else if (way == 3)
            assert_refused(ebb_objects_promote(inner, stage->root, list, 1, NULL, NULL),
                           EBB_E_NOT_OWNED);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_object_end(box), 0);
        assert_true(is_object(lost));
        assert_int_equal(live_in(inner), 1);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_object_end(lost), 0);
    }
}

/* The old one is where the new one would be; its other member, too, with numbers that are wrong. */
static void a_sequence_that_cannot_be_made_ends_nobodys_members(void **state) {
    struct stage *stage = *state;
    for (int packed = 0; packed < 2; packed++) {
        struct ebb_tensor *data = ebb_tensor_new_zeroed(stage->root, FLOAT32, SHAPE(3, 1));
        struct ebb_tensor *numbers = ebb_tensor_from(stage->root, INT64, SHAPE(2),
                                                     packed ? SIZES(2, 1) : SIZES(0, 3));
        if (packed) {
            struct ebb_packed *old = ebb_packed_from(stage->root, data, numbers, NULL, NULL);
            assert_non_null(old);
            old->data = NULL;
            assert_int_equal(ebb_object_end(old), 0);
        } else {
            struct ebb_ragged *old = ebb_ragged_from(stage->root, data, numbers);
            assert_non_null(old);
            old->data = NULL;
            assert_int_equal(ebb_object_end(old), 0);
        }
        numbers = ebb_tensor_from(stage->root, INT64, SHAPE(2), SIZES(0, 5));
        struct counted before = counted_of(stage->root);
        if (packed)
            assert_no_block(ebb_packed_from(stage->root, data, numbers, NULL, NULL), EBB_E_MEMBER);
        else
            assert_no_block(ebb_ragged_from(stage->root, data, numbers), EBB_E_MEMBER);
        assert_true(is_object(data) && is_object(numbers));
        assert_nothing_changed(stage->root, &before);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_object_end(data), 0);
        assert_int_equal(ebb_object_end(numbers), 0);
        assert_int_equal(ebb_region_close_strict(stage->root), 0);
        stage->root = OPEN(.pool = stage->pool);
    }
}

/* ---- what counts them goes to another thread ---- */

static struct {
    ebb_region closes;
    int calls, closed;
} act;

static void close_region(DLManagedTensor *managed) {
    (void)managed;
    act.calls++;
    act.closed = ebb_region_close(act.closes);
}

/* A box with a tensor of a producer's bytes, who closes a region when he has them back. */
static struct box *box_of_import(ebb_region region) {
    static int64_t shape[] = {4};
    static float values[4];
    static DLManagedTensor managed = {.deleter = close_region};
    managed.dl_tensor = (DLTensor){.data = values, .device = {kDLCPU, 0}, .ndim = 1,
                                   .dtype = {kDLFloat, 32, 1}, .shape = shape};
    struct ebb_tensor *tensor = ebb_tensor_import(region, &managed, EBB_EXCHANGE_SHARE);
    struct box *box = box_in(region);
    assert_non_null(tensor);
    box->left = &tensor->object;
    assert_int_equal(ebb_object_compose(box), 0);
    return box;
}

/* That of a child, or of another root, or it is the member's own region that goes. */
static void who_counted_one_before_a_hand_over_is_let_alone(void **state) {
    struct stage *stage = *state;
    for (int way = 0; way < 3; way++) {
        ebb_region root = OPEN(.pool = stage->pool);
        ebb_region other = way ? OPEN(.pool = stage->pool) : OPEN(.parent = root);
        struct box *box = box_in(root), *lost = box_of_import(root);
        box->left = &lost->object;
        assert_int_equal(ebb_object_compose(box), 0);
        assert_int_equal(way ? ebb_object_borrow(box, other) : ebb_object_attach(box, other), 0);
        assert_int_equal(live_in(other), 3);
        box->left = NULL;
        assert_int_equal(way ? ebb_object_return(box) : ebb_object_attach(box, root), 0);
        ebb_region *goes = way < 2 ? &other : &root;
        *goes = ebb_region_hand_over(*goes);
        assert_true(ebb_region_is_open(*goes));
        assert_true(ebb_region_owns(root, lost));
        act.calls = 0;
        act.closes = other;
        assert_int_equal(ebb_object_end(lost), 0);
        assert_int_equal(act.calls, 1);
        assert_int_equal(act.closed, 0); /* nothing is at work there */
        assert_int_equal(live_in(root), 1);
        assert_int_equal(ebb_check_pool(stage->pool), 0);
        assert_int_equal(ebb_region_close(root), 0);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(what_stayed_below_is_no_member),
        STAGED(what_stayed_below_makes_nothing_newer),
        STAGED(what_is_counted_elsewhere_does_not_end_with_others),
        STAGED(what_outlives_its_composite_is_at_the_top),
        STAGED(what_is_found_again_too_deep_is_not_followed),
        STAGED(what_comes_to_lie_where_a_composite_was_does_not_have_its_members),
        STAGED(a_sequence_that_cannot_be_made_ends_nobodys_members),
        STAGED(who_counted_one_before_a_hand_over_is_let_alone),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
