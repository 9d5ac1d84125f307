// SPDX-License-Identifier: Apache-2.0
/*
 * short_loop.c - ebb-short-loop LARGE THREADS WARM: short requests, in a loop (loop.h).
 *
 * A request has 16 blocks of 64 to 784 bytes and one of LARGE bytes, if not 0, all at once, whose
 * ends are touched, and some microseconds of work on memory of its thread's own. A step is a
 * thousand requests, so its milliseconds are a request's microseconds.
 */
#include "argument.h"
#include "loop.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 16, OWN = 1 << 18, TOUCHES = 5000, LARGE_MOST = 1 << 30 };

static size_t large;
static unsigned char (*own)[OWN];

/* Both ends of it are written, so that another block in the same place would be noticed. */
static unsigned char *block_of(size_t bytes, size_t number) {
    unsigned char *volatile block = malloc(bytes);
    if (!block)
        abort();
    block[0] = (unsigned char)(number + 1);
    block[bytes - 1] = (unsigned char)(number + 101);
    return block;
}

/* The sum of what was written. */
static unsigned end_block(unsigned char *block, size_t bytes) {
    unsigned sum = block[0] + 2u * block[bytes - 1];
    free(block);
    return sum;
}

static unsigned work(unsigned char *memory) {
    unsigned sum = 0;
    for (size_t i = 0; i < TOUCHES; i++) {
        unsigned char *byte = &memory[i * 64 % OWN];
        sum += *byte;
        *byte = (unsigned char)((*byte + 1) % 256);
    }
    return sum;
}

static unsigned long answer_request(unsigned thread) {
    unsigned char *blocks[BLOCKS], *largest = NULL;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = block_of(64 + i * 48, i);
    if (large)
        largest = block_of(large, BLOCKS);
    unsigned long sum = work(own[thread]);
    if (large)
        sum += end_block(largest, large);
    for (size_t i = 0; i < BLOCKS; i++)
        sum += end_block(blocks[i], 64 + i * 48);
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: ebb-short-loop LARGE THREADS WARM\n");
        return 2;
    }
    large = argument_number("LARGE", argv[1], 0, LARGE_MOST);
    unsigned threads = (unsigned)argument_number("THREADS", argv[2], 1, LOOP_MOST);
    unsigned long warm = argument_number("WARM", argv[3], 0, LOOP_STEPS_MOST);
    own = calloc(threads, sizeof *own);
    if (!own)
        return 1;
    return loop_run(&(struct loop){.request = answer_request, .name = "request", .requests = 1000,
                                   .threads = threads, .warm = warm});
}
