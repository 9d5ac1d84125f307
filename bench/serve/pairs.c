// SPDX-License-Identifier: Apache-2.0
/*
 * pairs.c - ebb-pairs BYTES WARM: pairs of malloc() and free(), in a loop (loop.h).
 *
 * A step is a million pairs, so its milliseconds are the nanoseconds of one; ten thousand are a
 * request.
 */
#include "loop.h"

#include <stdio.h>
#include <stdlib.h>

#define PAIRS 10000 /* of a request */

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
    bytes = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    if (!bytes) {
        fprintf(stderr, "usage: ebb-pairs BYTES WARM\n");
        return 2;
    }
    return loop_run(&(struct loop){.request = run_pairs, .name = "pairs", .requests = 100,
                                   .threads = 1, .warm = strtoul(argv[2], NULL, 10)});
}
