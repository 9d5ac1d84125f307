// SPDX-License-Identifier: Apache-2.0
/*
 * convert.c - copies between dtypes: every pair of them against a model of sign, odd factor and
 * power of two, exact on any machine (valgrind counts long double as double); all 65,536 numbers of
 * float16 and bfloat16; the first number that is lost is the one that is named, and nothing is left
 * of a conversion that failed. The same while the processor takes small numbers for zero.
 */
#include "kit/tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DTYPES = 20, ROUNDS = 40, EVERY = 65536 };

static const struct ebb_dtype INT1 = {EBB_INT, 1, 1}, INT4 = {EBB_INT, 4, 1},
                              INT7 = {EBB_INT, 7, 1}, UINT2 = {EBB_UINT, 2, 1},
                              UINT4 = {EBB_UINT, 4, 1};

static const struct ebb_dtype *const dtypes[DTYPES] = {
    &BOOL,   &INT8,   &INT16,   &INT32,    &INT64,   &UINT8,   &UINT16,    &UINT32,
    &UINT64, &FLOAT16, &BFLOAT16, &FLOAT32, &FLOAT64, &COMPLEX64, &COMPLEX128,
    &INT1,   &INT4,   &INT7,    &UINT2,    &UINT4};

static struct ebb_tensor *element_of(ebb_region region, struct ebb_dtype dtype,
                                     const void *bytes) {
    struct ebb_tensor *tensor = ebb_tensor_from(region, dtype, 0, NULL, bytes);
    assert_non_null(tensor);
    return tensor;
}

/* ---- narrow floating-point numbers ---- */

/* What sign, exponent and mantissa mean, by the book. */
static double meaning(unsigned bits, int exponent_bits, int mantissa_bits) {
    int top = (1 << exponent_bits) - 1, bias = top / 2;
    int exponent = (int)(bits >> mantissa_bits) & top;
    double mantissa = bits & ((1u << mantissa_bits) - 1);
    double sign = bits >> (exponent_bits + mantissa_bits) ? -1 : 1;
    if (exponent == top)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

/* All of them at once: to the wide dtype and back, bit by bit, NaN included. */
static void check_all(ebb_region region, struct ebb_dtype narrow, struct ebb_dtype wide,
                      int exponent_bits) {
    struct ebb_tensor *all = ebb_tensor_new(region, narrow, SHAPE(EVERY));
    assert_non_null(all);
    for (unsigned bits = 0; bits < EVERY; bits++)
        ((uint16_t *)all->data)[bits] = (uint16_t)bits;
    struct ebb_tensor *there = ebb_tensor_convert(region, all, wide);
    assert_non_null(there);
    for (unsigned bits = 0; bits < EVERY; bits++) {
        double expected = meaning(bits, exponent_bits, 15 - exponent_bits);
        double got = wide.bits == 32 ? (double)((float *)there->data)[bits]
                                     : ((double *)there->data)[bits];
        assert_true(isnan(expected) ? isnan(got) : expected == got);
        assert_int_equal(!!signbit(got), bits >> 15);
    }
    struct ebb_tensor *back = ebb_tensor_convert(region, there, narrow);
    assert_non_null(back);
    assert_memory_equal(back->data, all->data, 2 * EVERY);
}

static void all_65536_numbers_of_float16_go_there_and_back(void **state) {
    struct stage *stage = *state;
    check_all(stage->root, FLOAT16, FLOAT32, 5);
    check_all(stage->root, FLOAT16, FLOAT64, 5);
}

static void all_65536_numbers_of_bfloat16_go_there_and_back(void **state) {
    struct stage *stage = *state;
    check_all(stage->root, BFLOAT16, FLOAT32, 8);
    check_all(stage->root, BFLOAT16, FLOAT64, 8);
}

/* Between two neighbours lies nothing: what is next to a narrow number is none. */
static void check_neighbours(ebb_region region, struct ebb_dtype narrow, int exponent_bits) {
    for (unsigned bits = 0; bits < EVERY; bits++) {
        double value = meaning(bits, exponent_bits, 15 - exponent_bits);
        if (isnan(value) || isinf(value))
            continue;
        for (int way = -1; way <= 1; way += 2) {
            ebb_region step = OPEN(.parent = region);
            double beside = nextafter(value, way * (double)INFINITY);
            struct ebb_tensor *tensor = element_of(step, FLOAT64, &beside);
            assert_no_block(ebb_tensor_convert(step, tensor, narrow), EBB_E_VALUE);
            assert_int_equal(ebb_region_close(step), 0);
        }
    }
}

static void neighbours_of_narrow_numbers_are_refused(void **state) {
    struct stage *stage = *state;
    check_neighbours(stage->root, FLOAT16, 5);
    check_neighbours(stage->root, BFLOAT16, 8);
}

/* ---- a processor that takes small numbers for zero ---- */

/* Where the processor has such a mode, read or written: FTZ and DAZ. */
static void flush_small_numbers(bool on) {
#ifdef __x86_64__
    unsigned modes = 0x8040, now = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? now | modes : now & ~modes);
#endif
}

