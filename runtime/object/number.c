// SPDX-License-Identifier: Apache-2.0
/*
 * number.c - the numbers in tensors, read and written exactly (see number.h).
 *
 * One inline function reads a number of any kind, one changes its form, one writes it; compiled
 * once for each kind, so that the loops hold no decision.
 *
 * Invariant: a function that says "exact" has changed no value; NaN stays NaN, zeros keep their
 * sign among floating-point numbers. Refuses dtypes that are no numbers it knows.
 */
#include "object/number.h"
#include "base/error.h"
#include "object/dtype.h"
#include "object/narrow.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number begins with its low bytes");

#define INLINE static inline __attribute__((always_inline))

/* ---- one number ---- */

INLINE bool is_float(enum number_kind kind) {
    return kind >= NUMBER_FLOAT16;
}

static const uint8_t kind_bytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};

INLINE size_t bytes_of(enum number_kind kind) {
    return kind_bytes[kind];
}

/* Loads and stores by way of integers of the right size: the compiler keeps those in registers. */
INLINE uint64_t load(const char *from, size_t bytes) {
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    if (bytes == 1)
        return memcpy(&one, from, 1), one;
    if (bytes == 2)
        return memcpy(&two, from, 2), two;
    if (bytes == 4)
        return memcpy(&four, from, 4), four;
    return memcpy(&eight, from, 8), eight;
}

INLINE void store(char *to, uint64_t bits, size_t bytes) {
    uint8_t one = (uint8_t)bits;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;
    memcpy(to, bytes == 1 ? (void *)&one : bytes == 2 ? (void *)&two :
           bytes == 4 ? (void *)&four : (void *)&bits, bytes);
}

INLINE union number read_one(enum number_kind kind, const char *from) {
    union number number = {.u = load(from, bytes_of(kind))};
    if (kind == NUMBER_BOOL)
        number.u = number.u != 0;
    else if (kind == NUMBER_INT8)
        number.i = (int8_t)number.u;
    else if (kind == NUMBER_INT16)
        number.i = (int16_t)number.u;
    else if (kind == NUMBER_INT32)
        number.i = (int32_t)number.u;
    else if (kind == NUMBER_FLOAT16)
        number.u = narrow_widen(number.u, narrow_float16);
    else if (kind == NUMBER_BFLOAT16)
        number.u = narrow_widen(number.u, narrow_bfloat16);
    else if (kind == NUMBER_FLOAT32)
        number.u = narrow_widen_single(number.u);
    return number;
}

/* Smallest and largest of the kinds whose wide form is int64_t. */
INLINE bool is_within(enum number_kind kind, int64_t i) {
    static const int64_t least[] = {0, INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN, 0, 0, 0};
    static const int64_t most[] = {1, INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX,
                                   UINT8_MAX, UINT16_MAX, UINT32_MAX};
    return i >= least[kind] && i <= most[kind];
}

INLINE bool write_one(enum number_kind kind, union number number, char *to) {
    bool exact = true;
    if (kind < NUMBER_UINT64)
        exact = is_within(kind, number.i);
    else if (kind == NUMBER_FLOAT16)
        exact = narrow_shrink(&number.u, narrow_float16);
    else if (kind == NUMBER_BFLOAT16)
        exact = narrow_shrink(&number.u, narrow_bfloat16);
    else if (kind == NUMBER_FLOAT32)
        exact = narrow_shrink_single(&number);
    store(to, number.u, bytes_of(kind));
    return exact;
}

/* ---- many numbers ---- */

INLINE void read_many(enum number_kind kind, union number *numbers, const char *from,
                      int64_t stride, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = read_one(kind, from + (int64_t)i * stride);
}

INLINE void read_dense(enum number_kind kind, union number *numbers, const char *from,
                       int64_t stride, size_t count) {
    if (stride == (int64_t)bytes_of(kind))
        read_many(kind, numbers, from, (int64_t)bytes_of(kind), count);
    else
        read_many(kind, numbers, from, stride, count);
}

