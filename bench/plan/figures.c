// SPDX-License-Identifier: Apache-2.0
/*
 * figures.c - plans, proves, times and prints.
 *
 * Each instance is planned RUNS times, once where it is searched, and the shortest time counts: in
 * a program the planner finds its instance in the cache, as it was just recorded. Invariant: no
 * figure is kept of a plan that the sweep did not prove.
 */
#include "figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ebb/base.h>

#include "buffers.h"

enum { RUNS = 3 };

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct bench {
    struct packing_effort effort;
    void *workspace;
    uint64_t *offsets;
    const char *name;
};

static double microseconds(uint64_t begin, uint64_t end) {
    return (double)(end - begin) / 1000;
}

/* One plan; its times count where they are the shortest. */
static bool run(struct bench *bench, const struct instance *instance, struct figures *figures) {
    uint64_t begin = cpu_ns();
    if (packing_solve(instance->buffers, instance->count, &bench->effort, bench->workspace,
                      bench->offsets, &figures->result) != 0) {
        fprintf(stderr, "ebb-plan: %s: %s: %s\n", bench->name,
                ebb_error_name(ebb_last_error()), ebb_last_error_text());
        return false;
    }
    uint64_t planned = cpu_ns();
    if (!packing_is_valid(instance->buffers, bench->offsets, instance->count,
                          figures->result.height, bench->workspace)) {
        fprintf(stderr, "ebb-plan: %s: the plan of %" PRIu32 " buffers is none\n", bench->name,
                instance->count);
        return false;
    }
    figures->sweep_us = fmin(figures->sweep_us, microseconds(planned, cpu_ns()));
    figures->plan_us = fmin(figures->plan_us, microseconds(begin, planned));
    return true;
}

static bool measure_one(struct bench *bench, const struct instance *instance,
                        struct figures *figures) {
    *figures = (struct figures){.buffers = instance->count, .plan_us = INFINITY,
                                .sweep_us = INFINITY};
    for (int i = 0; i < (bench->effort.search_ns ? 1 : RUNS); i++)
        if (!run(bench, instance, figures))
            return false;
    return true;
}

static double ratio(const struct packing_result *result) {
    return result->max_live ? (double)result->height / (double)result->max_live : 1;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values. */
static double median(const double *values, size_t count) {
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static bool measure_all(struct bench *bench, const struct instances *instances,
                        struct figures *figures, double *ratios) {
    uint64_t highest = 0;
    *figures = (struct figures){0};
    for (size_t i = 0; i < instances->count; i++) {
        struct figures one;
        if (!measure_one(bench, &instances->instance[i], &one))
            return false;
        ratios[i] = ratio(&one.result);
        highest = one.result.height > highest ? one.result.height : highest;
        if (one.buffers > figures->buffers)
            *figures = one;
    }
    qsort(ratios, instances->count, sizeof *ratios, compare);
    figures->steps = (uint32_t)instances->count;
    figures->median = median(ratios, instances->count);
    figures->worst = ratios[instances->count - 1];
    figures->highest = highest;
    return true;
}

static uint32_t largest(const struct instances *instances) {
    uint32_t most = 0;
    for (size_t i = 0; i < instances->count; i++)
        most = instances->instance[i].count > most ? instances->instance[i].count : most;
    return most;
}

bool figures_measure(struct figures *figures, const struct instances *instances,
                     const struct options *options, const char *name) {
    uint32_t most = largest(instances);
    size_t bytes = 0;
    packing_workspace_bytes(most, &bytes); /* the reader refuses what is too many */
    struct bench bench = {
        .effort = {.keys = options->keys, .slack_ppm = options->slack_ppm,
                   .target = options->capacity, .clock_ns = cpu_ns,
                   .search_ns = (uint64_t)options->search_ms * 1000000},
        .workspace = buffer_resize(NULL, bytes, 1),
        .offsets = buffer_resize(NULL, most, sizeof *bench.offsets),
        .name = name};
    double *ratios = buffer_resize(NULL, instances->count, sizeof *ratios);
    bool measured = measure_all(&bench, instances, figures, ratios);
    figures->room = options->capacity;
    free(ratios);
    free(bench.workspace);
    free(bench.offsets);
    return measured;
}

/* ---- printing */

void figures_print_head(void) {
    printf("%-28s %5s %7s %12s %12s %7s %7s %9s %8s %6s\n", "instance", "steps", "buffers",
           "max-live", "height", "median", "worst", "plan us", "sweep us", "tries");
}

void figures_print(const struct figures *figures, const char *name) {
    const struct packing_result *result = &figures->result;
    printf("%-28s %5" PRIu32 " %7" PRIu32 " %12" PRIu64 " %12" PRIu64 " %7.4f %7.4f %9.1f %8.1f"
           " %6u\n", name, figures->steps, figures->buffers, result->max_live, result->height,
           figures->median, figures->worst, figures->plan_us, figures->sweep_us, result->tries);
}

/* Names of files may have what ends a field or a row. */
static void write_row(FILE *out, const char *name, const char *metric, double value) {
    fprintf(out, "plan\t");
    for (; *name; name++)
        putc((unsigned char)*name < ' ' ? '_' : *name, out);
    fprintf(out, "\tebb\t%s\t%.15g\n", metric, value);
}

void figures_write_rows(FILE *out, const struct figures *figures, const char *name) {
    write_row(out, name, "steps", figures->steps);
    write_row(out, name, "buffers", figures->buffers);
    write_row(out, name, "max_live_bytes", (double)figures->result.max_live);
    write_row(out, name, "height_bytes", (double)figures->result.height);
    write_row(out, name, "height_over_live_median", figures->median);
    write_row(out, name, "height_over_live_worst", figures->worst);
    write_row(out, name, "plan_us", figures->plan_us);
    write_row(out, name, "sweep_us", figures->sweep_us);
    write_row(out, name, "tries", figures->result.tries);
}