/* Nothing is to be held that is not zero, however small; zeros of both signs are. */
static void check_small_numbers(ebb_region region) {
    static const double small[] = {5e-324, -5e-324, 1e-310, -2e-308}, zeros[] = {0.0, -0.0};
    for (int at = 0; at < DTYPES; at++) {
        struct ebb_dtype dtype = *dtypes[at];
        struct ebb_tensor *target = ebb_tensor_new(region, dtype, SHAPE(2));
        bool wide = ebb_dtype_equal(dtype, FLOAT64) || ebb_dtype_equal(dtype, COMPLEX128);
        for (int i = 0; i < 4 && !wide; i++) {
            struct ebb_tensor *source = element_of(region, FLOAT64, &small[i]);
            assert_no_block(ebb_tensor_convert(region, source, dtype), EBB_E_VALUE);
            assert_refused(ebb_tensor_fill(target, ebb_value_float(small[i])), EBB_E_VALUE);
        }
        struct ebb_tensor *source = ebb_tensor_from(region, FLOAT64, SHAPE(2), zeros);
        assert_non_null(ebb_tensor_convert(region, source, dtype));
        assert_int_equal(ebb_tensor_fill(target, ebb_value_float(-0.0)), 0);
    }
}

/* An imaginary part is zero or refused where there is no place for it. */
static void check_small_imaginary(ebb_region region) {
    static const double numbers[] = {1, 1e-310, 1, -0.0};
    struct ebb_tensor *target = ebb_tensor_new(region, FLOAT64, SHAPE(2));
    assert_no_block(ebb_tensor_convert(region, element_of(region, COMPLEX128, numbers), FLOAT64),
                    EBB_E_VALUE);
    assert_non_null(ebb_tensor_convert(region, element_of(region, COMPLEX128, numbers + 2),
                                       FLOAT64));
    assert_refused(ebb_tensor_fill(target, ebb_value_complex(1, 1e-310)), EBB_E_VALUE);
    assert_int_equal(ebb_tensor_fill(target, ebb_value_complex(1, -0.0)), 0);
}

static void small_numbers_are_no_zeros_whatever_the_processor_says(void **state) {
    struct stage *stage = *state;
    for (int flush = 0; flush < 2; flush++) {
        flush_small_numbers(flush);
        check_small_numbers(stage->root);
        check_small_imaginary(stage->root);
    }
    flush_small_numbers(false);
}

/* ---- every pair against the model ---- */

static uint64_t state_of_chance;

