// SPDX-License-Identifier: Apache-2.0
/*
 * loans.c - deleters of producers that call ebb while objects end: they may end others, but not
 * those that are about to end, nor the region while there are such.
 */
#include "kit/boxes.h"
#include "kit/dlpack.h"

/* What the deleter does, and what came of it. */
static struct {
    void *ends;
    ebb_region closes;
    int calls, ended, closed;
} act;

static void return_loan(DLManagedTensor *self) {
    (void)self;
    act.calls++;
    if (act.ends)
        act.ended = ebb_object_end(act.ends);
    for (int i = 0; act.ends && i < 20; i++) /* where it was */
        block_of(act.closes, 256, 16);
    act.closed = ebb_region_close(act.closes);
}

/* A tensor of a producer's bytes; all that the deleter does is about its region. */
static struct ebb_tensor *borrow_bytes(ebb_region region) {
    static int64_t shape[] = {4};
    static float values[4];
    static DLManagedTensor managed = {.deleter = return_loan};
    managed.dl_tensor = (DLTensor){.data = values, .device = {kDLCPU, 0}, .ndim = 1,
                                   .dtype = {kDLFloat, 32, 1}, .shape = shape};
    memset(&act, 0, sizeof act);
    act.closes = region;
    struct ebb_tensor *tensor = ebb_tensor_import(region, &managed, EBB_EXCHANGE_SHARE);
    assert_non_null(tensor);
    return tensor;
}

static void a_region_may_close_when_its_import_is_over(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    assert_int_equal(ebb_object_end(borrow_bytes(region)), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.closed, 0);
    assert_false(ebb_region_is_open(region));
    assert_int_equal(ebb_check_pool(stage->pool), 0);
}

static void members_end_with_their_composite_and_once(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct box *box = box_in(region);
    box->left = &borrow_bytes(region)->object;
    box->right = &floats_in(region, 10)->object;
    assert_int_equal(ebb_object_compose(box), 0);
    act.ends = box->right;
    assert_int_equal(ebb_object_end(box), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.ended, EBB_E_BUSY);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

static void what_ends_with_others_ends_once(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    void *kept = floats_in(region, 10);
    struct ebb_tensor *last = floats_in(region, 10);
    borrow_bytes(region);
    act.ends = last;
    assert_int_equal(ebb_objects_end_but(region, &kept, 1), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.ended, EBB_E_BUSY);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 1);
    assert_true(floats_hold(kept, 10));
    assert_int_equal(ebb_region_close(region), 0);
}

/* The view is newer than the mark, and the last that sees the bytes. */
static void a_rewind_is_not_left_by_the_region(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root), child = OPEN(.parent = region);
    struct ebb_tensor *tensor = borrow_bytes(region);
    ebb_mark mark = ebb_region_mark(region);
    assert_non_null(ebb_tensor_view(region, tensor, 1, (int64_t[]){2}, (int64_t[]){1}, 0));
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(act.calls, 0);
    assert_int_equal(ebb_region_rewind(region, mark), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 0);
    assert_int_equal(ebb_region_close(child), 0);
    assert_int_equal(ebb_region_close(region), 0);
}

/* Two views go as copies; each was the last of its storage. */
static void a_promotion_is_over_when_a_producer_hears_of_it(void **state) {
    struct stage *stage = *state;
    ebb_region region = OPEN(.parent = stage->root);
    struct ebb_own_options compact = {
        .size = sizeof compact, .mode = EBB_PROMOTE_COPY, .compact = true};
    struct ebb_tensor *tensor = borrow_bytes(region), *base = floats_in(region, 100);
    void *views[] = {ebb_tensor_view(region, tensor, 1, (int64_t[]){2}, (int64_t[]){1}, 0),
                     floats_of(region, base, 5, 3)};
    assert_int_equal(ebb_object_end(tensor), 0);
    assert_int_equal(ebb_object_end(base), 0);
    act.ends = views[1];
    assert_int_equal(ebb_objects_promote(region, stage->root, views, 2, &compact, NULL), 0);
    assert_int_equal(act.calls, 1);
    assert_int_equal(act.ended, EBB_E_BUSY);
    assert_int_equal(act.closed, EBB_E_BUSY);
    assert_int_equal(live_in(region), 0);
    assert_int_equal(live_in(stage->root), 2);
    assert_int_equal(ebb_region_close(region), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(a_region_may_close_when_its_import_is_over),
        STAGED(members_end_with_their_composite_and_once),
        STAGED(what_ends_with_others_ends_once),
        STAGED(a_promotion_is_over_when_a_producer_hears_of_it),
        STAGED(a_rewind_is_not_left_by_the_region),
    };
    return cmocka_run_group_tests(tests, boxes_prepare, NULL);
}