static void read_whole(enum number_kind kind, union number *numbers, const void *from,
                       int64_t stride, size_t count) {
    switch (kind) {
    case NUMBER_BOOL:
        read_dense(NUMBER_BOOL, numbers, from, stride, count);
        return;
    case NUMBER_INT8:
        read_dense(NUMBER_INT8, numbers, from, stride, count);
        return;
    case NUMBER_INT16:
        read_dense(NUMBER_INT16, numbers, from, stride, count);
        return;
    case NUMBER_INT32:
        read_dense(NUMBER_INT32, numbers, from, stride, count);
        return;
    case NUMBER_UINT8:
        read_dense(NUMBER_UINT8, numbers, from, stride, count);
        return;
    case NUMBER_UINT16:
        read_dense(NUMBER_UINT16, numbers, from, stride, count);
        return;
    case NUMBER_UINT32:
        read_dense(NUMBER_UINT32, numbers, from, stride, count);
        return;
    case NUMBER_FLOAT16:
        read_dense(NUMBER_FLOAT16, numbers, from, stride, count);
        return;
    case NUMBER_BFLOAT16:
        read_dense(NUMBER_BFLOAT16, numbers, from, stride, count);
        return;
    case NUMBER_FLOAT32:
        read_dense(NUMBER_FLOAT32, numbers, from, stride, count);
        return;
    case NUMBER_INT64:
    case NUMBER_UINT64:
    case NUMBER_FLOAT64:
        read_dense(NUMBER_UINT64, numbers, from, stride, count);
    }
}

INLINE bool write_many(enum number_kind kind, const union number *numbers, char *to,
                       int64_t stride, size_t count) {
    bool exact = true;
    for (size_t i = 0; i < count; i++)
        exact &= write_one(kind, numbers[i], to + (int64_t)i * stride);
    return exact;
}

static bool write_whole(enum number_kind kind, const union number *numbers, void *to,
                        int64_t stride, size_t count) {
    switch (kind) {
    case NUMBER_BOOL:
        return write_many(NUMBER_BOOL, numbers, to, stride, count);
    case NUMBER_INT8:
        return write_many(NUMBER_INT8, numbers, to, stride, count);
    case NUMBER_INT16:
        return write_many(NUMBER_INT16, numbers, to, stride, count);
    case NUMBER_INT32:
        return write_many(NUMBER_INT32, numbers, to, stride, count);
    case NUMBER_UINT8:
        return write_many(NUMBER_UINT8, numbers, to, stride, count);
    case NUMBER_UINT16:
        return write_many(NUMBER_UINT16, numbers, to, stride, count);
    case NUMBER_UINT32:
        return write_many(NUMBER_UINT32, numbers, to, stride, count);
    case NUMBER_FLOAT16:
        return write_many(NUMBER_FLOAT16, numbers, to, stride, count);
    case NUMBER_BFLOAT16:
        return write_many(NUMBER_BFLOAT16, numbers, to, stride, count);
    case NUMBER_FLOAT32:
        return write_many(NUMBER_FLOAT32, numbers, to, stride, count);
    case NUMBER_INT64:
    case NUMBER_UINT64:
    case NUMBER_FLOAT64:
        break;
    }
    return write_many(NUMBER_UINT64, numbers, to, stride, count);
}

/* ---- integers of less than a byte, `at` bits into an element ---- */

static void read_bits(const struct number_type *type, int at, union number *numbers,
                      const unsigned char *from, int64_t stride, size_t count) {
    int shift = at % 8, bits = type->bits;
    bool two = shift + bits > 8;
    for (from += at / 8; count > 0; count--, from += stride) {
        int64_t value = (from[0] | (two ? from[1] << 8 : 0)) >> shift & ((1 << bits) - 1);
        bool negative = type->kind == NUMBER_INT8 && value >> (bits - 1);
        numbers++->i = value - ((int64_t)negative << bits);
    }
}

