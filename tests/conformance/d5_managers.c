// SPDX-License-Identifier: Apache-2.0
/*
 * d5_managers.c - lending, sealing, long-lived owners (D5 of the conformance cases, from DJL).
 *
 * 69: DJL's system manager is above all others, and closing it is an error. Roots are the
 * program's here, and close like any region; what is above them is the pool, and no region at all.
 */
#include "conformance/counted.h"

#define T EBB_OBJECT_TENSOR

static void c60_a_lent_object_comes_back(void **state) {
    struct counted *counted = *state;
    ebb_region manager = scope_in(counted->outside), other = OPEN(.pool = counted->pool);
    struct ebb_tensor *array = floats(manager, 3);
    assert_int_equal(ebb_object_borrow(array, other), 0);
    assert_true(ebb_region_owns(other, array));
    ebb_region_close(other);
    assert_true(ebb_region_owns(manager, array));
    assert_floats(array, 3);
    ebb_region_close(manager);
}

static void c61_results_land_where_the_caller_says(void **state) {
    struct counted *counted = *state;
    ebb_region manager = scope_in(counted->outside), below = scope_in(manager);
    struct ebb_tensor *array = floats(manager, 3);
    int64_t shape = 2, stride = 1;
    struct ebb_tensor *there = ebb_tensor_view(below, array, 1, &shape, &stride, 1);
    struct ebb_tensor *here = ebb_tensor_view(manager, array, 1, &shape, &stride, 1);
    assert_true(ebb_region_owns(below, there) && ebb_region_owns(manager, here));
    ebb_region_close(manager);
}

static void c62_a_sealed_region_takes_no_objects(void **state) {
    struct counted *counted = *state;
    ebb_region manager = scope_in(counted->outside), inner = scope_in(manager);
    struct ebb_tensor *result = floats(inner, 3);
    int64_t three = 3;
    assert_int_equal(ebb_region_seal(manager), 0);
    assert_no_block(ebb_tensor_new(manager, F32, 1, &three), EBB_E_SEALED);
    assert_no_block(ebb_object_move_outer(inner, result), EBB_E_SEALED);
    assert_true(ebb_region_owns(inner, result));
    ebb_region_close(manager);
}

static void c63_a_sealed_region_lends_and_takes_back(void **state) {
    struct counted *counted = *state;
    ebb_region manager = scope_in(counted->outside), other = scope_in(counted->outside);
    struct ebb_tensor *array = floats(manager, 3);
    assert_int_equal(ebb_region_seal(manager), 0);
    assert_non_null(floats(other, 1));
    assert_int_equal(ebb_object_borrow(array, other), 0);
    assert_int_equal(ebb_region_close(other), 0);
    assert_true(ebb_region_owns(manager, array));
    ebb_region_close(manager);
}

/* Unregistering from a scope is moving to its manager, a region around it. */
static void c64_two_stacked_scopes(void **state) {
    struct counted *counted = *state;
    ebb_region manager = scope_in(counted->outside), outer = scope_in(manager);
    ebb_region inner = scope_in(outer);
    void *x = floats(inner, 1), *y = floats(inner, 2);
    assert_int_equal(ebb_object_end(x), 0);
    y = ebb_object_move(y, manager);
    ebb_region_close(inner);
    assert_true(is_live(y));
    void *z = ebb_object_detach(floats(outer, 3)), *r = floats(outer, 4);
    ebb_region_close(outer);
    assert_true(is_live(y) && !is_live(r) && is_live(z));
    ebb_region_close(manager);
    assert_true(!is_live(y) && is_live(z));
}

static void c65_children_of_a_sealed_region_are_open(void **state) {
    struct counted *counted = *state;
    ebb_region manager = scope_in(counted->outside);
    ebb_region_seal(manager);
    ebb_region child = scope_in(manager);
    assert_non_null(floats(child, 3));
    ebb_region_close(manager);
}

static void c67_a_refused_attachment_keeps_the_owner(void **state) {
    struct counted *counted = *state;
    ebb_region manager = scope_in(counted->outside), sealed = scope_in(manager);
    struct ebb_tensor *array = floats(manager, 3);
    struct v before = v_since(counted, T);
    ebb_region_seal(sealed);
    assert_refused(ebb_object_attach(array, sealed), EBB_E_SEALED);
    assert_true(ebb_region_owns(manager, array));
    ebb_region_close(sealed);
    assert_refused(ebb_object_attach(array, sealed), EBB_E_STALE);
    assert_true(ebb_region_owns(manager, array));
    assert_v(counted, T, before);
    ebb_region_close(manager);
}

static void c69_what_is_above_all_regions_is_not_closed(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *array = floats(counted->outside, 3);
    assert_refused(ebb_region_close(ebb_region_parent(counted->outside)), EBB_E_STALE);
    assert_refused(ebb_pool_destroy(counted->pool), EBB_E_BUSY);
    assert_true(ebb_region_is_open(counted->outside) && is_live(array));
    assert_floats(array, 3);
}

static void c70_a_long_lived_table_does_not_grow(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *table = floats(counted->outside, 1000);
    struct ebb_object_counts counts;
    for (int call = 0; call < 1000; call++) {
        ebb_region request = scope_in(counted->outside);
        int64_t shape = 16, stride = 1;
        struct ebb_tensor *row = ebb_tensor_view(request, table, 1, &shape, &stride, call % 900);
        assert_true(((float *)row->data)[0] == (float)(call % 900));
        floats(request, 16);
        assert_int_equal(ebb_region_read_objects(request, T, &counts), 0);
        assert_int_equal(counts.live, 2);
        ebb_region_close(request);
        assert_int_equal(table->storage->tensors, 1);
        assert_int_equal(ebb_region_read_objects(counted->outside, T, &counts), 0);
        assert_int_equal(counts.live, 1);
    }
    assert_v(counted, T, V(1, 0, 2000, 2000, 0, 0, 1));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        COUNTED(c60_a_lent_object_comes_back),
        COUNTED(c61_results_land_where_the_caller_says),
        COUNTED(c62_a_sealed_region_takes_no_objects),
        COUNTED(c63_a_sealed_region_lends_and_takes_back),
        COUNTED(c64_two_stacked_scopes),
        COUNTED(c65_children_of_a_sealed_region_are_open),
        COUNTED(c67_a_refused_attachment_keeps_the_owner),
        COUNTED(c69_what_is_above_all_regions_is_not_closed),
        COUNTED(c70_a_long_lived_table_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
