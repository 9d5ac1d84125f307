// SPDX-License-Identifier: Apache-2.0
/* rows.c - see rows.h. */
#include "rows.h"

#include <math.h>
#include <string.h>

#include "clock.h"

void rows_write(FILE *out, const char *case_name, const char *allocator, const char *metric,
                double value) {
    if (!isfinite(value))
        return;
    fprintf(out, "micro\t%s\t%s\t%s\t%.6g\n", case_name, allocator, metric, value);
}

static double series_median(const struct series *series) {
    double sorted[CHILD_ROUNDS_MAX];

    memcpy(sorted, series->values, series->count * sizeof sorted[0]);
    return clock_median(sorted, series->count);
}

static double series_spread_percent(const struct series *series) {
    double sorted[CHILD_ROUNDS_MAX];
    double median;

    memcpy(sorted, series->values, series->count * sizeof sorted[0]);
    median = clock_median(sorted, series->count);
    return 100 * (sorted[series->count * 3 / 4] - sorted[series->count / 4]) / median;
}

static void write_child(FILE *out, const char *case_name, const char *allocator,
                        const struct child *child) {
    for (size_t i = 0; i < child->series_count; i++) {
        const struct series *series = &child->series[i];

        if (series->count > 0)
            rows_write(out, case_name, allocator, series->name, series_median(series));
    }
    if (child->series_count > 0 && child->series[0].count > 0)
        rows_write(out, case_name, allocator, "spread_percent",
                   series_spread_percent(&child->series[0]));
}

/* The case's first series of a contestant, or NULL if it took no part. */
static const struct series *first_series(const struct child *child) {
    return child->series_count > 0 && child->series[0].count > 0 ? &child->series[0] : NULL;
}

/* The fastest of a family, by the medians. NULL if none took part. */
static const struct series *fastest_of(const struct child *children, enum family family) {
    const struct series *fastest = NULL;

    for (size_t i = 0; i < contestant_count; i++) {
        const struct series *series = first_series(&children[i]);

        if (contestants[i].family == family && series != NULL &&
            (fastest == NULL || series_median(series) < series_median(fastest)))
            fastest = series;
    }
    return fastest;
}

/* Median over the rounds of above / below. */
static double ratio_of(const struct series *above, const struct series *below) {
    double ratios[CHILD_ROUNDS_MAX];
    size_t count = above->count < below->count ? above->count : below->count;

    for (size_t i = 0; i < count; i++)
        ratios[i] = above->values[i] / below->values[i];
    return clock_median(ratios, count);
}

static void write_ratios(FILE *out, const char *case_name, const struct child *children) {
    const struct series *ebb = fastest_of(children, FAMILY_EBB);
    const struct series *floor = fastest_of(children, FAMILY_FLOOR);
    const struct series *malloc_series = fastest_of(children, FAMILY_MALLOC);
    const struct series *arena = fastest_of(children, FAMILY_ARENA);

    if (ebb == NULL)
        return;
    if (floor != NULL && strcmp(floor->name, ebb->name) == 0)
        rows_write(out, case_name, "ebb", "over_floor", ratio_of(ebb, floor));
    if (malloc_series != NULL && strcmp(malloc_series->name, ebb->name) == 0)
        rows_write(out, case_name, "ebb", "faster_than_malloc", ratio_of(malloc_series, ebb));
    if (arena != NULL && strcmp(arena->name, ebb->name) == 0)
        rows_write(out, case_name, "ebb", "faster_than_arena", ratio_of(arena, ebb));
}

void rows_write_case(FILE *out, const struct contest *contest, const struct child *children) {
    for (size_t i = 0; i < contestant_count; i++)
        write_child(out, contest->name, contestants[i].name, &children[i]);
    if (contest->compare)
        write_ratios(out, contest->name, children);
    fflush(out);
}