static uint64_t random_bits(void) {
    state_of_chance += 0x9E3779B97F4A7C15u;
    uint64_t z = state_of_chance;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static bool is_complex(struct ebb_dtype dtype) {
    return dtype.code == EBB_COMPLEX;
}

static struct ebb_dtype part_of(struct ebb_dtype dtype) {
    return is_complex(dtype) ? (dtype.bits == 64 ? FLOAT32 : FLOAT64) : dtype;
}

/* Exact: a number is its sign, an odd factor (0 of zero) and a power of two. */
struct number {
    enum { NUMBER, INFINITE, NOT_A_NUMBER } sort;
    bool negative;
    uint64_t odd;
    int power;
};

static struct number number_of(bool negative, uint64_t factor, int power) {
    struct number number = {NUMBER, negative && factor != 0, factor, factor ? power : 0};
    while (number.odd && number.odd % 2 == 0) {
        number.odd /= 2;
        number.power++;
    }
    return number;
}

static struct number number_of_double(double value) {
    if (isnan(value))
        return (struct number){.sort = NOT_A_NUMBER};
    if (isinf(value))
        return (struct number){.sort = INFINITE, .negative = signbit(value)};
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    return number_of(signbit(value), (uint64_t)ldexp(fraction, 53), exponent - 53);
}

static bool is_same(struct number a, struct number b) {
    return a.sort == b.sort && a.negative == b.negative && a.odd == b.odd && a.power == b.power;
}

static int bits_in(uint64_t factor) {
    int bits = 0;
    for (; factor; factor /= 2)
        bits++;
    return bits;
}

static struct number read_part(struct ebb_dtype dtype, const void *at) {
    union {
        uint64_t u;
        float f;
        double d;
    } bits = {.u = 0};
    memcpy(&bits, at, ebb_dtype_bytes(dtype));
    if (dtype.bits < 8) /* the others mean nothing */
        bits.u &= ((uint64_t)1 << dtype.bits) - 1;
    if (dtype.code == EBB_FLOAT && dtype.bits == 16)
        return number_of_double(meaning((unsigned)bits.u, 5, 10));
    if (dtype.code == EBB_BFLOAT)
        return number_of_double(meaning((unsigned)bits.u, 8, 7));
    if (dtype.code == EBB_FLOAT)
        return number_of_double(dtype.bits == 32 ? (double)bits.f : bits.d);
    if (dtype.code == EBB_INT && bits.u >> (dtype.bits - 1)) {
        uint64_t all = dtype.bits == 64 ? UINT64_MAX : ((uint64_t)1 << dtype.bits) - 1;
        return number_of(true, (~bits.u & all) + 1, 0);
    }
    return number_of(false, bits.u, 0);
}

/* Held by a format of so many bits of mantissa, the implied one counted: a multiple of two to
 * the power of least, below two to the power of most. */
static bool is_float_of(struct number number, int mantissa_bits, int least, int most) {
    int bits = bits_in(number.odd);
    return number.sort != NUMBER || number.odd == 0 ||
           (bits <= mantissa_bits && number.power >= least && number.power + bits <= most);
}

static bool is_held(struct number number, struct ebb_dtype dtype) {
    if (dtype.code == EBB_BFLOAT)
        return is_float_of(number, 8, -133, 128);
    if (dtype.code == EBB_FLOAT)
        return dtype.bits == 16   ? is_float_of(number, 11, -24, 16)
               : dtype.bits == 32 ? is_float_of(number, 24, -149, 128)
                                  : is_float_of(number, 53, -1074, 1024);
    int bits = dtype.code == EBB_BOOL ? 1 : dtype.bits;
    if (number.sort != NUMBER || number.power < 0)
        return false;
    if (!number.negative)
        return bits_in(number.odd) + number.power <= bits - (dtype.code == EBB_INT);
    return dtype.code == EBB_INT && (bits_in(number.odd) + number.power < bits ||
                                     (number.odd == 1 && number.power == bits - 1));
}

/* Numbers of a dtype: any bits, small ones, and those around powers of two. */
static void write_random(struct ebb_dtype dtype, void *at) {
    struct ebb_dtype part = part_of(dtype);
    for (int i = 0; i <= is_complex(dtype); i++) {
        size_t bytes = ebb_dtype_bytes(part);
        char *to = (char *)at + (size_t)i * bytes;
        uint64_t bits = random_bits();
        double small = (double)(int64_t)(random_bits() % 600) - 40;
        float single = (float)small;
        if (part.code == EBB_BOOL)
            bits &= 1;
        if (bits >> 60 < 8)
            bits = ((uint64_t)1 << (random_bits() % 64)) + random_bits() % 3 - 1;
        if (part.code == EBB_BOOL)
            bits &= 1;
        memcpy(to, &bits, bytes);
        if (part.code == EBB_FLOAT && part.bits == 32 && random_bits() % 4)
            memcpy(to, &single, 4);
        if (part.code == EBB_FLOAT && part.bits == 64 && random_bits() % 4)
            memcpy(to, &small, 8);
        if (i == 1 && random_bits() % 4)
            memset(to, 0, bytes);
    }
}

/* Whether the model holds the element, and if so, that the conversion is right. */
static bool check_element(struct ebb_dtype from, const char *source, struct ebb_dtype to,
                          const char *target) {
    struct ebb_dtype source_part = part_of(from), target_part = part_of(to);
    struct number real = read_part(source_part, source), imaginary = number_of(false, 0, 0);
    if (is_complex(from))
        imaginary = read_part(source_part, source + source_part.bits / 8);
    if (!is_held(real, target_part) ||
        (is_complex(to) ? !is_held(imaginary, target_part)
                        : !is_same(imaginary, number_of(false, 0, 0))))
        return false;
    if (target) {
        if (to.bits < 8 && !ebb_dtype_equal(from, to))
            assert_int_equal((unsigned char)*target >> to.bits, 0);
        assert_true(is_same(read_part(target_part, target), real));
        if (is_complex(to))
            assert_true(is_same(read_part(target_part, target + target_part.bits / 8),
                                imaginary));
    }
    return true;
}

static bool try_pair(ebb_region region, struct ebb_dtype from, struct ebb_dtype to) {
    int64_t rows = 1 + (int64_t)(random_bits() % 4);
    int64_t columns = 1 + (int64_t)(random_bits() % (random_bits() % 3 ? 5 : 300));
    struct ebb_tensor *base = ebb_tensor_new(region, from, SHAPE(rows, columns));
    size_t bytes = ebb_dtype_bytes(from), target_bytes = ebb_dtype_bytes(to);
    for (int64_t i = 0; i < rows * columns; i++) /* often numbers that fit: the first again */
        if (i == 0 || random_bits() % 64 == 0)
            write_random(from, (char *)base->data + (size_t)i * bytes);
        else
            memcpy((char *)base->data + (size_t)i * bytes, base->data, bytes);
    struct ebb_tensor *source = random_bits() % 2
                                    ? ebb_tensor_transpose(region, base, 0, 1) : base;
    struct ebb_tensor *got = ebb_tensor_convert(region, source, to);
    if (!got)
        assert_int_equal(ebb_last_error(), EBB_E_VALUE);
    for (int64_t i = 0; i < rows * columns; i++) {
        const char *target = got ? (char *)got->data + (size_t)i * target_bytes : NULL;
        if (check_element(from, place_of(source, i), to, target))
            continue;
        char expected[40];
        snprintf(expected, sizeof expected, "element %lld is ", (long long)i);
        if (got)
            fail_msg("%s not refused", expected);
        assert_text_names(expected);
        return false;
    }
    assert_non_null(got);
    return true;
}

static void every_pair_of_dtypes_agrees_with_the_model(void **state) {
    struct stage *stage = *state;
    state_of_chance = fresh_seed();
    fprintf(stderr, "EBB_SEED=%llu\n", (unsigned long long)state_of_chance);
    int all_held = 0;
    for (int from = 0; from < DTYPES; from++)
        for (int to = 0; to < DTYPES; to++) {
            int held = 0;
            for (int round = 0; round < ROUNDS; round++) {
                ebb_region step = OPEN(.parent = stage->root);
                held += try_pair(step, *dtypes[from], *dtypes[to]);
                assert_int_equal(ebb_region_close(step), 0);
            }
            assert_true(held == ROUNDS || from != to);
            all_held += held;
        }
    assert_true(all_held > DTYPES * DTYPES * ROUNDS / 4); /* neither outcome is a rare one */
    assert_true(all_held < DTYPES * DTYPES * ROUNDS * 3 / 4);
}

/* ---- vectors ---- */

/* Number `at` of so many bits each, one behind the other. */
static unsigned bits_at(const unsigned char *bytes, size_t at, unsigned width) {
    unsigned bits = 0;
    for (unsigned i = 0; i < width; i++)
        bits |= (bytes[(at * width + i) / 8] >> (at * width + i) % 8 & 1u) << i;
    return bits;
}

/* Every number of a vector is what it would be alone. */
static void check_lanes(const struct ebb_tensor *vectors, const struct ebb_tensor *numbers) {
    size_t bytes = ebb_dtype_bytes(numbers->dtype), lanes = vectors->dtype.lanes;
    for (int64_t i = 0; i < ebb_tensor_count(numbers); i++) {
        const unsigned char *element = place_of(vectors, i / (int64_t)lanes);
        size_t lane = (size_t)i % lanes;
        if (numbers->dtype.bits < 8)
            assert_int_equal(bits_at(element, lane, numbers->dtype.bits),
                             *(unsigned char *)place_of(numbers, i));
        else
            assert_memory_equal(element + lane * bytes, place_of(numbers, i), bytes);
    }
}

/* Small numbers as vectors of one dtype, then of another and back; rows and columns change. */
static void try_lanes(ebb_region region, struct ebb_dtype from, struct ebb_dtype to, int lanes) {
    int64_t count = 6 * 300;
    struct ebb_dtype wide = {EBB_INT, 8, (uint16_t)lanes};
    struct ebb_tensor *alone = ebb_tensor_new(region, INT8, SHAPE(count * lanes));
    for (int64_t i = 0; i < count * lanes; i++)
        ((int8_t *)alone->data)[i] = (int8_t)(random_bits() % 2);
    struct ebb_tensor *pairs = ebb_tensor_from(region, wide, SHAPE(6, 300), alone->data);
    struct ebb_dtype first = {from.code, from.bits, (uint16_t)lanes};
    struct ebb_dtype second = {to.code, to.bits, (uint16_t)lanes};
    struct ebb_tensor *one = ebb_tensor_convert(region, pairs, first);
    assert_non_null(one);
    check_lanes(one, ebb_tensor_convert(region, alone, from));
    struct ebb_tensor *other = ebb_tensor_convert(region, one, second);
    assert_non_null(other);
    check_lanes(other, ebb_tensor_convert(region, alone, to));
    struct ebb_tensor *turned = ebb_tensor_transpose(region, other, 0, 1);
    struct ebb_tensor *back = ebb_tensor_convert(region, turned, wide);
    back = ebb_tensor_contiguous(region, ebb_tensor_transpose(region, back, 0, 1));
    assert_memory_equal(back->data, alone->data, (size_t)(count * lanes));
}

static void lanes_are_converted_each_by_itself(void **state) {
    static const int lanes[] = {2, 3, 5, 16};
    struct stage *stage = *state;
    for (int from = 0; from < DTYPES; from++)
        for (int to = 0; to < DTYPES; to++)
            for (size_t i = 0; i < 4; i++) {
                if (dtypes[from] == &INT1 || dtypes[to] == &INT1) /* holds no 1 */
                    continue;
                ebb_region step = OPEN(.parent = stage->root);
                try_lanes(step, *dtypes[from], *dtypes[to], lanes[i]);
                assert_int_equal(ebb_region_close(step), 0);
            }
}

static void lanes_are_filled_each(void **state) {
    struct stage *stage = *state;
    for (int at = 0; at < DTYPES; at++)
        for (int lanes = 1; lanes <= 16; lanes++) {
            int64_t value = dtypes[at] == &INT1 ? -1 : 1;
            struct ebb_dtype dtype = {dtypes[at]->code, dtypes[at]->bits, (uint16_t)lanes};
            struct ebb_tensor *base = ebb_tensor_new(stage->root, dtype, SHAPE(5, 7));
            struct ebb_tensor *row = ebb_tensor_select(stage->root, base, 1, 3);
            struct ebb_tensor *alone = ebb_tensor_new(stage->root, *dtypes[at], SHAPE(5 * lanes));
            memset(base->data, 0x55, ebb_tensor_bytes(base));
            assert_int_equal(ebb_tensor_fill(row, ebb_value_int(value)), 0);
            assert_int_equal(ebb_tensor_fill(alone, ebb_value_int(value)), 0);
            check_lanes(row, alone);
            size_t bytes = ebb_dtype_bytes(dtype), used = (size_t)lanes * dtype.bits;
            if (used % 8)
                assert_int_equal(((unsigned char *)row->data)[bytes - 1] >> used % 8, 0);
            assert_int_equal(((unsigned char *)row->data)[bytes], 0x55);
        }
}

/* ---- results ---- */

static void a_conversion_is_row_major_and_a_copy(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(3, 4));
    struct ebb_tensor *turned = ebb_tensor_transpose(stage->root, base, 0, 1);
    struct ebb_tensor *single = ebb_tensor_convert(stage->root, turned, FLOAT32);
    assert_shape(single, SHAPE(4, 3));
    assert_true(ebb_tensor_is_contiguous(single));
    for (int i = 0; i < 12; i++)
        assert_true(((float *)single->data)[i] == (float)(i % 3 * 4 + i / 3));
    struct ebb_tensor *same = ebb_tensor_convert(stage->root, turned, INT32);
    ASSERT_ELEMENTS(same, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    assert_ptr_not_equal(same->storage, base->storage);
}

/* Where there is one index a stride is never gone by. */
static void strides_of_single_indices_may_be_any(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(4));
    struct ebb_tensor *view = ebb_tensor_view(stage->root, base, SHAPE(1, 2, 1),
                                              SIZES(INT64_MAX, 2, INT64_MAX - 1), 1);
    assert_non_null(view);
    struct ebb_tensor *wide = ebb_tensor_convert(stage->root, view, INT64);
    assert_non_null(wide);
    assert_int_equal(((int64_t *)wide->data)[0], 1);
    assert_int_equal(((int64_t *)wide->data)[1], 3);
}

