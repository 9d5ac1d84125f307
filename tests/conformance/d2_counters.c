// SPDX-License-Identifier: Apache-2.0
/*
 * d2_counters.c - counters of tensors, in scopes and outside (D2, D3 of the conformance cases).
 *
 * To end or to close once more counts nothing in either; it is a no-op in TorchSharp, and says
 * EBB_E_RELEASED, or EBB_E_STALE, here (20, 27, 30, 36).
 */
#include "conformance/counted.h"

#define T EBB_OBJECT_TENSOR

static void c24_c28_c41_created_then_closed(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_tensor *t = floats(scope, 3);
    assert_v(counted, T, V(0, 0, 1, 0, 0, 0, 1));
    ebb_region_close(scope_in(scope));
    assert_v(counted, T, V(0, 0, 1, 0, 0, 0, 1));
    assert_true(is_live(t));
    ebb_region_close(scope);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
}

static void c25_attaching_to_the_owner_changes_nothing(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_tensor *t = floats(scope, 3);
    assert_int_equal(ebb_object_attach(t, scope), 0);
    assert_v(counted, T, V(0, 0, 1, 0, 0, 0, 1));
    assert_int_equal(moved_since(counted, T), 0);
    ebb_region_close(scope);
}

static void c26_c29_detached_objects_outlive_the_scope(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_tensor *t = ebb_object_detach(floats(scope, 3));
    assert_non_null(t);
    assert_v(counted, T, V(0, 0, 1, 0, 0, 1, 1));
    ebb_region_close(scope);
    assert_v(counted, T, V(0, 0, 1, 0, 0, 1, 1));
    assert_floats(t, 3);
}

static void c27_c20_ending_twice_counts_once(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_tensor *t = floats(scope, 3);
    assert_int_equal(ebb_object_end(t), 0);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
    assert_refused(ebb_object_end(t), EBB_E_RELEASED);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
    ebb_region_close(scope);
    assert_refused(ebb_region_close(scope), EBB_E_STALE);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
}

static void c30_a_parameter_takes_over_and_counts_once(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_tensor *t = floats(scope, 3);
    const void *data = t->data;
    struct ebb_tensor *parameter = ebb_tensor_take(t);
    assert_non_null(parameter);
    assert_ptr_equal(parameter->data, data);
    assert_v(counted, T, V(0, 0, 1, 0, 0, 0, 1));
    assert_refused(ebb_object_end(t), EBB_E_RELEASED);
    assert_v(counted, T, V(0, 0, 1, 0, 0, 0, 1));
    assert_floats(parameter, 3);
    ebb_region_close(scope);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
}

static void c31_detached_then_ended(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    assert_int_equal(ebb_object_end(ebb_object_detach(floats(scope, 3))), 0);
    assert_v(counted, T, V(0, 1, 1, 0, 0, 1, 0));
    ebb_region_close(scope);
}

static void c32_moved_outward_and_closed(void **state) {
    struct counted *counted = *state;
    ebb_region outer = scope_in(counted->outside), inner = scope_in(outer);
    assert_non_null(ebb_object_move_outer(inner, floats(inner, 3)));
    ebb_region_close(inner);
    ebb_region_close(outer);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
    assert_int_equal(moved_since(counted, T), 1);
}

static void c33_c35_c36_outside_of_scopes(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *t = floats(counted->outside, 3);
    assert_v(counted, T, V(1, 0, 0, 0, 0, 0, 1));
    assert_ptr_equal(ebb_object_detach(t), t);
    assert_v(counted, T, V(1, 0, 0, 0, 0, 0, 1));
    assert_int_equal(ebb_object_end(t), 0);
    assert_refused(ebb_object_end(t), EBB_E_RELEASED);
    assert_v(counted, T, V(1, 1, 0, 0, 0, 0, 0));
}

static void c34_c37_attached_then_ended(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *t = floats(counted->outside, 3);
    ebb_region scope = scope_in(counted->outside);
    assert_int_equal(ebb_object_attach(t, scope), 0);
    assert_v(counted, T, V(1, 0, 0, 0, 1, 0, 1));
    assert_int_equal(ebb_object_end(t), 0);
    assert_v(counted, T, V(1, 0, 0, 1, 1, 0, 0));
    ebb_region_close(scope);
    assert_v(counted, T, V(1, 0, 0, 1, 1, 0, 0));
}

static void c38_attached_then_closed(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *t = floats(counted->outside, 3);
    ebb_region scope = scope_in(counted->outside);
    assert_int_equal(ebb_object_attach(t, scope), 0);
    ebb_region_close(scope);
    assert_v(counted, T, V(1, 0, 0, 1, 1, 0, 0));
    assert_refused(ebb_object_end(t), EBB_E_RELEASED);
}

static void c39_attached_then_detached(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *t = floats(counted->outside, 3);
    ebb_region scope = scope_in(counted->outside);
    assert_int_equal(ebb_object_attach(t, scope), 0);
    assert_ptr_equal(ebb_object_detach(t), t);
    assert_v(counted, T, V(1, 0, 0, 0, 1, 1, 1));
    ebb_region_close(scope);
    assert_v(counted, T, V(1, 0, 0, 0, 1, 1, 1));
    assert_floats(t, 3);
}

static void c40_a_parameter_outside_of_scopes(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *parameter = ebb_tensor_take(floats(counted->outside, 3));
    assert_int_equal(ebb_object_end(parameter), 0);
    assert_v(counted, T, V(1, 1, 0, 0, 0, 0, 0));
}

static void c42_counters_as_one_line(void **state) {
    (void)state;
    char text[512], expected[512];
    struct ebb_object_counts now = counts_now(EBB_OBJECT_ALL);
    snprintf(expected, sizeof expected,
             "ThreadTotalLive: %llu; CreatedOutsideScopeCount: %llu; "
             "DisposedOutsideScopeCount: %llu; CreatedInScopeCount: %llu; "
             "DisposedInScopeCount: %llu; AttachedToScopeCount: %llu; DetachedFromScopeCount: %llu",
             (unsigned long long)now.live, (unsigned long long)now.created_outside,
             (unsigned long long)now.ended_outside, (unsigned long long)now.created_inside,
             (unsigned long long)now.ended_inside, (unsigned long long)now.attached,
             (unsigned long long)now.detached);
    assert_int_equal(ebb_report_objects(EBB_OBJECT_ALL, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(ebb_report_objects(EBB_OBJECT_ALL, NULL, 0), strlen(expected));
    assert_int_equal(ebb_report_objects(EBB_OBJECT_ALL, NULL, 10), 0);
    assert_int_equal(ebb_last_error(), EBB_E_ARGUMENT);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        COUNTED(c24_c28_c41_created_then_closed),
        COUNTED(c25_attaching_to_the_owner_changes_nothing),
        COUNTED(c26_c29_detached_objects_outlive_the_scope),
        COUNTED(c27_c20_ending_twice_counts_once),
        COUNTED(c30_a_parameter_takes_over_and_counts_once),
        COUNTED(c31_detached_then_ended),
        COUNTED(c32_moved_outward_and_closed),
        COUNTED(c33_c35_c36_outside_of_scopes),
        COUNTED(c34_c37_attached_then_ended),
        COUNTED(c38_attached_then_closed),
        COUNTED(c39_attached_then_detached),
        COUNTED(c40_a_parameter_outside_of_scopes),
        COUNTED(c42_counters_as_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
