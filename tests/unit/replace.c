// SPDX-License-Identifier: Apache-2.0
/*
 * replace.c - what a field held that was never composed is no member, and what comes into its slot
 * is one: also if both have one address.
 */
#include "kit/boxes.h"

/* The box has in its field what it was given, and no more. */
static void demand_has(struct box *box, ebb_region region, int64_t count) {
    assert_non_null(box->left);
    assert_true(is_object(box->left) && floats_hold((void *)box->left, count));
    assert_ptr_equal(box->left->whole, box);
    assert_int_equal(live_in(region), 2);
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(live_in(region), 0);
}

static void a_slot_takes_what_it_holds_already(void **state) {
    struct stage *stage = *state;
    struct box *box = box_in(stage->root);
    struct ebb_tensor *tensor = floats_in(stage->root, 3);
    box->left = &tensor->object; /* never composed */
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, tensor), 0);
    assert_ptr_equal(box->left, tensor);
    demand_has(box, stage->root, 3);
}

static void a_slot_takes_what_it_holds_already_from_below(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *box = box_in(stage->root);
    struct ebb_tensor *tensor = floats_in(inner, 20000);
    box->left = &tensor->object;
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, tensor), 0);
    assert_ptr_equal(box->left, tensor); /* relinked: it stays where it is */
    ebb_region_close(inner);
    demand_has(box, stage->root, 20000);
}

static void a_slot_takes_what_comes_to_lie_where_its_old_object_ended(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *box = box_in(stage->root);
    struct ebb_tensor *old = floats_in(stage->root, 3), *fresh = floats_in(inner, 3);
    box->left = &old->object;
    assert_int_equal(ebb_object_end(old), 0);
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, fresh), 0);
    assert_ptr_equal(box->left, old); /* or this tests nothing */
    demand_has(box, stage->root, 3);
}

/* What is composed comes from the host, even if the region that the box is in has more. */
static void a_slot_takes_what_is_attached_and_composing_does_not(void **state) {
    struct stage *stage = *state;
    ebb_region inner = OPEN(.parent = stage->root);
    struct box *box = box_in(stage->root);
    struct ebb_tensor *here = floats_in(stage->root, 3), *there = floats_in(stage->root, 4);
    assert_int_equal(ebb_object_attach(box, inner), 0);
    assert_int_equal(ebb_object_attach(there, inner), 0);
    box->right = &there->object;
    assert_refused(ebb_object_compose(box), EBB_E_BORROWED);
    box->right = &here->object;
    assert_int_equal(ebb_object_compose(box), 0);
    assert_true(ebb_region_owns(inner, here));
    assert_int_equal(ebb_object_replace(box, BOX_LEFT, there), 0);
    assert_ptr_equal(box->left, there);
    assert_int_equal(live_in(inner), 3);
    assert_int_equal(live_in(stage->root), 0);
    assert_int_equal(ebb_check_pool(stage->pool), 0);
    assert_int_equal(ebb_region_close(inner), 0);
    assert_int_equal(stats_of(stage->root).blocks.current, 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        STAGED(a_slot_takes_what_it_holds_already),
        STAGED(a_slot_takes_what_it_holds_already_from_below),
        STAGED(a_slot_takes_what_comes_to_lie_where_its_old_object_ended),
        STAGED(a_slot_takes_what_is_attached_and_composing_does_not),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
