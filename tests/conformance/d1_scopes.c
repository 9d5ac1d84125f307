// SPDX-License-Identifier: Apache-2.0
/*
 * d1_scopes.c - objects in scopes (D1 of the conformance cases, from TorchSharp's dispose scopes).
 *
 * Where TorchSharp has no outer scope, ours is the root region: promotion there is detaching.
 */
#include "conformance/counted.h"

#include <pthread.h>

#define T EBB_OBJECT_TENSOR

static bool sees(ebb_region scope, const void *object) {
    void *objects[16];
    size_t count = ebb_region_list_objects(scope, objects, 16);
    for (size_t i = 0; i < count; i++)
        if (objects[i] == object)
            return true;
    return false;
}

static void c1_a_scope_without_an_outer_one(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    void *a1 = floats(scope, 1), *a2 = floats(scope, 2), *a3 = floats(scope, 3);
    void *a4 = floats(scope, 4);
    a2 = ebb_object_detach(a2);
    a3 = ebb_object_move_outer(scope, a3);
    assert_true(sees(scope, a1) && sees(scope, a4) && !sees(scope, a2) && !sees(scope, a3));
    assert_int_equal(ebb_object_end(a4), 0);
    ebb_region_close(scope);
    assert_v(counted, T, V(0, 0, 4, 2, 0, 2, 2));
}

static void c2_what_is_kept_dies_with_the_scope(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    void *a[4];
    for (int i = 0; i < 4; i++)
        a[i] = floats(scope, i + 1);
    assert_int_equal(ebb_objects_end_but(scope, &a[3], 1), 0);
    assert_true(sees(scope, a[3]) && !sees(scope, a[0]) && !sees(scope, a[1]) &&
                !sees(scope, a[2]));
    ebb_region_close(scope);
    assert_false(is_live(a[3]));
    assert_v(counted, T, V(0, 0, 4, 4, 0, 0, 0));
}

static void c3_nested_scopes(void **state) {
    struct counted *counted = *state;
    ebb_region outer = scope_in(counted->outside);
    void *a1 = floats(outer, 1);
    ebb_region inner = scope_in(outer);
    void *a2 = ebb_object_move_outer(inner, floats(inner, 2));
    void *a6 = ebb_object_detach(floats(inner, 6));
    assert_false(sees(inner, a2) || sees(inner, a6) || sees(outer, a6));
    void *a3 = floats(inner, 3), *a4 = floats(inner, 4);
    assert_int_equal(ebb_objects_end_but(inner, &a4, 1), 0);
    assert_true(!is_live(a3) && is_live(a4));
    void *a5 = floats(inner, 5);
    assert_true(ebb_region_owns(inner, a5));
    ebb_object_end(a5);
    assert_false(ebb_region_owns(inner, a5));
    ebb_region_close(inner);
    assert_true(is_live(a1) && !is_live(a4));
    ebb_region_close(outer);
    assert_false(is_live(a1));
}

/* What is computed from `data` is as large; an operation leaves its result, and temporaries. */
static void *computed(ebb_region scope, const struct ebb_tensor *data) {
    return floats(scope, ebb_tensor_count(data));
}

static void c4_c5_temporaries_die_and_a_result_that_moves_out_does_not(void **state) {
    struct counted *counted = *state;
    for (int move = 0; move < 2; move++) {
        struct ebb_tensor *data = floats(counted->outside, 8);
        ebb_region scope = scope_in(counted->outside);
        void *temporaries[2] = {computed(scope, data), computed(scope, data)};
        void *result = computed(scope, data);
        if (move)
            result = ebb_object_move_outer(scope, result);
        assert_true(is_live(temporaries[0]) && is_live(temporaries[1]) && is_live(result));
        ebb_region_close(scope);
        assert_false(is_live(temporaries[0]) || is_live(temporaries[1]));
        assert_int_equal(is_live(result), move);
        assert_floats(data, 8);
        if (move)
            assert_floats(result, 8);
    }
}

static void c6_only_what_is_kept_lives_on_and_not_for_ever(void **state) {
    struct counted *counted = *state;
    struct ebb_tensor *data = floats(counted->outside, 8);
    ebb_region scope = scope_in(counted->outside);
    void *t1 = computed(scope, data), *t2 = computed(scope, data);
    assert_int_equal(ebb_objects_end_but(scope, &t2, 1), 0);
    assert_true(!is_live(t1) && is_live(t2));
    void *sum = computed(scope, t2);
    ebb_region_close(scope);
    assert_false(is_live(t2) || is_live(sum));
    assert_floats(data, 8);
    assert_v(counted, T, V(1, 0, 3, 3, 0, 0, 1));
}

