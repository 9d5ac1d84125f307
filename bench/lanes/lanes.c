// SPDX-License-Identifier: Apache-2.0
//
// lanes.c - which lane limit, which placement, which reuse? Simulated on recorded traces.
//
//     lanes TRACE...          the Markdown table of docs/decisions.md
//     lanes --all TRACE...    every variant on every trace, tab separated (a minute or two)
//
// For each steady step of each trace the tool plays the step's allocations and frees through two
// lanes in one address space and counts the 4 KiB pages that its blocks touch. Sizes and lifetimes
// only: it says nothing about time. One invariant: a printed number comes from all steps of its
// trace. Refused: traces that trace_read() refuses (status 1), a call without traces (status 2). A
// lost output is status 1.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "results.h"
#include "said.h"
#include "steps.h"
#include "trace.h"

static const char *view_name(enum trace_view view)
{
    return view == TRACE_VIEW_FULL ? "full" : "tensor";
}

static void cut_end(char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    if (length > tail && !strcmp(text + length - tail, end))
        text[length - tail] = '\0';
}

// "traces/x.full.trace.gz" becomes "x.full"; bytes that would break a row become '_'.
static void name_by_file(struct column *column, const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(column->name, sizeof column->name, "%s", slash ? slash + 1 : path);
    for (char *at = column->name; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 127)
            *at = '_';
    cut_end(column->name, ".gz");
    cut_end(column->name, ".trace");
}

// By its header; where that has no name, by its file.
static void name_column(struct column *column, const char *path, const struct ebb_trace *trace)
{
    if (!trace->name[0])
        name_by_file(column, path);
    else if (trace->view == TRACE_VIEW_UNSAID)
        snprintf(column->name, sizeof column->name, "%s", trace->name);
    else
        snprintf(column->name, sizeof column->name, "%s.%s", trace->name, view_name(trace->view));
}

// Fills column `column` of `results` from one trace; false where it cannot be read.
static bool measure_trace(struct results *results, size_t column, const char *path)
{
    struct simulator *simulator = buffer_resize(NULL, 1, sizeof *simulator);
    struct trace_error error;
    struct ebb_trace *trace = trace_read(path, &error);
    struct steps steps = {0};

    memset(simulator, 0, sizeof *simulator);
    if (trace) {
        steps_collect(&steps, trace);
        name_column(&results->columns[column], path, trace);
        for (size_t i = 0; i < results->variants->count; i++)
            results->results[i * results->column_count + column] =
                measure(simulator, &results->variants->variant[i], &steps, trace->view);
    } else {
        fprintf(stderr, "lanes: %s: %s\n", path, error.text);
    }
    simulator_free(simulator);
    free(simulator);
    steps_free(&steps);
    trace_free(trace);
    return trace != NULL;
}

static bool measure_all(struct results *results, char **paths)
{
    for (size_t i = 0; i < results->column_count; i++)
        if (!measure_trace(results, i, paths[i]))
            return false;
    return true;
}

static int compare(bool all, char **paths, size_t path_count)
{
    struct variants variants = {0};
    struct results results = {.variants = &variants, .column_count = path_count};
    bool measured;

    if (all)
        variants_add_all(&variants);
    else
        variants_add_selected(&variants);
    results.columns = buffer_resize(NULL, path_count, sizeof *results.columns);
    results.results =
        buffer_resize(NULL, variants.count * path_count, sizeof *results.results);
    measured = measure_all(&results, paths);
    if (measured && all)
        results_print_rows(&results);
    else if (measured)
        results_print_table(&results);
    free(results.columns);
    free(results.results);
    variants_free(&variants);
    return measured ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool all = argc > 1 && !strcmp(argv[1], "--all");
    bool asks = argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"));
    int first = all ? 2 : 1;

    said_begin();
    if (first >= argc || argv[first][0] == '-') { // an option that is none is no trace either
        fprintf(asks ? stdout : stderr, "usage: lanes [--all] TRACE...\n");
        return said_end(asks ? 0 : 2, 1, "lanes");
    }
    return said_end(compare(all, argv + first, (size_t)(argc - first)), 1, "lanes");
}
