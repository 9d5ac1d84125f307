// SPDX-License-Identifier: Apache-2.0
/*
 * overlap.c - whether elements share memory, against a model that marks bytes: all strides and
 * offsets, those that nest and those made by hand, elements of different sizes; views of one large
 * tensor.
 */
#include "kit/test.h"

#include "object/copy.h"

#include <stdlib.h>
#include <string.h>

/* The farthest that a sample reaches: 200 bytes, and 4 dimensions of 4 strides of 39 words. */
enum { ROOM = 200 + (4 * 4 * 39 + 1) * 8, CASES = 30000 };

static uint64_t state_of_chance;
static char memory[ROOM];

static int64_t below(int64_t limit) {
    state_of_chance = state_of_chance * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state_of_chance >> 33) % (uint64_t)limit);
}

struct sample {
    struct ebb_tensor tensor;
    int64_t shape[4], strides[4];
};

/* A tensor of up to 4 dimensions with a reach of less than half the room. */
static void choose(struct sample *sample) {
    static const uint8_t bits[] = {8, 16, 32, 64};
    sample->tensor = (struct ebb_tensor){.dtype = {EBB_INT, bits[below(4)], 1},
                                         .ndim = (int32_t)below(5),
                                         .shape = sample->shape,
                                         .strides = sample->strides,
                                         .data = memory + below(200)};
    for (int i = 0; i < 4; i++) {
        sample->shape[i] = below(12) ? 1 + below(5) : 0;
        sample->strides[i] = below(below(2) ? 8 : 40);
    }
}

/* Counts the visits of each byte; true if a byte was visited twice. */
static bool mark(const struct ebb_tensor *tensor, unsigned char *visits) {
    int64_t bytes = (int64_t)ebb_dtype_bytes(tensor->dtype);
    bool twice = false;
    for (int64_t place = 0; place < ebb_tensor_count(tensor); place++) {
        int64_t rest = place, offset = 0;
        for (int i = tensor->ndim - 1; i >= 0; i--) {
            offset += rest % tensor->shape[i] * tensor->strides[i];
            rest /= tensor->shape[i];
        }
        char *at = (char *)tensor->data + offset * bytes;
        for (int64_t byte = 0; byte < bytes; byte++)
            twice |= visits[at - memory + byte]++ > 0;
    }
    return twice;
}

static void answers_equal_those_of_a_model_that_marks_bytes(void **state) {
    uint64_t first = fresh_seed();
    int shared = 0, apart = 0, own = 0;
    for (uint64_t round = 0; round < CASES; round++) {
        struct sample one, other;
        unsigned char visits[ROOM] = {0}, others[ROOM] = {0};
        state_of_chance = first + round;
        below(1);
        choose(&one);
        choose(&other);
        bool itself = mark(&one.tensor, visits), both = false;
        mark(&other.tensor, others);
        for (size_t i = 0; i < ROOM; i++)
            both |= visits[i] && others[i];
        if (itself != tensor_overlaps_itself(&one.tensor) ||
            both != tensors_overlap(&one.tensor, &other.tensor) ||
            both != tensors_overlap(&other.tensor, &one.tensor))
            fail_msg("EBB_SEED=%llu", (unsigned long long)(first + round));
        shared += both;
        apart += !both;
        own += itself;
    }
    assert_true(shared > CASES / 10 && apart > CASES / 10 && own > CASES / 10);
}

/* ---- views of one tensor, with more elements than a search takes steps */

enum { LARGE = 30000, LARGE_CASES = 1500 };

static char large[LARGE];

