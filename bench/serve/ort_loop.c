// SPDX-License-Identifier: Apache-2.0
/*
 * ort_loop.c - ort-loop LIBRARY MODEL THREADS WARM: requests to onnxruntime, in a loop (loop.h).
 *
 * The same requests as ort-server's, with nothing between them and the model. A step is a thousand
 * of 16 to 256 tokens, so its milliseconds are a request's microseconds.
 */
#include "argument.h"
#include "loop.h"
#include "ort_model.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST = 16, MOST = 256 };

static uint64_t chances[LOOP_MOST];

static unsigned random_of(uint64_t *chance) {
    *chance = (*chance * 1103515245 + 12345) % ((uint64_t)1 << 31);
    return (unsigned)(*chance >> 8);
}

static unsigned long answer_request(unsigned thread) {
    uint64_t *chance = &chances[thread];
    float answer[ANSWER_FLOATS];
    size_t count = LEAST + random_of(chance) % (MOST - LEAST + 1);
    int32_t *tokens = malloc(count * sizeof *tokens);
    if (!tokens)
        abort();
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)(random_of(chance) % 100);
    if (!ort_model_infer(tokens, count, answer))
        abort();
    free(tokens);
    unsigned long sum = 0;
    for (size_t i = 0; i < ANSWER_FLOATS; i++)
        sum += (unsigned long)(long)(answer[i] * 1e6F);
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: ort-loop LIBRARY MODEL THREADS WARM\n");
        return 2;
    }
    unsigned threads = (unsigned)argument_number("THREADS", argv[3], 1, LOOP_MOST);
    unsigned long warm = argument_number("WARM", argv[4], 0, LOOP_STEPS_MOST);
    for (unsigned i = 0; i < threads; i++)
        chances[i] = i;
    if (!ort_model_open(argv[1], argv[2], false))
        return 1;
    return loop_run(&(struct loop){.request = answer_request, .name = "request", .requests = 1000,
                                   .threads = threads, .warm = warm});
}
