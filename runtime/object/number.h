// SPDX-License-Identifier: Apache-2.0
/*
 * number.h - the numbers in tensors, read and written exactly.
 *
 * Numbers of all dtypes pass through one of three wide forms: int64_t, uint64_t (of uint64 only)
 * and double. Complex numbers are two of their parts. Each step from one dtype to another says
 * whether the value stayed what it was:
 *
 *     elements --read--> wide form of their kind --change--> that of the other --write--> elements
 *
 * Integers of less than a byte lie one behind the other in an element, from its low bits on:
 *
 *     int4x3   | lane 1, lane 0 | 0, lane 2 |        int4   | 0, lane 0 |
 *
 * Bits that belong to no lane are written as 0 and not looked at.
 */
#ifndef EBB_OBJECT_NUMBER_H
#define EBB_OBJECT_NUMBER_H

#include <ebb/tensor.h>

enum number_kind {
    NUMBER_BOOL,
    NUMBER_INT8,
    NUMBER_INT16,
    NUMBER_INT32,
    NUMBER_INT64,
    NUMBER_UINT8,
    NUMBER_UINT16,
    NUMBER_UINT32,
    NUMBER_UINT64,
    NUMBER_FLOAT16,
    NUMBER_BFLOAT16,
    NUMBER_FLOAT32,
    NUMBER_FLOAT64
};

union number {
    int64_t i;
    uint64_t u; /* NUMBER_UINT64 */
    double f;   /* NUMBER_FLOAT16 and those behind it */
};

/* True if a double is 0, of either sign; from its bits, as some modes of processors take any small
 * number for 0. */
static inline bool number_is_zero(union number number) {
    return (number.u & (UINT64_MAX >> 1)) == 0;
}

/* A dtype as numbers of one kind. */
struct number_type {
    enum number_kind kind; /* of the parts; NUMBER_INT8 or NUMBER_UINT8 if smaller than a byte */
    int bits;              /* of a part */
    int parts;             /* of a lane: 2 of complex numbers, else 1 */
    int lanes;
};

enum { NUMBER_ELEMENT_BYTES = 256 }; /* the largest elements that are filled and converted */

/* False with EBB_E_DTYPE: unusual, larger than NUMBER_ELEMENT_BYTES, or none. */
bool number_type_of(struct ebb_dtype dtype, struct number_type *type);

/* Reads number `at` of each of `count` elements that lie `stride` bytes apart. */
void numbers_read(const struct number_type *type, int at, union number *numbers, const void *from,
                  int64_t stride, size_t count);

/* From the wide form of one kind to that of another; false if any value is lost. */
bool numbers_change(enum number_kind from, enum number_kind to, union number *numbers,
                    size_t count);

/* Writes number `at` of elements `stride` bytes apart; false if any is not held exactly. */
bool numbers_write(const struct number_type *type, int at, const union number *numbers, void *to,
                   int64_t stride, size_t count);

/* True if `to` holds every number of `from`. */
bool number_always_fits(const struct number_type *from, const struct number_type *to);

/* The number, in the wide form of its kind, as text; returns the length. */
int number_describe(enum number_kind kind, union number number, char *text, size_t room);

#endif
