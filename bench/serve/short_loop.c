// SPDX-License-Identifier: Apache-2.0
/*
 * short_loop.c - ebb-short-loop LARGE THREADS WARM: short requests, in a loop (loop.h).
 *
 * A request has 16 blocks of 64 to 784 bytes and one of LARGE bytes, if not 0, all at once, whose
 * ends are touched, and some microseconds of work on memory of its thread's own. A step is a
 * thousand requests, so its milliseconds are a request's microseconds. With SERVE_SCOPES=1, in a
 * process that has libebb-malloc, each request is a scope of the one site that all threads share.
 */
#include "loop.h"
#include "scopes.h"

enum { REQUESTS = 1000, BLOCKS = 16, OWN = 1 << 18, TOUCHES = 5000 };

static ebb_site *site; /* NULL: there are no scopes */
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

static unsigned long run_step(unsigned thread) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        ebb_step step = {0};
        if (site)
            step = ebb_step_begin(site, 0);
        sum += answer_request(thread);
        if (site && ebb_step_end(step) != 0)
            abort();
    }
    return sum;
}

int main(int argc, char **argv) {
    unsigned long threads = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    if (threads < 1 || threads > LOOP_MOST || !scopes_begin("request", &site)) {
        fprintf(stderr, "usage: ebb-short-loop LARGE THREADS WARM, at most %d threads\n",
                LOOP_MOST);
        return 2;
    }
    large = strtoul(argv[1], NULL, 10);
    own = calloc(threads, sizeof *own);
    return own ? loop_run(run_step, (unsigned)threads, strtoul(argv[3], NULL, 10)) : 1;
}
