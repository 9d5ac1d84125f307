// SPDX-License-Identifier: Apache-2.0
/*
 * narrow.h - floating-point numbers narrower than a double, and the doubles of the same value.
 *
 *     | sign | exponent | mantissa |      float16: 1, 5, 10      bfloat16: 1, 8, 7
 *                                         float32: 1, 8, 23      double:   1, 11, 52
 *
 * They are put together from their bits, and whether a double has a narrow number of the same value
 * is seen from its bits: no mode of the processor that flushes small numbers to zero can make an
 * inexact value pass for an exact one.
 *
 * All of it is inlined into loops over numbers of one kind (number.c), where the layout is known.
 */
#ifndef EBB_OBJECT_NARROW_H
#define EBB_OBJECT_NARROW_H

#include "object/number.h"

#include <string.h>

#define NARROW_HERE static inline __attribute__((always_inline))

#define WIDE_BIAS 1023
#define WIDE_MANTISSA 52
#define WIDE_TOP ((uint64_t)0x7FF << WIDE_MANTISSA) /* infinity; above: NaN */

/* A layout: sign, exponent, mantissa. */
struct narrow {
    int exponent_bits, mantissa_bits;
};

static const struct narrow narrow_float16 = {5, 10}, narrow_bfloat16 = {8, 7},
                           narrow_float32 = {8, 23};

NARROW_HERE int narrow_bias(struct narrow layout) {
    return (1 << (layout.exponent_bits - 1)) - 1;
}

/* Infinity; above: NaN. */
NARROW_HERE uint64_t narrow_top(struct narrow layout) {
    return (((uint64_t)1 << layout.exponent_bits) - 1) << layout.mantissa_bits;
}

/* The bits of the double of the same value. */
NARROW_HERE uint64_t narrow_widen(uint64_t bits, struct narrow layout) {
    int mantissa = layout.mantissa_bits, shift = WIDE_MANTISSA - mantissa;
    uint64_t negative = bits >> (layout.exponent_bits + mantissa), sign = negative << 63;
    uint64_t rest = bits ^ (negative << (layout.exponent_bits + mantissa));
    uint64_t rebias = (uint64_t)(WIDE_BIAS - narrow_bias(layout)) << WIDE_MANTISSA;
    if (rest >= narrow_top(layout))
        return sign | WIDE_TOP | (rest - narrow_top(layout)) << shift;
    if (rest >> mantissa)
        return sign | ((rest << shift) + rebias);
    union number unit = {.u = rebias - ((uint64_t)(mantissa - 1) << WIDE_MANTISSA)};
    union number tiny = {.f = (double)(int64_t)rest * unit.f};
    return sign | tiny.u;
}

/* The bits of the narrow number of the same value; false if there is none. */
NARROW_HERE bool narrow_shrink(uint64_t *bits, struct narrow layout) {
    int mantissa = layout.mantissa_bits, shift = WIDE_MANTISSA - mantissa;
    uint64_t negative = *bits >> 63, sign = negative << (layout.exponent_bits + mantissa);
    uint64_t rest = *bits ^ (negative << 63);
    uint64_t fraction = rest & (((uint64_t)1 << WIDE_MANTISSA) - 1);
    int exponent = (int)(rest >> WIDE_MANTISSA) - WIDE_BIAS + narrow_bias(layout);
    if (rest >= WIDE_TOP) {
        uint64_t kept = fraction >> shift;
        *bits = sign | narrow_top(layout) |
                (fraction && !kept ? (uint64_t)1 << (mantissa - 1) : kept);
        return true;
    }
    if (rest == 0) {
        *bits = sign;
        return true;
    }
    if (exponent < 1) { /* small: the leading 1 is written out */
        fraction |= (uint64_t)1 << WIDE_MANTISSA;
        shift += 1 - exponent;
        exponent = 0;
    }
    if (shift > WIDE_MANTISSA || exponent >= (1 << layout.exponent_bits) - 1 ||
        fraction & (((uint64_t)1 << shift) - 1))
        return false;
    *bits = sign | (uint64_t)exponent << mantissa | fraction >> shift;
    return true;
}

/* Both for float32, as the processor does it, where no mode of it matters. */
NARROW_HERE uint64_t narrow_widen_single(uint64_t bits) {
    uint64_t exponent = bits & narrow_top(narrow_float32);
    uint32_t low = (uint32_t)bits;
    float single;
    memcpy(&single, &low, sizeof single);
    union number number = {.f = (double)single};
    bool usual = exponent && exponent != narrow_top(narrow_float32);
    return usual ? number.u : narrow_widen(bits, narrow_float32);
}

NARROW_HERE bool narrow_shrink_single(union number *number) {
    float single = (float)number->f;
    uint32_t bits;
    if ((double)single != number->f || single == 0)
        return narrow_shrink(&number->u, narrow_float32);
    memcpy(&bits, &single, sizeof bits);
    number->u = bits;
    return true;
}

#endif