/* A part of a row-major tensor of bytes, every few of them, its dimensions in another order. */
static void choose_part(struct sample *sample, int ndim, const int64_t *shape) {
    int64_t stride = 1, offset = 0;
    for (int i = ndim - 1; i >= 0; stride *= shape[i--]) {
        int64_t step = 1 + below(below(2) ? 3 : 8), first = below(shape[i] < 4 ? shape[i] : 4);
        int64_t end = below(2) ? shape[i] : first + 1 + below(shape[i] - first);
        sample->shape[i] = (end - first + step - 1) / step;
        sample->strides[i] = stride * step;
        offset += first * stride;
    }
    int64_t with = below(ndim), size = sample->shape[0];
    stride = sample->strides[0];
    sample->shape[0] = sample->shape[with];
    sample->strides[0] = sample->strides[with];
    sample->shape[with] = size;
    sample->strides[with] = stride;
    sample->tensor = (struct ebb_tensor){.dtype = {EBB_INT, 8, 1}, .ndim = ndim,
                                         .shape = sample->shape, .strides = sample->strides,
                                         .data = large + offset};
}

/* Few large dimensions, or a large one among small ones. */
static void choose_shape(int ndim, int64_t *shape) {
    int64_t left = LARGE;
    for (int i = 0; i < ndim; i++) {
        shape[i] = 1 + below(i + 1 < ndim ? 6 : left);
        left /= shape[i];
    }
    int64_t with = below(ndim), last = shape[ndim - 1];
    shape[ndim - 1] = shape[with];
    shape[with] = last;
}

/* True if one of its elements is marked; `marks`: marks all of them. */
static bool visit(const struct ebb_tensor *tensor, int dim, const char *at, unsigned char *marked,
                  bool marks) {
    bool found = false;
    if (dim == tensor->ndim) {
        found = marked[at - large];
        marked[at - large] |= marks;
        return found;
    }
    for (int64_t i = 0; i < tensor->shape[dim]; i++)
        found |= visit(tensor, dim + 1, at + i * tensor->strides[dim], marked, marks);
    return found;
}

static void answers_of_large_views_equal_those_of_a_model(void **state) {
    static unsigned char marked[LARGE];
    uint64_t first = fresh_seed();
    int shared = 0, apart = 0;
    for (uint64_t round = 0; round < LARGE_CASES; round++) {
        struct sample one, other;
        int64_t shape[4];
        state_of_chance = first + round;
        below(1);
        int ndim = 1 + (int)below(4);
        choose_shape(ndim, shape);
        choose_part(&one, ndim, shape);
        choose_part(&other, ndim, shape);
        memset(marked, 0, sizeof marked);
        visit(&one.tensor, 0, one.tensor.data, marked, true);
        bool both = visit(&other.tensor, 0, other.tensor.data, marked, false);
        if (both != tensors_overlap(&one.tensor, &other.tensor) ||
            both != tensors_overlap(&other.tensor, &one.tensor) ||
            tensor_overlaps_itself(&one.tensor))
            fail_msg("EBB_SEED=%llu", (unsigned long long)(first + round));
        shared += both;
        apart += !both;
    }
    assert_true(shared > LARGE_CASES / 10 && apart > LARGE_CASES / 10);
}

static void hopeless_searches_end_with_yes(void **state) {
    int64_t shape[EBB_DIMENSIONS_MAX], strides[EBB_DIMENSIONS_MAX];
    struct ebb_tensor tensor = {.dtype = {EBB_INT, 8, 1}, .ndim = EBB_DIMENSIONS_MAX,
                                .shape = shape, .strides = strides, .data = memory};
    struct ebb_tensor other = tensor;
    other.data = memory + 1;
    for (int i = 0; i < EBB_DIMENSIONS_MAX; i++) {
        shape[i] = 3;
        strides[i] = 1000000 + 2 * i * i;
    }
    strides[0] = 500001; /* the one to make a distance odd, which no others make up for */
    assert_true(tensors_overlap(&tensor, &other)); /* in truth they do not */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_equal_those_of_a_model_that_marks_bytes),
        cmocka_unit_test(answers_of_large_views_equal_those_of_a_model),
        cmocka_unit_test(hopeless_searches_end_with_yes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
