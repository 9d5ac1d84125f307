// SPDX-License-Identifier: Apache-2.0
/*
 * overlap.c - whether elements share memory, against a model that marks bytes: all strides and
 * offsets, those that nest and those made by hand, elements of different sizes.
 */
#include "kit/test.h"

#include "object/copy.h"

#include <stdlib.h>
#include <time.h>

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
    uint64_t first = number_from("EBB_SEED", (uint64_t)time(NULL));
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
    assert_true(tensors_overlap(&tensor, &other)); /* in truth they do not: distances are even */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_equal_those_of_a_model_that_marks_bytes),
        cmocka_unit_test(hopeless_searches_end_with_yes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
