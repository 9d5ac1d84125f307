// SPDX-License-Identifier: Apache-2.0
/*
 * d4_packed.c - packed sequences in scopes (D4 of the conformance cases, from TorchSharp).
 *
 * TorchSharp counts the four members of a packed sequence made in a scope as detached, because it
 * takes them out of the scope's set. Ours count as `joined`; all else, and what lives, agrees.
 */
#include "conformance/counted.h"

#define T EBB_OBJECT_TENSOR

static uint32_t packed_kind(void) {
    return ebb_type_packed.kind;
}

/* [1,2,3,4] and [5,6], packed in any order; the inputs have ended. */
static struct ebb_packed *packed_in(ebb_region region, bool sorted) {
    struct ebb_tensor *sequences[2] = {floats(region, 4), floats(region, 2)};
    struct ebb_pack_options options = {.size = sizeof options, .enforce_sorted = sorted};
    struct ebb_packed *packed = ebb_sequences_pack(region, sequences, 2, &options);
    assert_non_null(packed);
    assert_int_equal(ebb_object_end(sequences[0]), 0);
    assert_int_equal(ebb_object_end(sequences[1]), 0);
    return packed;
}

static void assert_whole(const struct ebb_packed *packed) {
    static const float data[] = {0, 0, 1, 1, 2, 3};
    assert_true(is_live(packed) && is_live(packed->data) && is_live(packed->batch_sizes));
    assert_int_equal(ebb_tensor_count(packed->data), 6);
    assert_memory_equal(packed->data->data, data, sizeof data);
}

static void assert_both(const struct counted *counted, struct v tensors, struct v packed) {
    struct v sum = {0};
    const uint64_t *t = (const uint64_t *)&tensors, *p = (const uint64_t *)&packed;
    uint64_t *s = (uint64_t *)&sum;
    for (size_t i = 0; i < sizeof sum / sizeof *s; i++)
        s[i] = t[i] + p[i];
    assert_v(counted, T, tensors);
    assert_v(counted, packed_kind(), packed);
    assert_v(counted, EBB_OBJECT_ALL, sum);
}

static uint64_t joined_since(const struct counted *counted) {
    return counts_now(T).joined - counted->before[T].joined;
}

static void c43_c45_outside(void **state) {
    struct counted *counted = *state;
    struct ebb_packed *packed = packed_in(counted->outside, false);
    assert_both(counted, V(6, 2, 0, 0, 0, 0, 4), V(1, 0, 0, 0, 0, 0, 1));
    assert_ptr_equal(ebb_object_detach(packed), packed);
    assert_both(counted, V(6, 2, 0, 0, 0, 0, 4), V(1, 0, 0, 0, 0, 0, 1));
    assert_whole(packed);
}

static void c46_outside_then_ended(void **state) {
    struct counted *counted = *state;
    struct ebb_packed *packed = packed_in(counted->outside, false);
    assert_int_equal(ebb_object_end(packed), 0);
    assert_both(counted, V(6, 6, 0, 0, 0, 0, 0), V(1, 1, 0, 0, 0, 0, 0));
    assert_refused(ebb_object_end(packed), EBB_E_RELEASED);
    assert_both(counted, V(6, 6, 0, 0, 0, 0, 0), V(1, 1, 0, 0, 0, 0, 0));
}

static void c44_c47_attached_then_ended_or_closed(void **state) {
    struct counted *counted = *state;
    for (int close = 0; close < 2; close++) {
        uint64_t n = (uint64_t)close;
        ebb_region scope = scope_in(counted->outside);
        struct ebb_packed *packed = packed_in(counted->outside, false);
        assert_int_equal(ebb_object_attach(packed, scope), 0);
        assert_both(counted, V(6 + 6 * n, 2 + 2 * n, 0, 4 * n, 0, 0, 4),
                    V(1 + n, 0, 0, n, 1 + n, 0, 1));
        if (close)
            ebb_region_close(scope);
        else
            assert_int_equal(ebb_object_end(packed), 0);
        assert_both(counted, V(6 + 6 * n, 2 + 2 * n, 0, 4 + 4 * n, 0, 0, 0),
                    V(1 + n, 0, 0, 1 + n, 1 + n, 0, 0));
    }
}

static void c48_attached_then_detached(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_packed *packed = packed_in(counted->outside, false);
    assert_int_equal(ebb_object_attach(packed, scope), 0);
    assert_ptr_equal(ebb_object_detach(packed), packed);
    assert_both(counted, V(6, 2, 0, 0, 0, 0, 4), V(1, 0, 0, 0, 1, 1, 1));
    ebb_region_close(scope);
    assert_both(counted, V(6, 2, 0, 0, 0, 0, 4), V(1, 0, 0, 0, 1, 1, 1));
    assert_whole(packed);
}

