// SPDX-License-Identifier: Apache-2.0
//
// results.c - footprints of variants on traces, and the tables made of them.
//
// Medians are upper medians. One invariant: a result has at least one step; a trace without steps
// has zeros and is passed over in the summary. Nothing is refused.

#include "results.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"

static const double ALLOWED_BYTES_MORE = 256 << 10;

static double allowance(uint64_t max_live_bytes, enum trace_view view)
{
    double live = (double)max_live_bytes;
    double factor = view == TRACE_VIEW_FULL ? 1.4 : 1.25;

    return factor * live > live + ALLOWED_BYTES_MORE ? factor * live : live + ALLOWED_BYTES_MORE;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void summarize(double *values, size_t count, double *median, double *max)
{
    qsort(values, count, sizeof *values, compare_doubles);
    *median = values[count / 2];
    *max = values[count - 1];
}

struct result measure(struct simulator *simulator, const struct variant *variant,
                      const struct steps *steps, enum trace_view view)
{
    struct result result = {.steps = steps->count};
    double *ratios = buffer_resize(NULL, steps->count, sizeof *ratios);
    double *margins = buffer_resize(NULL, steps->count, sizeof *margins);

    for (size_t i = 0; i < steps->count; i++) {
        uint64_t live = steps->step[i].max_live_bytes;
        double footprint = (double)simulate_step(simulator, variant, &steps->step[i]);

        ratios[i] = footprint / (double)(live ? live : 1);
        margins[i] = footprint / allowance(live, view);
        result.steps_over += margins[i] > 1;
    }
    if (steps->count) {
        summarize(ratios, steps->count, &result.ratio_median, &result.ratio_max);
        summarize(margins, steps->count, &result.margin_median, &result.margin_max);
    }
    free(ratios);
    free(margins);
    return result;
}

// ---- rows

static void print_row(const struct variant *variant, const char *trace, const struct result *result)
{
    printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t%" PRIu64 "\t%s\t%zu\t%.3f\t%.3f\t%.3f\t%.3f\t"
           "%zu\n",
           trace, variant->limit, variant->small.window_bytes, variant_reuse_name(variant),
           variant_placement_name(variant), variant->granule, variant_source_name(variant),
           result->steps, result->ratio_median, result->ratio_max, result->margin_median,
           result->margin_max, result->steps_over);
}

void results_print_rows(const struct results *results)
{
    puts("trace\tlimit\twindow\treuse\tplacement\tgranule\twindows\tsteps\tratio_median\t"
         "ratio_max\tmargin_median\tmargin_max\tsteps_over");
    for (size_t column = 0; column < results->column_count; column++)
        for (size_t i = 0; i < results->variants->count; i++)
            print_row(&results->variants->variant[i], results->columns[column].name,
                      &results->results[i * results->column_count + column]);
}

// ---- table

static const char *const critical[] = {
    "autoenc_accum.tensor", "charlstm_sgd.tensor", "transformer_train.tensor",
    "charlstm_sgd.full",    "recsys_embbag.full",  "request_lstm.full",
};

enum { CRITICAL = sizeof critical / sizeof critical[0] };

struct summary {
    double worst_median, worst;
    const char *worst_median_trace;
    size_t steps_over, traces_over;
};

static struct summary summarize_variant(const struct results *results, const struct result *row)
{
    struct summary summary = {.worst_median_trace = "-"};

    for (size_t i = 0; i < results->column_count; i++) {
        if (row[i].margin_median > summary.worst_median) {
            summary.worst_median = row[i].margin_median;
            summary.worst_median_trace = results->columns[i].name;
        }
        if (row[i].margin_max > summary.worst)
            summary.worst = row[i].margin_max;
        summary.steps_over += row[i].steps_over;
        summary.traces_over += row[i].steps_over > 0;
    }
    return summary;
}

static const struct result *find_result(const struct results *results, const struct result *row,
                                        const char *name)
{
    for (size_t i = 0; i < results->column_count; i++)
        if (!strcmp(results->columns[i].name, name))
            return &row[i];
    return NULL;
}

static void print_variant(const struct variant *variant)
{
    if (variant->limit)
        printf("| %" PRIu64 " | %" PRIu64 " | ", variant->limit, variant->small.window_bytes);
    else
        printf("| - | - | ");
    printf("%s | %s/%" PRIu64 " | %s ", variant_reuse_name(variant),
           variant_placement_name(variant), variant->granule, variant_source_name(variant));
}

static void print_table_line(const struct results *results, size_t variant)
{
    const struct result *row = &results->results[variant * results->column_count];
    struct summary summary = summarize_variant(results, row);

    print_variant(&results->variants->variant[variant]);
    printf("| %.3f %s | %zu in %zu, %.3f ", summary.worst_median, summary.worst_median_trace,
           summary.steps_over, summary.traces_over, summary.worst);
    for (int i = 0; i < CRITICAL; i++) {
        const struct result *result = find_result(results, row, critical[i]);

        if (result)
            printf("| %.2f/%.2f ", result->ratio_median, result->ratio_max);
        else
            printf("| - ");
    }
    puts("|");
}

void results_print_table(const struct results *results)
{
    printf("| limit | window | reuse | placement/granule | windows | worst median margin "
           "| steps over, worst ");
    for (int i = 0; i < CRITICAL; i++)
        printf("| %s ", critical[i]);
    printf("|\n|---|---|---|---|---|---|---");
    for (int i = 0; i < CRITICAL; i++)
        printf("|---");
    puts("|");
    for (size_t i = 0; i < results->variants->count; i++)
        print_table_line(results, i);
}
