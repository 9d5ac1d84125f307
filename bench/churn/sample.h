// SPDX-License-Identifier: Apache-2.0
/*
 * sample.h - what the replaying processes reported, and the rows that sum it up.
 *
 * A sample is one value of one metric from one process. A row is the median of all samples of a
 * workload, an allocator and a metric, with the lowest and the highest of them.
 */
#ifndef EBB_BENCH_SAMPLE_H
#define EBB_BENCH_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

enum { SAMPLE_NAME_MAX = 96 };

struct row {
    int workload, allocator, metric;
    double value, low, high;
};

/* A series: one value per step or per point; the median where several processes reported it. */
struct series {
    int workload, allocator, metric;
    size_t count, runs;
    double *values; /* runs of `count` values; after samples_close() the medians only */
};

/* What an allocator says about itself, in JSON. */
struct report {
    int workload, allocator;
    char *name, *json;
};

struct sample;

struct samples {
    char (*metric)[SAMPLE_NAME_MAX]; /* in the order they were met */
    int metric_count;
    size_t metric_room;
    struct sample *sample;
    size_t sample_count, sample_room;
    struct row *row;
    size_t row_count;
    struct series *series;
    size_t series_count, series_room;
    struct report *report;
    size_t report_count, report_room;
};

/* Adds one value, or one series. False: no memory, or a name that is too long. */
bool samples_add(struct samples *samples, int workload, int allocator, const char *metric,
                 double value);
bool samples_add_series(struct samples *samples, int workload, int allocator, const char *metric,
                        const double *values, size_t count);

/* Adds one report; both words are copied. False: no memory. */
bool samples_add_report(struct samples *samples, int workload, int allocator, const char *name,
                        const char *json);

/* Takes out all that was added of an allocator on a workload. */
void samples_forget(struct samples *samples, int workload, int allocator);

/* Makes rows and medians of what was added. Rows are sorted by workload, allocator and metric. */
bool samples_close(struct samples *samples);

/* The row; NULL if nothing was reported. After samples_close(). */
const struct row *samples_row(const struct samples *samples, int workload, int allocator,
                              const char *metric);

/* Adds a row that is computed from others; rows stay sorted. After samples_close(). */
bool samples_derive(struct samples *samples, int workload, int allocator, const char *metric,
                    double value);

const struct series *samples_series(const struct samples *samples, int workload, int allocator,
                                    const char *metric);

/* Sorts and returns the middle value (of an even number, the mean of both). */
double samples_median(double *values, size_t count);

void samples_free(struct samples *samples);

#endif