static bool write_bits(const struct number_type *type, int at, const union number *numbers,
                       unsigned char *to, int64_t stride, size_t count) {
    int shift = at % 8, mask = (1 << type->bits) - 1;
    int64_t least = type->kind == NUMBER_INT8 ? -(1 << (type->bits - 1)) : 0;
    bool exact = true;
    for (to += at / 8; count > 0; count--, to += stride, numbers++) {
        int bits = (int)(numbers->i & mask) << shift;
        exact &= numbers->i >= least && numbers->i <= least + mask;
        to[0] = (unsigned char)((to[0] & ~(mask << shift)) | bits);
        if (shift + type->bits > 8)
            to[1] = (unsigned char)((to[1] & ~(mask << shift >> 8)) | bits >> 8);
    }
    return exact;
}

void numbers_read(const struct number_type *type, int at, union number *numbers, const void *from,
                  int64_t stride, size_t count) {
    if (type->bits < 8)
        read_bits(type, at * type->bits, numbers, from, stride, count);
    else
        read_whole(type->kind, numbers, (const char *)from + at * (type->bits / 8), stride, count);
}

bool numbers_write(const struct number_type *type, int at, const union number *numbers, void *to,
                   int64_t stride, size_t count) {
    if (type->bits < 8)
        return write_bits(type, at * type->bits, numbers, to, stride, count);
    return write_whole(type->kind, numbers, (char *)to + at * (type->bits / 8), stride, count);
}

/* ---- changing the form ---- */

static bool int_to_uint(union number *numbers, size_t count) {
    int64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= numbers[i].i;
    return all >= 0;
}

static bool int_to_float(union number *numbers, size_t count) {
    bool exact = true;
    for (size_t i = 0; i < count; i++) {
        int64_t old = numbers[i].i;
        numbers[i].f = (double)old;
        exact &= numbers[i].f < 0x1p63 && (int64_t)numbers[i].f == old;
    }
    return exact;
}

static bool uint_to_float(union number *numbers, size_t count) {
    bool exact = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t old = numbers[i].u;
        numbers[i].f = (double)old;
        exact &= numbers[i].f < 0x1p64 && (uint64_t)numbers[i].f == old;
    }
    return exact;
}

/* The same bits, but for the sign: what comes from an integer has that of the old, or is 0. */
INLINE bool is_as_before(double now, union number old) {
    union number other = {.f = now};
    return number_is_zero((union number){.u = other.u ^ old.u});
}

static bool float_to_int(union number *numbers, size_t count) {
    bool exact = true;
    for (size_t i = 0; i < count; i++) {
        union number old = numbers[i];
        bool fits = old.f >= -0x1p63 && old.f < 0x1p63;
        numbers[i].i = fits ? (int64_t)old.f : 0;
        exact &= fits && is_as_before((double)numbers[i].i, old);
    }
    return exact;
}

static bool float_to_uint(union number *numbers, size_t count) {
    bool exact = true;
    for (size_t i = 0; i < count; i++) {
        union number old = numbers[i];
        bool fits = old.f >= 0 && old.f < 0x1p64;
        numbers[i].u = fits ? (uint64_t)old.f : 0;
        exact &= fits && is_as_before((double)numbers[i].u, old);
    }
    return exact;
}

bool numbers_change(enum number_kind from, enum number_kind to, union number *numbers,
                    size_t count) {
    bool from_uint = from == NUMBER_UINT64, to_uint = to == NUMBER_UINT64;
    if (is_float(from))
        return is_float(to) || (to_uint ? float_to_uint : float_to_int)(numbers, count);
    if (is_float(to))
        return (from_uint ? uint_to_float : int_to_float)(numbers, count);
    return from_uint == to_uint || int_to_uint(numbers, count); /* the way back is the same */
}

