// SPDX-License-Identifier: Apache-2.0
/*
 * pairs.c - ebb-pairs BYTES WARM: pairs of malloc() and free(), a loop that measures itself.
 *
 * A step is a million pairs, so its milliseconds are the nanoseconds of one. Speaks as train.py
 * does: takes WARM steps, prints `ready`, and for each line with a number takes so many steps and
 * prints a line of JSON. With SERVE_SCOPES=1, in a process that has libebb-malloc, ten thousand
 * pairs are a scope.
 */
#include "scopes.h"

#include <sys/resource.h>
#include <time.h>

#define SCOPES 100
#define PAIRS 10000 /* of a scope */

static ebb_site *site; /* NULL: there are no scopes */

/* The sum of what was written: no pair may be left out. */
static unsigned long run_pairs(size_t bytes) {
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

static unsigned long run_step(size_t bytes) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < SCOPES; i++) {
        ebb_step step = {0};
        if (site)
            step = ebb_step_begin(site, 0);
        sum += run_pairs(bytes);
        if (site && ebb_step_end(step) != 0)
            abort();
    }
    return sum;
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void measure(size_t bytes, unsigned steps) {
    struct rusage before, after;
    unsigned long sum = 0;
    getrusage(RUSAGE_SELF, &before);
    double began = now_ms();
    for (unsigned i = 0; i < steps; i++)
        sum += run_step(bytes);
    double spent = now_ms() - began;
    getrusage(RUSAGE_SELF, &after);
    printf("{\"cpu_ms\": %.6f, \"faults\": %.3f, \"peak_bytes\": %ld, \"loss\": %lu}\n",
           spent / steps, (double)(after.ru_minflt - before.ru_minflt) / steps,
           after.ru_maxrss * 1024, sum);
    fflush(stdout);
}

int main(int argc, char **argv) {
    unsigned long bytes = argc == 3 ? strtoul(argv[1], NULL, 10) : 0, steps;
    if (!bytes || !scopes_begin("pairs", &site)) {
        fprintf(stderr, "usage: ebb-pairs BYTES WARM\n");
        return 2;
    }
    for (unsigned long i = strtoul(argv[2], NULL, 10); i; i--)
        (void)run_step(bytes);
    printf("ready\n");
    fflush(stdout);
    while (scanf("%lu", &steps) == 1 && steps)
        measure(bytes, (unsigned)steps);
    return 0;
}
