// SPDX-License-Identifier: Apache-2.0
/*
 * sample.c - a flat list of samples, sorted once into rows.
 *
 * Metrics are numbered in the order in which they are first met, which is also the order of rows.
 * A few ten thousand samples at most: looking for a metric's name is a walk.
 */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    int workload, allocator, metric;
    double value;
};

static int find_metric(const struct samples *samples, const char *metric) {
    for (int i = 0; i < samples->metric_count; i++)
        if (strcmp(samples->metric[i], metric) == 0)
            return i;
    return -1;
}

/* Room for one element more; elements may move. */
static bool grow(void *elements, size_t bytes, size_t count, size_t *room) {
    void *old, *grown;
    if (count < *room)
        return true;
    size_t wanted = *room ? 2 * *room : 256;
    memcpy(&old, elements, sizeof old);
    grown = realloc(old, wanted * bytes);
    if (!grown)
        return false;
    memcpy(elements, &grown, sizeof grown);
    *room = wanted;
    return true;
}

static int number_of(struct samples *samples, const char *metric) {
    int found = find_metric(samples, metric);
    if (found >= 0)
        return found;
    if (strlen(metric) >= SAMPLE_NAME_MAX ||
        !grow(&samples->metric, sizeof *samples->metric, (size_t)samples->metric_count,
              &samples->metric_room))
        return -1;
    strcpy(samples->metric[samples->metric_count], metric);
    return samples->metric_count++;
}

bool samples_add(struct samples *samples, int workload, int allocator, const char *metric,
                 double value) {
    int number = number_of(samples, metric);
    if (number < 0 || !grow(&samples->sample, sizeof *samples->sample, samples->sample_count,
                            &samples->sample_room))
        return false;
    samples->sample[samples->sample_count++] =
        (struct sample){workload, allocator, number, value};
    return true;
}

static struct series *find_series(const struct samples *samples, int workload, int allocator,
                                  int metric) {
    for (size_t i = 0; i < samples->series_count; i++) {
        struct series *series = &samples->series[i];
        if (series->workload == workload && series->allocator == allocator &&
            series->metric == metric)
            return series;
    }
    return NULL;
}

static struct series *new_series(struct samples *samples, int workload, int allocator, int metric,
                                 size_t count) {
    if (!grow(&samples->series, sizeof *samples->series, samples->series_count,
              &samples->series_room))
        return NULL;
    struct series *series = &samples->series[samples->series_count++];
    *series = (struct series){workload, allocator, metric, count, 0, NULL};
    return series;
}

bool samples_add_series(struct samples *samples, int workload, int allocator, const char *metric,
                        const double *values, size_t count) {
    int number = number_of(samples, metric);
    struct series *series =
        number < 0 ? NULL : find_series(samples, workload, allocator, number);
    if (number >= 0 && !series)
        series = new_series(samples, workload, allocator, number, count);
    if (!series || series->count != count)
        return false;
    double *grown = realloc(series->values, (series->runs + 1) * count * sizeof *grown);
    if (!grown)
        return false;
    memcpy(grown + series->runs++ * count, values, count * sizeof *values);
    series->values = grown;
    return true;
}

bool samples_add_report(struct samples *samples, int workload, int allocator, const char *name,
                        const char *json) {
    if (!grow(&samples->report, sizeof *samples->report, samples->report_count,
              &samples->report_room))
        return false;
    struct report report = {workload, allocator, strdup(name), strdup(json)};
    samples->report[samples->report_count++] = report;
    return report.name && report.json;
}

/* A macro, since samples, series and reports begin alike but are of three types. */
#define IS_OF(element, workload_number, allocator_number) \
    ((element)->workload == (workload_number) && (element)->allocator == (allocator_number))

void samples_forget(struct samples *samples, int workload, int allocator) {
    size_t left = 0, series_left = 0, reports_left = 0;
    for (size_t i = 0; i < samples->sample_count; i++)
        if (!IS_OF(&samples->sample[i], workload, allocator))
            samples->sample[left++] = samples->sample[i];
    for (size_t i = 0; i < samples->series_count; i++)
        if (IS_OF(&samples->series[i], workload, allocator))
            free(samples->series[i].values);
        else
            samples->series[series_left++] = samples->series[i];
    for (size_t i = 0; i < samples->report_count; i++)
        if (IS_OF(&samples->report[i], workload, allocator)) {
            free(samples->report[i].name);
            free(samples->report[i].json);
        } else {
            samples->report[reports_left++] = samples->report[i];
        }
    samples->sample_count = left;
    samples->series_count = series_left;
    samples->report_count = reports_left;
}

