// SPDX-License-Identifier: Apache-2.0
/*
 * elements.c - strided copies against a model that goes element by element: random shapes, any
 * order and gaps of strides on both sides, repeated sources, elements of odd sizes. Bytes between
 * the elements of the destination stay as they were.
 */
#include "kit/test.h"

#include "object/copy.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 1 << 16, CASES = 20000 };

static uint64_t state_of_chance;

static unsigned below(unsigned limit) {
    state_of_chance = state_of_chance * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_chance >> 33) % limit;
}

struct layout {
    int ndim;
    int64_t shape[EBB_DIMENSIONS_MAX], to[EBB_DIMENSIONS_MAX], from[EBB_DIMENSIONS_MAX];
    size_t bytes;
    bool to_row_major, from_row_major;
};

/* Strides in a random order of dimensions, now and then with a gap. */
static void choose_strides(const struct layout *layout, int64_t *strides, bool may_repeat) {
    int order[EBB_DIMENSIONS_MAX];
    int64_t next = 1;
    for (int i = 0; i < layout->ndim; i++)
        order[i] = i;
    for (int i = layout->ndim - 1; i > 0; i--) {
        int other = below(3) ? i : (int)below((unsigned)i + 1), keep = order[i];
        order[i] = order[other];
        order[other] = keep;
    }
    for (int i = layout->ndim - 1; i >= 0; i--) {
        int dim = order[i];
        bool repeats = may_repeat && below(6) == 0;
        if (below(5) == 0)
            next += below(3);
        strides[dim] = repeats ? 0 : next;
        next *= repeats ? 1 : layout->shape[dim];
    }
}

static void row_major(const struct layout *layout, int64_t *strides) {
    int64_t next = 1;
    for (int i = layout->ndim - 1; i >= 0; i--) {
        strides[i] = next;
        next *= layout->shape[i];
    }
}

static void choose(struct layout *layout) {
    static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 40};
    int64_t room = 1 + below(600);
    memset(layout, 0, sizeof *layout);
    layout->bytes = sizes[below(8)];
    layout->ndim = (int)below(7);
    for (int i = 0; i < layout->ndim; i++) {
        layout->shape[i] = 1 + below(below(4) ? 5 : 70);
        if (layout->shape[i] > room)
            layout->shape[i] = 1;
        room /= layout->shape[i];
    }
    layout->to_row_major = below(3) == 0;
    layout->from_row_major = below(3) == 0;
    choose_strides(layout, layout->to, false);
    choose_strides(layout, layout->from, true);
    if (layout->to_row_major)
        row_major(layout, layout->to);
    if (layout->from_row_major)
        row_major(layout, layout->from);
}

static size_t reach(const struct layout *layout, const int64_t *strides) {
    int64_t last = 0;
    for (int i = 0; i < layout->ndim; i++)
        last += (layout->shape[i] - 1) * strides[i];
    return (size_t)(last + 1) * layout->bytes;
}

static void copy_naively(char *to, const char *from, const struct layout *layout, int dim) {
    if (dim == layout->ndim) {
        memcpy(to, from, layout->bytes);
        return;
    }
    for (int64_t i = 0; i < layout->shape[dim]; i++)
        copy_naively(to + i * layout->to[dim] * (int64_t)layout->bytes,
                     from + i * layout->from[dim] * (int64_t)layout->bytes, layout, dim + 1);
}

static void copies_equal_those_of_a_naive_model(void **state) {
    static char source[ROOM * 16];
    uint64_t first = fresh_seed();
    pattern_fill(source, sizeof source, 1);
    for (uint64_t round = 0; round < CASES; round++) {
        struct layout layout;
        state_of_chance = first + round;
        below(1);
        choose(&layout);
        size_t bytes = reach(&layout, layout.to);
        assert_true(reach(&layout, layout.from) <= sizeof source);
        char *expected = malloc(bytes), *got = malloc(bytes); /* exact, so that overruns show */
        memset(expected, 'x', bytes);
        memset(got, 'x', bytes);
        copy_naively(expected, source, &layout, 0);
        copy_elements(got, layout.to_row_major ? NULL : layout.to, source,
                      layout.from_row_major ? NULL : layout.from, layout.shape, layout.ndim,
                      layout.bytes);
        if (memcmp(expected, got, bytes) != 0)
            fail_msg("a copy differs: EBB_SEED=%llu", (unsigned long long)(first + round));
        free(expected);
        free(got);
    }
}

static void an_empty_shape_copies_nothing(void **state) {
    const int64_t shape[] = {3, 0, 5}, strides[] = {INT64_MAX, INT64_MAX, INT64_MAX};
    copy_elements(NULL, strides, NULL, NULL, shape, 3, 8);
    copy_elements(NULL, NULL, NULL, strides, shape, 3, 8);
}

static void strides_of_dimensions_of_size_1_are_not_looked_at(void **state) {
    const int64_t shape[] = {1, 2, 1}, strides[] = {INT64_MAX, 1, INT64_MAX};
    const int from[] = {7, 8};
    int to[] = {0, 0};
    copy_elements(to, strides, from, strides, shape, 3, sizeof *to);
    assert_int_equal(to[0], 7);
    assert_int_equal(to[1], 8);
}

static void a_scalar_is_one_element(void **state) {
    const double from = 2.5;
    double to = 0;
    copy_elements(&to, NULL, &from, NULL, NULL, 0, sizeof to);
    assert_true(to == 2.5);
}

static void repeated_bytes_fill_every_length(void **state) {
    static const size_t sizes[] = {1, 2, 3, 8, 16, 100, 4095, 4096, 4097, 9000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t count = 0; count < 20; count++) {
            size_t bytes = sizes[s], total = bytes * (count * count * (bytes < 200 ? 20 : 1));
            char *unit = malloc(bytes), *to = malloc(total + 1);
            pattern_fill(unit, bytes, (unsigned)s);
            to[total] = 'x';
            copy_repeated(to, unit, bytes, total / bytes);
            for (size_t at = 0; at < total; at += bytes)
                assert_memory_equal(to + at, unit, bytes);
            assert_int_equal(to[total], 'x');
            free(unit);
            free(to);
        }
}

/* Around the size from which on caches are bypassed, at every place in a line. */
static void bytes_beyond_the_caches_are_copied_whole(void **state) {
    static const size_t sizes[] = {16 * MIB - 1, 16 * MIB, 16 * MIB + 1, 16 * MIB + 127};
    char *from = malloc(17 * MIB), *to = malloc(17 * MIB);
    pattern_fill(from, 17 * MIB, 5);
    for (size_t i = 0; i < 12; i++) {
        size_t bytes = sizes[i % 4], at = i * 7 % 64, source = i * 5;
        memset(to, 'x', 17 * MIB);
        copy_bytes(to + 1 + at, from + source, bytes);
        assert_memory_equal(to + 1 + at, from + source, bytes);
        assert_int_equal(to[at], 'x');
        assert_int_equal(to[1 + at + bytes], 'x');
    }
    free(from);
    free(to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_equal_those_of_a_naive_model),
        cmocka_unit_test(an_empty_shape_copies_nothing),
        cmocka_unit_test(strides_of_dimensions_of_size_1_are_not_looked_at),
        cmocka_unit_test(a_scalar_is_one_element),
        cmocka_unit_test(repeated_bytes_fill_every_length),
        cmocka_unit_test(bytes_beyond_the_caches_are_copied_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