static void c7_nested_scopes_leave_what_lived_before_them(void **state) {
    struct counted *counted = *state;
    uint64_t nothing = counts_now(T).live;
    ebb_region outer = scope_in(counted->outside);
    struct ebb_tensor *data = floats(outer, 8);
    uint64_t live = counts_now(T).live;
    ebb_region inner = scope_in(outer);
    for (int i = 0; i < 3; i++)
        computed(inner, data);
    assert_int_equal(counts_now(T).live, live + 3);
    ebb_region_close(inner);
    assert_int_equal(counts_now(T).live, live);
    ebb_region_close(outer);
    assert_int_equal(counts_now(T).live, nothing);
}

static void c8_a_training_loop_leaves_nothing(void **state) {
    struct counted *counted = *state;
    for (int step = 0; step < 100; step++) {
        ebb_region scope = scope_in(counted->outside);
        for (int layer = 0; layer < 20; layer++)
            floats(scope, 1 + layer * 100);
        ebb_region_close(scope);
    }
    assert_v(counted, T, V(0, 0, 2000, 2000, 0, 0, 0));
}

static void c9_c10_three_levels(void **state) {
    struct counted *counted = *state;
    void *t0a = floats(counted->outside, 1), *t0b = floats(counted->outside, 2);
    assert_ptr_equal(ebb_object_move(t0a, ebb_object_owner(t0b)), t0a);
    ebb_region d1 = scope_in(counted->outside);
    void *t1 = floats(d1, 1);
    ebb_region d2 = scope_in(d1);
    void *t2 = floats(d2, 2);
    ebb_region d3 = scope_in(d2);
    void *t3_0a = floats(d3, 30), *t3_0b = floats(d3, 31), *t3_1 = floats(d3, 32);
    void *t3_2 = floats(d3, 33);
    t3_0a = ebb_object_move(t3_0a, ebb_object_owner(t0a));
    t0b = ebb_object_move(t0b, ebb_object_owner(t3_0b));
    t3_1 = ebb_object_move(t3_1, d1);
    t3_2 = ebb_object_move(t3_2, d2);
    ebb_region_close(d3);
    assert_false(is_live(t3_0b) || is_live(t0b));
    assert_true(is_live(t3_2));
    ebb_region_close(d2);
    assert_true(!is_live(t3_2) && !is_live(t2) && is_live(t3_1));
    ebb_region_close(d1);
    assert_true(!is_live(t3_1) && !is_live(t1) && is_live(t0a) && is_live(t3_0a));
    assert_v(counted, T, V(2, 0, 6, 6, 1, 1, 2));
}

static void c11_c12_moving_to_where_it_is_keeps_it(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    void *x = floats(scope, 3), *y = floats(scope, 4);
    assert_ptr_equal(ebb_object_move(x, scope), x);
    assert_ptr_equal(ebb_object_move(x, ebb_object_owner(y)), x);
    assert_true(ebb_region_owns(scope, x));
    assert_int_equal(moved_since(counted, T), 0);
    ebb_region_close(scope);
    assert_v(counted, T, V(0, 0, 2, 2, 0, 0, 0));
}

static void c13_a_closed_target_is_refused(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside), closed = scope_in(counted->outside);
    void *x = floats(scope, 3);
    ebb_region_close(closed);
    assert_no_block(ebb_object_move(x, closed), EBB_E_STALE);
    assert_true(ebb_region_owns(scope, x));
    ebb_region_close(scope);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
}

static void c14_keeping_what_another_scope_owns_is_refused(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside), other = scope_in(counted->outside);
    void *mine = floats(scope, 3), *x = floats(other, 3);
    assert_refused(ebb_objects_end_but(scope, &x, 1), EBB_E_NOT_OWNED);
    assert_true(is_live(mine) && ebb_region_owns(other, x));
    ebb_region_close(scope);
    assert_true(is_live(x));
    ebb_region_close(other);
}

static void c16_promoting_what_is_not_owned_is_refused(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside), inner = scope_in(scope);
    void *x = floats(scope, 3);
    struct v before = v_since(counted, T);
    assert_no_block(ebb_object_move_outer(inner, x), EBB_E_NOT_OWNED);
    assert_refused(ebb_objects_promote(inner, counted->outside, &x, 1, NULL, NULL),
                   EBB_E_NOT_OWNED);
    assert_v(counted, T, before);
    assert_int_equal(moved_since(counted, T), 0);
    ebb_region_close(scope);
}