static void scalars_and_tensors_without_elements_are_converted(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *scalar = counting(stage->root, 0, NULL);
    *(int32_t *)scalar->data = -5;
    struct ebb_tensor *wide = ebb_tensor_convert(stage->root, scalar, COMPLEX128);
    assert_int_equal(wide->ndim, 0);
    assert_true(((double *)wide->data)[0] == -5 && ((double *)wide->data)[1] == 0);
    struct ebb_tensor *none = counting(stage->root, SHAPE(2, 0, 3));
    assert_shape(ebb_tensor_convert(stage->root, none, BOOL), SHAPE(2, 0, 3));
}

static void a_bool_of_any_byte_is_one(void **state) {
    struct stage *stage = *state;
    const uint8_t bytes[] = {0, 1, 2, 255};
    struct ebb_tensor *truth = ebb_tensor_from(stage->root, BOOL, SHAPE(4), bytes);
    ASSERT_ELEMENTS(ebb_tensor_convert(stage->root, truth, INT32), 0, 1, 1, 1);
}

static void the_first_number_that_is_lost_is_named(void **state) {
    struct stage *stage = *state;
    struct ebb_tensor *base = counting(stage->root, SHAPE(30, 40));
    struct counted before = counted_of(stage->root);
    assert_no_block(ebb_tensor_convert(stage->root, base, INT8), EBB_E_VALUE);
    assert_text_names("element 128 is 128, not held exactly by int8");
    assert_nothing_changed(stage->root, &before);
    struct ebb_tensor *turned = ebb_tensor_transpose(stage->root, base, 0, 1);
    assert_no_block(ebb_tensor_convert(stage->root, turned, UINT8), EBB_E_VALUE);
    assert_text_names("element 7 is 280, not held exactly by uint8");
    const double tenth[] = {0.5, 0.1};
    struct ebb_tensor *pair = ebb_tensor_from(stage->root, COMPLEX128, SHAPE(1), tenth);
    assert_no_block(ebb_tensor_convert(stage->root, pair, COMPLEX64), EBB_E_VALUE);
    assert_text_names("element 0 is 0.5+0.10000000000000001i, not held exactly by complex64");
    assert_no_block(ebb_tensor_convert(stage->root, pair, FLOAT64), EBB_E_VALUE);
    uint64_t most = UINT64_MAX;
    assert_no_block(ebb_tensor_convert(stage->root, element_of(stage->root, UINT64, &most),
                                       FLOAT64), EBB_E_VALUE);
    assert_text_names("element 0 is 18446744073709551615, not held exactly by float64");
}

