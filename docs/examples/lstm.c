// SPDX-License-Identifier: Apache-2.0
/* lstm.c - a recurrent cell over sequences of different lengths; its output outlives the step. */
#include <ebb/ebb.h>

#include <stdlib.h>

enum { SEQUENCES = 4, STEPS = 6 };

static const int64_t lengths[SEQUENCES] = {3, 6, 0, 5};

static void need(bool holds) {
    if (!holds)
        exit(1);
}

/* One step of one sequence: what is remembered, and how much of it is let out. */
static float cell(float *state, float input) {
    float forget = *state / (1 + *state * *state), open = 1 / (1 + input * input);
    *state = forget * *state + (1 - forget) * input;
    return open * *state;
}

/* All steps: packed, the rows of a step lie side by side, those of sequences that ended nowhere. */
static struct ebb_packed *run(ebb_region step, const struct ebb_packed *input, float *states) {
    struct ebb_tensor *data = ebb_tensor_like(step, input->data);
    need(data != NULL);
    const int64_t *batch_sizes = input->batch_sizes->data;
    const float *in = input->data->data;
    float *out = data->data;
    for (int64_t t = 0; t < input->batch_sizes->shape[0]; t++)
        for (int64_t rank = 0; rank < batch_sizes[t]; rank++)
            *out++ = cell(&states[rank], *in++);
    return ebb_packed_from(step, data, ebb_tensor_contiguous(step, input->batch_sizes),
                           ebb_tensor_contiguous(step, input->sorted_indices), NULL);
}

int main(void) {
    float inputs[STEPS][SEQUENCES], alone = 0, states[SEQUENCES] = {0};
    struct ebb_pad_options minus = {.size = sizeof minus, .padding = ebb_value_int(-9)};
    ebb_region training = ebb_region_open(EBB_REGION_OPTIONS(.name = "training"));
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = training));
    for (int i = 0; i < STEPS * SEQUENCES; i++)
        inputs[i / SEQUENCES][i % SEQUENCES] = (float)(i * 7 % 13) / 8;
    struct ebb_tensor *padded = ebb_tensor_from(step, (struct ebb_dtype){EBB_FLOAT, 32, 1}, 2,
                                                (const int64_t[]){STEPS, SEQUENCES}, inputs);
    struct ebb_packed *input = ebb_padded_pack(step, padded, lengths, SEQUENCES, NULL);
    need(input != NULL && input->data->shape[0] == 3 + 6 + 0 + 5); /* no padding in there */
    void *output = run(step, input, states);
    need(ebb_objects_close_keeping(step, training, &output, 1, NULL, NULL, NULL) == 0);
    padded = ebb_packed_pad(training, output, &minus); /* in the order of the input */
    need(padded != NULL && padded->shape[0] == STEPS);
    for (int n = 0; n < SEQUENCES; n++, alone = 0)
        for (int t = 0; t < STEPS; t++)
            need(((float *)padded->data)[t * SEQUENCES + n] ==
                 (t < lengths[n] ? cell(&alone, inputs[t][n]) : -9));
    return ebb_region_close(training);
}