static void c49_c50_c52_in_a_scope(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_packed *packed = packed_in(scope, false);
    assert_both(counted, V(0, 0, 6, 2, 0, 0, 4), V(0, 0, 1, 0, 0, 0, 1));
    assert_int_equal(joined_since(counted), 4);
    assert_int_equal(ebb_object_attach(packed, scope), 0);
    assert_both(counted, V(0, 0, 6, 2, 0, 0, 4), V(0, 0, 1, 0, 0, 0, 1));
    ebb_region_close(scope);
    assert_both(counted, V(0, 0, 6, 6, 0, 0, 0), V(0, 0, 1, 1, 0, 0, 0));
}

static void c52_in_a_scope_then_ended(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    assert_int_equal(ebb_object_end(packed_in(scope, false)), 0);
    assert_both(counted, V(0, 0, 6, 6, 0, 0, 0), V(0, 0, 1, 1, 0, 0, 0));
    ebb_region_close(scope);
    assert_both(counted, V(0, 0, 6, 6, 0, 0, 0), V(0, 0, 1, 1, 0, 0, 0));
}

static void c51_c53_detached_from_a_scope(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_packed *packed = ebb_object_detach(packed_in(scope, false));
    assert_both(counted, V(0, 0, 6, 2, 0, 0, 4), V(0, 0, 1, 0, 0, 1, 1));
    ebb_region_close(scope);
    assert_both(counted, V(0, 0, 6, 2, 0, 0, 4), V(0, 0, 1, 0, 0, 1, 1));
    assert_whole(packed);
}

static void c54_a_packed_sequence_is_one_object(void **state) {
    struct counted *counted = *state;
    for (int sorted = 0; sorted < 2; sorted++) {
        ebb_region scope = scope_in(counted->outside);
        packed_in(scope, sorted);
        assert_int_equal(ebb_region_list_objects(scope, NULL, 0), 1);
        ebb_region_close(scope);
    }
}

static void c55_absent_members_are_no_obstacle(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_packed *packed = packed_in(scope, true);
    assert_null(packed->sorted_indices);
    assert_null(packed->unsorted_indices);
    packed = ebb_object_move_outer(scope, packed);
    assert_whole(packed);
    ebb_region_close(scope);
    assert_whole(packed);
    assert_int_equal(ebb_object_end(packed), 0);
    assert_v(counted, EBB_OBJECT_ALL, V(0, 3, 5, 2, 0, 1, 0));
}

static void c56_through_three_scopes(void **state) {
    struct counted *counted = *state;
    ebb_region other = scope_in(counted->outside), outer = scope_in(counted->outside);
    ebb_region inner = scope_in(outer);
    struct ebb_packed *packed = ebb_object_move_outer(inner, packed_in(inner, false));
    ebb_region_close(inner);
    assert_whole(packed);
    assert_true(is_live(packed->sorted_indices) && is_live(packed->unsorted_indices));
    packed = ebb_object_move(packed, other);
    ebb_region_close(outer);
    assert_whole(packed);
    const void *data = packed->data;
    ebb_region_close(other);
    assert_false(is_live(packed) || is_live(data));
}

static void c57_a_member_does_not_go_alone(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_packed *packed = packed_in(scope, false);
    assert_no_block(ebb_object_move_outer(scope, packed->data), EBB_E_MEMBER);
    assert_no_block(ebb_object_detach(packed->batch_sizes), EBB_E_MEMBER);
    assert_whole(packed);
    ebb_region_close(scope);
}

static void c58_a_member_that_ended_is_not_ended_again(void **state) {
    struct counted *counted = *state;
    ebb_region scope = scope_in(counted->outside);
    struct ebb_packed *packed = packed_in(scope, false);
    assert_int_equal(ebb_object_end(packed->data), 0);
    assert_null(packed->data);
    assert_v(counted, T, V(0, 0, 6, 3, 0, 0, 3));
    assert_int_equal(ebb_object_end(packed), 0);
    assert_both(counted, V(0, 0, 6, 6, 0, 0, 0), V(0, 0, 1, 1, 0, 0, 0));
    ebb_region_close(scope);
}

static int register_types(void **state) {
    (void)state;
    return ebb_type_register(&ebb_type_packed);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        COUNTED(c43_c45_outside),
        COUNTED(c46_outside_then_ended),
        COUNTED(c44_c47_attached_then_ended_or_closed),
        COUNTED(c48_attached_then_detached),
        COUNTED(c49_c50_c52_in_a_scope),
        COUNTED(c52_in_a_scope_then_ended),
        COUNTED(c51_c53_detached_from_a_scope),
        COUNTED(c54_a_packed_sequence_is_one_object),
        COUNTED(c55_absent_members_are_no_obstacle),
        COUNTED(c56_through_three_scopes),
        COUNTED(c57_a_member_does_not_go_alone),
        COUNTED(c58_a_member_that_ended_is_not_ended_again),
    };
    return cmocka_run_group_tests(tests, register_types, NULL);
}
