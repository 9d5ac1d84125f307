// SPDX-License-Identifier: Apache-2.0
/* loop.c - see loop.h. */
#include "loop.h"
#include "argument.h"
#include "resident.h"
#include "scopes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define LINE_MOST 64

static struct loop loop;
static ebb_site *site; /* NULL: there are no scopes */
static unsigned long steps; /* of a turn, for each thread */
static unsigned long sums[LOOP_MOST]; /* of the turn */
static pthread_barrier_t turn_begins, turn_ends;

static unsigned long take_step(unsigned thread) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < loop.requests; i++) {
        ebb_step step = {0};
        if (site)
            step = ebb_step_begin(site, 0);
        sum += loop.request(thread);
        if (site && ebb_step_end(step) != 0)
            abort();
    }
    return sum;
}

static void take_steps(unsigned thread) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < steps; i++)
        sum += take_step(thread);
    sums[thread] = sum;
}

static void *work(void *number) {
    for (;;) {
        pthread_barrier_wait(&turn_begins);
        take_steps((unsigned)(size_t)number);
        pthread_barrier_wait(&turn_ends);
    }
    return NULL;
}

static void take_turn(unsigned long count) {
    steps = count;
    if (loop.threads == 1) {
        take_steps(0);
        return;
    }
    pthread_barrier_wait(&turn_begins);
    pthread_barrier_wait(&turn_ends);
}

static bool start_threads(void) {
    if (loop.threads == 1)
        return true;
    pthread_barrier_init(&turn_begins, NULL, loop.threads + 1);
    pthread_barrier_init(&turn_ends, NULL, loop.threads + 1);
    for (size_t i = 0; i < loop.threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)i) != 0)
            return false;
    }
    return true;
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void measure(unsigned long count) {
    struct rusage before, after;
    double taken = (double)count * loop.threads;
    unsigned long sum = 0;
    getrusage(RUSAGE_SELF, &before);
    double began = now_ms();
    take_turn(count);
    double spent = now_ms() - began;
    getrusage(RUSAGE_SELF, &after);
    for (unsigned i = 0; i < loop.threads; i++)
        sum += sums[i];
    /* ru_maxrss is no less than what had been resident before exec(), of the parent's memory. */
    printf("{\"cpu_ms\": %.6f, \"faults\": %.3f, \"peak_bytes\": %" PRIu64 ", \"loss\": %lu}\n",
           spent / taken, (double)(after.ru_minflt - before.ru_minflt) / taken, resident_peak(),
           sum);
    fflush(stdout);
}

/* False at the end of the input. */
static bool next_turn(unsigned long *count) {
    char line[LINE_MOST];
    if (!fgets(line, sizeof line, stdin))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    *count = argument_number("steps", line, 1, LOOP_STEPS_MOST);
    return true;
}

int loop_run(const struct loop *what) {
    unsigned long count;
    loop = *what;
    if (!scopes_begin(loop.name, &site))
        return 2;
    if (!start_threads()) {
        fprintf(stderr, "loop: no more threads\n");
        return 1;
    }
    take_turn(loop.warm);
    printf("ready\n");
    fflush(stdout);
    while (next_turn(&count))
        measure(count);
    return 0;
}