static int compare_keys(int workload, int allocator, int metric, const struct row *b) {
    if (workload != b->workload)
        return workload < b->workload ? -1 : 1;
    if (allocator != b->allocator)
        return allocator < b->allocator ? -1 : 1;
    return (metric > b->metric) - (metric < b->metric);
}

static int compare_rows(const void *a, const void *b) {
    const struct row *x = a;
    return compare_keys(x->workload, x->allocator, x->metric, b);
}

static int compare_samples(const void *a, const void *b) {
    const struct sample *x = a, *y = b;
    struct row key = {.workload = y->workload, .allocator = y->allocator, .metric = y->metric};
    int order = compare_keys(x->workload, x->allocator, x->metric, &key);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

static int compare_values(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_median(double *values, size_t count) {
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_values);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* `sample` is the first of `count` that differ in nothing but their value, ascending. */
static struct row sum_up(const struct sample *sample, size_t count) {
    double median = (sample[(count - 1) / 2].value + sample[count / 2].value) / 2;
    return (struct row){sample->workload, sample->allocator, sample->metric,
                        median, sample[0].value, sample[count - 1].value};
}

static size_t run_length(const struct samples *samples, size_t from) {
    const struct sample *first = &samples->sample[from];
    size_t to = from + 1;
    while (to < samples->sample_count && samples->sample[to].workload == first->workload &&
           samples->sample[to].allocator == first->allocator &&
           samples->sample[to].metric == first->metric)
        to++;
    return to - from;
}

static void close_series(struct series *series) {
    double *column = malloc(series->runs * sizeof *column);
    for (size_t i = 0; column && i < series->count; i++) {
        for (size_t run = 0; run < series->runs; run++)
            column[run] = series->values[run * series->count + i];
        series->values[i] = samples_median(column, series->runs);
    }
    free(column);
}

bool samples_close(struct samples *samples) {
    for (size_t i = 0; i < samples->series_count; i++)
        close_series(&samples->series[i]);
    samples->row = calloc(samples->sample_count + 1, sizeof *samples->row);
    if (!samples->row)
        return false;
    if (samples->sample_count)
        qsort(samples->sample, samples->sample_count, sizeof *samples->sample, compare_samples);
    for (size_t i = 0, length; i < samples->sample_count; i += length) {
        length = run_length(samples, i);
        samples->row[samples->row_count++] = sum_up(&samples->sample[i], length);
    }
    return true;
}

const struct row *samples_row(const struct samples *samples, int workload, int allocator,
                              const char *metric) {
    struct row key = {.workload = workload, .allocator = allocator,
                      .metric = find_metric(samples, metric)};
    if (key.metric < 0 || !samples->row)
        return NULL;
    return bsearch(&key, samples->row, samples->row_count, sizeof key, compare_rows);
}

bool samples_derive(struct samples *samples, int workload, int allocator, const char *metric,
                    double value) {
    int number = number_of(samples, metric);
    struct row *grown = realloc(samples->row, (samples->row_count + 1) * sizeof *grown);
    if (grown)
        samples->row = grown;
    if (number < 0 || !grown)
        return false;
    struct row row = {workload, allocator, number, value, value, value};
    size_t at = samples->row_count++;
    for (; at > 0 && compare_rows(&grown[at - 1], &row) > 0; at--)
        grown[at] = grown[at - 1];
    grown[at] = row;
    return true;
}

const struct series *samples_series(const struct samples *samples, int workload, int allocator,
                                    const char *metric) {
    int number = find_metric(samples, metric);
    return number < 0 ? NULL : find_series(samples, workload, allocator, number);
}

void samples_free(struct samples *samples) {
    for (size_t i = 0; i < samples->report_count; i++) {
        free(samples->report[i].name);
        free(samples->report[i].json);
    }
    free(samples->report);
    for (size_t i = 0; i < samples->series_count; i++)
        free(samples->series[i].values);
    free(samples->series);
    free(samples->row);
    free(samples->sample);
    free(samples->metric);
    *samples = (struct samples){.metric_count = 0};
}
