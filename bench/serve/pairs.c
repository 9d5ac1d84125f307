// SPDX-License-Identifier: Apache-2.0
/*
 * pairs.c - ebb-pairs BYTES WARM: pairs of malloc() and free(), in a loop (loop.h).
 *
 * A step is a million pairs, so its milliseconds are the nanoseconds of one; ten thousand are a
 * request.
 */
#include "argument.h"
#include "loop.h"

#include <stdio.h>
#include <stdlib.h>

#define PAIRS 10000 /* of a request */
#define BYTES_MOST (1 << 30)

static size_t bytes;

/* The sum of what was written: no pair may be left out. */
static unsigned long run_pairs(unsigned thread) {
    (void)thread;
    unsigned long sum = 0;
    for (unsigned i = 0; i < PAIRS; i++) {
        unsigned char *volatile block = malloc(bytes);
        if (!block)
            abort();
        block[0] = (unsigned char)i;
        sum += block[0];
        free(block);
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: ebb-pairs BYTES WARM\n");
        return 2;
    }
    bytes = argument_number("BYTES", argv[1], 1, BYTES_MOST);
    unsigned long warm = argument_number("WARM", argv[2], 0, LOOP_STEPS_MOST);
    return loop_run(&(struct loop){.request = run_pairs, .name = "pairs", .requests = 100,
                                   .threads = 1, .warm = warm});
}
