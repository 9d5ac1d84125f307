// SPDX-License-Identifier: Apache-2.0
/*
 * pairs.c - ebb-pairs BYTES WARM: pairs of malloc() and free(), in a loop (loop.h).
 *
 * A step is a million pairs, so its milliseconds are the nanoseconds of one. With SERVE_SCOPES=1,
 * in a process that has libebb-malloc, ten thousand pairs are a scope.
 */
#include "loop.h"
#include "scopes.h"

#define SCOPES 100
#define PAIRS 10000 /* of a scope */

static ebb_site *site; /* NULL: there are no scopes */
static size_t bytes;

/* The sum of what was written: no pair may be left out. */
static unsigned long run_pairs(void) {
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

static unsigned long run_step(unsigned thread) {
    unsigned long sum = 0;
    (void)thread;
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step step = {0};
        if (site)
            step = ebb_step_begin(site, 0);
        sum += run_pairs();
        if (site && ebb_step_end(step) != 0)
            abort();
    }
    return sum;
}

int main(int argc, char **argv) {
    bytes = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    if (!bytes || !scopes_begin("pairs", &site)) {
        fprintf(stderr, "usage: ebb-pairs BYTES WARM\n");
        return 2;
    }
    return loop_run(run_step, 1, strtoul(argv[2], NULL, 10));
}
