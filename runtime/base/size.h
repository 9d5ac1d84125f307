// SPDX-License-Identifier: Apache-2.0
/*
 * size.h - all arithmetic on sizes, checked, in one place.
 *
 * Nothing else in ebb multiplies, adds or rounds a size that a caller chose. A function that may
 * meet the end of the address space says by its result whether the true value fits, and does not
 * wrap; those without such a result are for values that were checked before. Sizes above
 * EBB_SIZE_MAX (half the address space) are refused at the door, so that differences of pointers
 * stay representable.
 */
#ifndef EBB_BASE_SIZE_H
#define EBB_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EBB_PAGE ((size_t)4096)
#define EBB_UNIT ((size_t)64) /* blocks of the large lane start and end at multiples of this */
#define EBB_SIZE_MAX ((size_t)PTRDIFF_MAX)

static inline bool size_is_power_of_two(size_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

static inline bool size_add(size_t a, size_t b, size_t *sum) {
    return !__builtin_add_overflow(a, b, sum) && *sum <= EBB_SIZE_MAX;
}

static inline bool size_multiply(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product) && *product <= EBB_SIZE_MAX;
}

/* Rounds up to a power of two `step`; false if the result does not fit. */
static inline bool size_round_up(size_t value, size_t step, size_t *rounded) {
    if (!size_add(value, step - 1, rounded))
        return false;
    *rounded &= ~(step - 1);
    return true;
}

/* For values that are known to be far from the end of the address space. */
static inline uintptr_t size_align(uintptr_t value, size_t step) {
    return (value + (step - 1)) & ~(uintptr_t)(step - 1);
}

static inline uintptr_t size_align_down(uintptr_t value, size_t step) {
    return value & ~(uintptr_t)(step - 1);
}

static inline size_t size_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t size_larger(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