static void c17_attaching_from_another_scope_is_a_move(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside), inner = scope_in(scope);
    void *x = floats(scope, 3);
    assert_int_equal(ebb_object_attach(x, inner), 0);
    assert_int_equal(moved_since(counted, T), 1);
    assert_v(counted, T, V(0, 0, 1, 0, 0, 0, 1));
    ebb_region_close(inner);
    assert_false(is_live(x));
    ebb_region_close(scope);
}

static int runs;

static int run(void *data) {
    runs++;
    return data ? 7 : 0;
}

static void c18_a_failing_cleanup_does_not_stop_the_close(void **state) {
    struct counted *counted = *state;
    struct ebb_cleanup cleanups[5];
    struct ebb_closed closed;
    ebb_region scope = scope_in(counted->outside);
    runs = 0;
    for (int i = 0; i < 5; i++) {
        cleanups[i] = (struct ebb_cleanup){.run = run, .data = i == 2 ? cleanups : NULL};
        assert_int_equal(ebb_cleanup_add(scope, &cleanups[i]), 0);
        floats(scope, i);
    }
    assert_refused(ebb_region_close_reporting(scope, &closed), EBB_E_CLEANUP);
    assert_int_equal(runs, 5);
    assert_int_equal(closed.failed, 1);
    assert_int_equal(closed.first_error, 7);
    assert_false(ebb_region_is_open(scope));
    assert_v(counted, T, V(0, 0, 5, 5, 0, 0, 0));
}

/* Ours closes children first, so an inner scope cannot be left over; strict mode says so. */
static void c19_a_child_is_closed_first_or_named(void **state) {
    struct counted *counted = *state;
    ebb_region outer = scope_in(counted->outside), inner = scope_in(outer);
    floats(inner, 3);
    assert_refused(ebb_region_close_strict(outer), EBB_E_CHILD_OPEN);
    ebb_region_close(outer);
    assert_false(ebb_region_is_open(inner));
}

static void c21_a_closed_scope_answers_nothing(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    void *x = floats(counted->outside, 3);
    struct ebb_object_counts counts;
    ebb_region_close(scope);
    assert_false(ebb_region_owns(scope, x));
    assert_int_equal(ebb_region_list_objects(scope, NULL, 0), 0);
    assert_refused(ebb_last_error(), EBB_E_STALE);
    assert_refused(ebb_object_attach(x, scope), EBB_E_STALE);
    assert_no_block(ebb_object_move(x, scope), EBB_E_STALE);
    assert_no_block(ebb_object_move_outer(scope, x), EBB_E_STALE);
    assert_refused(ebb_region_read_objects(scope, T, &counts), EBB_E_STALE);
}

static void *end_there(void *x) {
    assert_int_equal(ebb_object_end(x), 0);
    return NULL;
}

static void c22_ended_on_another_thread(void **state) {
    struct counted *counted = *state;
    pthread_t thread;
    ebb_region scope = scope_in(counted->outside);
    void *x = floats(scope, 3);
    struct ebb_object_counts counts;
    assert_int_equal(pthread_create(&thread, NULL, end_there, x), 0);
    pthread_join(thread, NULL);
    assert_v(counted, T, V(0, 0, 1, 1, 0, 0, 0));
    assert_int_equal(ebb_region_read_objects(scope, T, &counts), 0);
    assert_int_equal(counts.live, 0);
    ebb_region_close(scope);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        COUNTED(c1_a_scope_without_an_outer_one),
        COUNTED(c2_what_is_kept_dies_with_the_scope),
        COUNTED(c3_nested_scopes),
        COUNTED(c4_c5_temporaries_die_and_a_result_that_moves_out_does_not),
        COUNTED(c6_only_what_is_kept_lives_on_and_not_for_ever),
        COUNTED(c7_nested_scopes_leave_what_lived_before_them),
        COUNTED(c8_a_training_loop_leaves_nothing),
        COUNTED(c9_c10_three_levels),
        COUNTED(c11_c12_moving_to_where_it_is_keeps_it),
        COUNTED(c13_a_closed_target_is_refused),
        COUNTED(c14_keeping_what_another_scope_owns_is_refused),
        COUNTED(c16_promoting_what_is_not_owned_is_refused),
        COUNTED(c17_attaching_from_another_scope_is_a_move),
        COUNTED(c18_a_failing_cleanup_does_not_stop_the_close),
        COUNTED(c19_a_child_is_closed_first_or_named),
        COUNTED(c21_a_closed_scope_answers_nothing),
        COUNTED(c22_ended_on_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