/* More of them than could be gone through one by one; their places are those of all. */
static void numbers_that_lie_on_each_other_are_tried_once(void **state) {
    struct stage *stage = *state;
    const int64_t many = (int64_t)1 << 19;
    const double numbers[] = {0.5, 2, 0.1};
    ebb_region region = OPEN(.parent = stage->root, .limit_bytes = MIB);
    struct ebb_tensor *base = ebb_tensor_from(region, FLOAT64, SHAPE(3), numbers);
    struct ebb_tensor *two = ebb_tensor_view(region, base, SHAPE(many, 2, many), SIZES(0, 1, 0), 0);
    assert_no_block(ebb_tensor_convert(region, two, FLOAT32), EBB_E_REGION_LIMIT);
    struct ebb_tensor *all = ebb_tensor_view(region, base, SHAPE(many, 3, many), SIZES(0, 1, 0), 0);
    assert_no_block(ebb_tensor_convert(region, all, FLOAT32), EBB_E_VALUE);
    assert_text_names("element 1048576 is 0.1");
    struct ebb_tensor *none = ebb_tensor_view(region, base, SHAPE(many, 0, 3), SIZES(0, 0, 1), 0);
    assert_shape(ebb_tensor_convert(region, none, FLOAT32), SHAPE(many, 0, 3));
    assert_int_equal(ebb_region_close(region), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STAGED(all_65536_numbers_of_float16_go_there_and_back),
        STAGED(all_65536_numbers_of_bfloat16_go_there_and_back),
        STAGED(neighbours_of_narrow_numbers_are_refused),
        STAGED(small_numbers_are_no_zeros_whatever_the_processor_says),
        STAGED(every_pair_of_dtypes_agrees_with_the_model),
        STAGED(lanes_are_converted_each_by_itself),
        STAGED(lanes_are_filled_each),
        STAGED(a_conversion_is_row_major_and_a_copy),
        STAGED(strides_of_single_indices_may_be_any),
        STAGED(scalars_and_tensors_without_elements_are_converted),
        STAGED(a_bool_of_any_byte_is_one),
        STAGED(the_first_number_that_is_lost_is_named),
        STAGED(numbers_that_lie_on_each_other_are_tried_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
