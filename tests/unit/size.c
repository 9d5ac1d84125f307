// SPDX-License-Identifier: Apache-2.0
/*
 * size.c - the arithmetic that every size passes through: nothing wraps, and every function says
 * whether the true value fits. Boundary pairs lie around EBB_SIZE_MAX and the rounding steps.
 */
#include "kit/test.h"

#include "base/size.h"

static void sums_up_to_half_the_address_space_fit(void **state) {
    size_t sum = 0;
    assert_true(size_add(EBB_SIZE_MAX - 1, 0, &sum));
    assert_true(size_add(EBB_SIZE_MAX - 1, 1, &sum));
    assert_true(sum == EBB_SIZE_MAX);
    assert_false(size_add(EBB_SIZE_MAX - 1, 2, &sum));
    assert_false(size_add(EBB_SIZE_MAX, EBB_SIZE_MAX, &sum));
    assert_false(size_add(SIZE_MAX, 1, &sum));
    assert_false(size_add(SIZE_MAX, SIZE_MAX, &sum));
}

static void products_that_wrap_are_refused(void **state) {
    size_t product = 0;
    size_t root = (size_t)1 << 31;
    assert_true(size_multiply(root, root, &product));
    assert_true(product == (size_t)1 << 62);
    assert_false(size_multiply(root * 2, root, &product));
    assert_false(size_multiply(root * 2, root * 2, &product));
    assert_false(size_multiply(SIZE_MAX, 2, &product));
    assert_true(size_multiply(0, SIZE_MAX, &product));
    assert_int_equal(product, 0);
    assert_true(size_multiply(EBB_SIZE_MAX, 1, &product));
    assert_false(size_multiply(EBB_SIZE_MAX + 1, 1, &product));
}

static void rounding_reaches_the_next_multiple_and_never_wraps(void **state) {
    static const size_t steps[] = {1, 16, 64, 1024, 4096, (size_t)2 << 20};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t step = steps[i], rounded = 1;
        assert_true(size_round_up(0, step, &rounded) && rounded == 0);
        assert_true(size_round_up(1, step, &rounded) && rounded == step);
        assert_true(size_round_up(step, step, &rounded) && rounded == step);
        assert_true(size_round_up(step + 1, step, &rounded));
        assert_true(rounded == (step == 1 ? 2 : 2 * step));
        assert_true(size_round_up(3 * step - 1, step, &rounded));
        assert_true(rounded == (step == 1 ? 2 : 3 * step));
        assert_false(size_round_up(SIZE_MAX, step, &rounded));
        assert_false(size_round_up(EBB_SIZE_MAX + 1, step, &rounded));
    }
}

static void only_powers_of_two_are_powers_of_two(void **state) {
    assert_false(size_is_power_of_two(0));
    for (unsigned bit = 0; bit < 64; bit++) {
        size_t value = (size_t)1 << bit;
        assert_true(size_is_power_of_two(value));
        if (bit > 1) {
            assert_false(size_is_power_of_two(value - 1));
            assert_false(size_is_power_of_two(value + 1));
        }
    }
    assert_false(size_is_power_of_two(SIZE_MAX));
}

static void aligning_moves_up_or_down_to_a_multiple(void **state) {
    for (size_t step = 1; step <= 4096; step *= 2)
        for (uintptr_t value = 3 * step; value <= 4 * step; value++) {
            uintptr_t up = size_align(value, step), down = size_align_down(value, step);
            assert_int_equal(up % step, 0);
            assert_int_equal(down % step, 0);
            assert_true(up >= value && up - value < step);
            assert_true(down <= value && value - down < step);
        }
}

static void the_smaller_and_the_larger_are_what_they_say(void **state) {
    assert_int_equal(size_smaller(3, 4), 3);
    assert_int_equal(size_smaller(4, 3), 3);
    assert_int_equal(size_larger(3, 4), 4);
    assert_int_equal(size_larger(4, 3), 4);
    assert_true(size_larger(SIZE_MAX, 0) == SIZE_MAX);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_up_to_half_the_address_space_fit),
        cmocka_unit_test(products_that_wrap_are_refused),
        cmocka_unit_test(rounding_reaches_the_next_multiple_and_never_wraps),
        cmocka_unit_test(only_powers_of_two_are_powers_of_two),
        cmocka_unit_test(aligning_moves_up_or_down_to_a_multiple),
        cmocka_unit_test(the_smaller_and_the_larger_are_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