static bool is_signed(enum number_kind kind) {
    return kind >= NUMBER_INT8 && kind <= NUMBER_INT64;
}

/* Bits of the largest magnitude that is held together with all smaller ones. */
static int precision(const struct number_type *type) {
    static const uint8_t bits[] = {1, 7, 15, 31, 63, 8, 16, 32, 64, 11, 8, 24, 53};
    return type->bits < 8 ? type->bits - is_signed(type->kind) : bits[type->kind];
}

bool number_always_fits(const struct number_type *from, const struct number_type *to) {
    bool to_unsigned = to->kind == NUMBER_BOOL ||
                       (to->kind >= NUMBER_UINT8 && to->kind <= NUMBER_UINT64);
    if (from->kind == to->kind)
        return from->bits <= to->bits;
    if (is_float(from->kind))
        return is_float(to->kind) && precision(from) < precision(to) && to->kind >= NUMBER_FLOAT32;
    return precision(from) <= precision(to) && !(is_signed(from->kind) && to_unsigned);
}

/* ---- dtypes whose numbers are known ---- */

/* The kind of one lane; false if it is none that is known. */
static bool find_kind(struct ebb_dtype dtype, enum number_kind *kind) {
    static const struct {
        uint8_t code, bits;
        enum number_kind kind;
    } known[] = {
        {EBB_BOOL, 8, NUMBER_BOOL},        {EBB_INT, 8, NUMBER_INT8},
        {EBB_INT, 16, NUMBER_INT16},       {EBB_INT, 32, NUMBER_INT32},
        {EBB_INT, 64, NUMBER_INT64},       {EBB_UINT, 8, NUMBER_UINT8},
        {EBB_UINT, 16, NUMBER_UINT16},     {EBB_UINT, 32, NUMBER_UINT32},
        {EBB_UINT, 64, NUMBER_UINT64},     {EBB_FLOAT, 16, NUMBER_FLOAT16},
        {EBB_BFLOAT, 16, NUMBER_BFLOAT16}, {EBB_FLOAT, 32, NUMBER_FLOAT32},
        {EBB_FLOAT, 64, NUMBER_FLOAT64},   {EBB_COMPLEX, 64, NUMBER_FLOAT32},
        {EBB_COMPLEX, 128, NUMBER_FLOAT64},
    };
    if (dtype.bits < 8 && (dtype.code == EBB_INT || dtype.code == EBB_UINT))
        dtype.bits = 8;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == dtype.code && known[i].bits == dtype.bits) {
            *kind = known[i].kind;
            return true;
        }
    return false;
}

static bool refuse_type(struct ebb_dtype dtype) {
    enum number_kind kind;
    char text[DTYPE_TEXT];
    dtype_describe(dtype, text);
    if (find_kind(dtype, &kind))
        error_set(EBB_E_DTYPE, "%s: numbers of elements of %zu bytes, up to %d may be", text,
                  dtype_bytes(dtype), NUMBER_ELEMENT_BYTES);
    else
        error_set(EBB_E_DTYPE, "%s: no dtype whose numbers are read and written", text);
    return false;
}

bool number_type_of(struct ebb_dtype dtype, struct number_type *type) {
    size_t bytes = ebb_dtype_bytes(dtype);
    if (!bytes)
        return false;
    if (!find_kind(dtype, &type->kind) || bytes > NUMBER_ELEMENT_BYTES)
        return refuse_type(dtype);
    type->parts = dtype.code == EBB_COMPLEX ? 2 : 1;
    type->bits = dtype.bits / type->parts;
    type->lanes = dtype.lanes;
    return true;
}

/* ---- texts ---- */

int number_describe(enum number_kind kind, union number number, char *text, size_t room) {
    if (is_float(kind))
        return snprintf(text, room, "%.17g", number.f);
    if (kind == NUMBER_UINT64)
        return snprintf(text, room, "%llu", (unsigned long long)number.u);
    return snprintf(text, room, "%lld", (long long)number.i);
}
