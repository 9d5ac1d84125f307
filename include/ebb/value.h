// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/value.h - one number, given to a function that writes it into tensors of any dtype.
 *
 *     ebb_tensor_fill(tensor, ebb_value_int(-1));
 *     options.padding = ebb_value_float(0.5);
 *
 * A value must be held exactly by the dtype that it goes to, else the call fails with EBB_E_VALUE:
 * 300 is no int8, 0.5 no integer, 2 no bool, and 0.1, which is nearest to a double, no float32
 * (0.1f is). Infinities and NaN are held by every floating-point dtype; -0.0 is 0 to an integer.
 * A struct of zeros is the integer 0, which every dtype with numbers holds.
 */
#ifndef EBB_VALUE_H
#define EBB_VALUE_H

#include <ebb/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ebb_value_kind {
    EBB_VALUE_INT = 0,     /* i */
    EBB_VALUE_UINT = 1,    /* u */
    EBB_VALUE_FLOAT = 2,   /* f */
    EBB_VALUE_COMPLEX = 3, /* f and imaginary */
    EBB_VALUE_BOOL = 4     /* b; 0 or 1 to all other dtypes */
};

/* One number, passed by value. Which member of the union counts follows from the kind. */
struct ebb_value {
    enum ebb_value_kind kind;
    union {
        int64_t i;  /* any signed integer */
        uint64_t u; /* any unsigned integer */
        double f;   /* any floating-point number, or the real part of a complex one */
        bool b;     /* true or false */
    };
    double imaginary; /* of a complex number; else 0 and not looked at */
};

/*
 * How values are made. Any thread; nothing can fail: whether a dtype holds the value is found out
 * where it is written. Each is a copy, valid as long as its owner likes.
 */

/* A signed integer. For every dtype whose range it is in; bool holds 0 and 1. */
static inline struct ebb_value ebb_value_int(int64_t i) {
    struct ebb_value value = {EBB_VALUE_INT, {i}, 0};
    return value;
}

/* An unsigned integer: the same, for those above INT64_MAX. */
static inline struct ebb_value ebb_value_uint(uint64_t u) {
    struct ebb_value value = {EBB_VALUE_UINT, {0}, 0};
    value.u = u;
    return value;
}

/*
 * A floating-point number. For integer dtypes it must be an integer; for narrower ones it must
 * survive the way there and back: 65504.0 is a float16, 65505.0 is none.
 */
static inline struct ebb_value ebb_value_float(double f) {
    struct ebb_value value = {EBB_VALUE_FLOAT, {0}, 0};
    value.f = f;
    return value;
}

/* A complex number; held by other dtypes if its imaginary part is 0. */
static inline struct ebb_value ebb_value_complex(double real, double imaginary) {
    struct ebb_value value = {EBB_VALUE_COMPLEX, {0}, imaginary};
    value.f = real;
    return value;
}

/* True or false; 1 or 0 for dtypes of numbers. */
static inline struct ebb_value ebb_value_bool(bool b) {
    struct ebb_value value = {EBB_VALUE_BOOL, {0}, 0};
    value.b = b;
    return value;
}

#ifdef __cplusplus
}
#endif

#endif
