// SPDX-License-Identifier: Apache-2.0
/*
 * json.c - writes the JSON file.
 *
 * Numbers that are not finite become null. Strings are escaped; what is no UTF-8, as names of files
 * may be, becomes "?".
 */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "base/name.h"
#include "output.h"

static void put_string(FILE *file, const char *text) {
    fputc('"', file);
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = name_utf8_bytes(text);
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if (bytes == 1 && *text < ' ')
            fprintf(file, "\\u%04x", (unsigned)*text);
        else
            fwrite(bytes ? text : "?", bytes ? bytes : 1, 1, file);
    }
    fputc('"', file);
}

static void put_number(FILE *file, double value) {
    if (isfinite(value))
        fprintf(file, "%.12g", value);
    else
        fputs("null", file);
}

/* `, "key": ` or, with `first`, without the comma. */
static void put_key(FILE *file, const char *key, bool first) {
    fputs(first ? "" : ", ", file);
    put_string(file, key);
    fputs(": ", file);
}

static void put_text(FILE *file, const char *key, const char *text, bool first) {
    put_key(file, key, first);
    put_string(file, text);
}

static void put_value(FILE *file, const char *key, double value) {
    put_key(file, key, false);
    put_number(file, value);
}

static void put_truth(FILE *file, const char *key, bool value) {
    put_key(file, key, false);
    fputs(value ? "true" : "false", file);
}

static void put_machine(FILE *file, const struct machine *machine) {
    fputs("{", file);
    put_text(file, "cpu", machine->cpu, true);
    put_value(file, "cores", (double)machine->cores);
    put_value(file, "memory_bytes", machine->memory_bytes);
    put_text(file, "caches", machine->caches, false);
    put_text(file, "kernel", machine->kernel, false);
    put_text(file, "os", machine->os, false);
    put_value(file, "page_bytes", (double)machine->page_bytes);
    put_text(file, "huge_pages", machine->huge_pages, false);
    put_text(file, "compiler", machine->compiler, false);
    put_value(file, "load", machine->load);
    put_text(file, "date", machine->date, false);
    fputs("}", file);
}

static void put_settings(FILE *file, const struct options *options) {
    fputs("{", file);
    put_text(file, "traces", options->traces ? options->traces : "", true);
    put_value(file, "rounds", options->rounds);
    put_truth(file, "quick", options->quick);
    put_truth(file, "touch", options->touch);
    put_truth(file, "plan", options->plan);
    fputs("}", file);
}

static void put_allocator(FILE *file, const struct allocator *allocator) {
    char version[ALLOCATOR_VERSION_MAX];
    allocator_version(allocator, version);
    fputs("{", file);
    put_text(file, "name", allocator->name, true);
    put_text(file, "version", version, false);
    put_text(file, "package", allocator->package ? allocator->package : "", false);
    put_text(file, "library", allocator->library ? allocator->library : "", false);
    put_key(file, "settings", false);
    fprintf(file, "\"%s%s%s\"}", allocator->variable ? allocator->variable : "",
            allocator->variable ? "=" : "", allocator->value ? allocator->value : "");
}

static void put_allocators(FILE *file, const struct bench *bench) {
    fputs("[", file);
    for (int nth = 0; nth < bench->options.allocator_count; nth++) {
        fputs(nth ? ",\n  " : "\n  ", file);
        put_allocator(file, &allocators[bench->options.allocator[nth]]);
    }
    fputs("]", file);
}

static void put_kinds(FILE *file, const struct script *script) {
    put_text(file, "main_kind", script->kind[script->main_kind], false);
    put_key(file, "kinds", false);
    fputs("[", file);
    for (uint32_t i = 0; i < script->kind_count; i++) {
        fputs(i ? ", " : "", file);
        put_string(file, script->kind[i]);
    }
    fputs("]", file);
}

static void put_case(FILE *file, const struct workload *workload) {
    const char *view = workload_view(workload);
    char trace[WORKLOAD_ID_MAX];
    snprintf(trace, sizeof trace, "%.*s", (int)(view ? view - workload->id - 1 : WORKLOAD_ID_MAX),
             workload->id);
    fputs("{", file);
    put_text(file, "case", workload->id, true);
    put_text(file, "trace", trace, false);
    put_text(file, "view", view ? view : "", false);
    put_kinds(file, workload->compiled.script);
    put_value(file, "steps", workload->compiled.script->step_count);
    put_value(file, "steady_steps", workload->steady_steps);
    put_truth(file, "repeats", workload->repeats);
    put_value(file, "events", (double)workload->events);
    put_value(file, "objects", (double)workload->objects);
    put_value(file, "max_live_bytes", (double)workload->max_live_bytes);
    put_value(file, "left_bytes", (double)workload->left_bytes);
    put_value(file, "passes", workload->timed.passes);
    put_value(file, "timed_steps", workload->timed.steps);
    fputs("}", file);
}

static bool is_measured(const struct workload *workload) {
    return workload->fault[0] == '\0';
}

static void put_cases(FILE *file, const struct bench *bench) {
    bool first = true;
    fputs("[", file);
    for (int i = 0; i < bench->workload_count; i++) {
        if (!is_measured(&bench->workload[i]))
            continue;
        fputs(first ? "\n  " : ",\n  ", file);
        put_case(file, &bench->workload[i]);
        first = false;
    }
    fputs("]", file);
}

static void put_failure(FILE *file, const char *id, const char *allocator, const char *text,
                        bool *first) {
    fputs(*first ? "\n  {" : ",\n  {", file);
    put_text(file, "case", id, true);
    put_text(file, "allocator", allocator, false);
    put_text(file, "text", text, false);
    fputs("}", file);
    *first = false;
}

/* What has no rows, and why: a trace, or an allocator on one. */
static void put_failures(FILE *file, const struct bench *bench) {
    bool first = true;
    fputs("[", file);
    for (int i = 0; i < bench->workload_count; i++) {
        const char *id = bench->workload[i].id;
        if (!is_measured(&bench->workload[i]))
            put_failure(file, id, "", bench->workload[i].fault, &first);
        for (int nth = 0; nth < bench->options.allocator_count; nth++)
            if (*bench_failure(bench, i, nth))
                put_failure(file, id, allocators[bench->options.allocator[nth]].name,
                            *bench_failure(bench, i, nth), &first);
    }
    fputs("]", file);
}

static void put_row(FILE *file, const char *const words[4], double value, bool first) {
    fputs(first ? "\n  {" : ",\n  {", file);
    put_text(file, "bench", words[0], true);
    put_text(file, "case", words[1], false);
    put_text(file, "allocator", words[2], false);
    put_text(file, "metric", words[3], false);
    put_value(file, "value", value);
    fputs("}", file);
}

static void put_rows(FILE *file, const struct bench *bench) {
    bool first = true;
    fputs("[", file);
    for (size_t i = 0; i < bench->samples.row_count; i++, first = false) {
        const struct row *row = &bench->samples.row[i];
        put_row(file,
                (const char *const[]){"churn", bench->workload[row->workload].id,
                                      allocators[row->allocator].name,
                                      bench->samples.metric[row->metric]},
                row->value, first);
    }
    for (int i = 0; i < bench->imported_count; i++, first = false) {
        const struct imported_row *row = &bench->imported[i];
        put_row(file, (const char *const[]){row->bench, row->name, row->allocator, row->metric},
                strtod(row->value, NULL), first);
    }
    fputs("]", file);
}

/* The course of a step is drawn for two allocators only; the spike for all. */
static bool is_shown(const struct bench *bench, const struct series *series) {
    const char *allocator = allocators[series->allocator].name;
    return bench->workload[series->workload].spike || strcmp(allocator, "ebb") == 0 ||
           strcmp(allocator, "glibc") == 0;
}

static void put_series(FILE *file, const struct bench *bench) {
    bool first = true;
    fputs("[", file);
    for (size_t i = 0; i < bench->samples.series_count; i++) {
        const struct series *series = &bench->samples.series[i];
        if (!is_shown(bench, series))
            continue;
        fputs(first ? "\n  {" : ",\n  {", file);
        put_text(file, "case", bench->workload[series->workload].id, true);
        put_text(file, "allocator", allocators[series->allocator].name, false);
        put_text(file, "name", bench->samples.metric[series->metric], false);
        put_key(file, "values", false);
        for (size_t j = 0; j < series->count; j++) {
            fputs(j ? "," : "[", file);
            put_number(file, series->values[j]);
        }
        fputs("]}", file);
        first = false;
    }
    fputs("]", file);
}

/* The replaying process wrote the JSON. */
static void put_reports(FILE *file, const struct bench *bench) {
    fputs("[", file);
    for (size_t i = 0; i < bench->samples.report_count; i++) {
        const struct report *report = &bench->samples.report[i];
        fputs(i ? ",\n  {" : "\n  {", file);
        put_text(file, "case", bench->workload[report->workload].id, true);
        put_text(file, "allocator", allocators[report->allocator].name, false);
        put_text(file, "name", report->name, false);
        fprintf(file, ", \"report\": %s}", report->json);
    }
    fputs("]", file);
}

static void put_counts(FILE *file, const char *key, const uint64_t *counts, int from, int to,
                       const uint64_t *never) {
    put_key(file, key, false);
    for (int i = from; i <= to; i++)
        fprintf(file, "%s%llu", i > from ? "," : "[", (unsigned long long)counts[i]);
    if (never)
        fprintf(file, ",%llu", (unsigned long long)*never);
    fputs("]", file);
}

static void put_histogram(FILE *file, const char *id, const char *name,
                          const struct histogram *histogram, bool open_end) {
    int from = histogram->first, to = histogram_last(histogram);
    fputs("{", file);
    put_text(file, "case", id, true);
    put_text(file, "name", name, false);
    put_key(file, "upto", false);
    for (int i = from; i <= to; i++)
        fprintf(file, "%s%llu", i > from ? "," : "[", 1ull << i);
    fputs(open_end ? ",null]" : "]", file);
    put_counts(file, "count", histogram->count, from, to,
               open_end ? &histogram->count[HISTOGRAM_NEVER] : NULL);
    put_counts(file, "bytes", histogram->bytes, from, to,
               open_end ? &histogram->bytes[HISTOGRAM_NEVER] : NULL);
    fputs("}", file);
}

static void put_histograms(FILE *file, const struct bench *bench) {
    bool first = true;
    fputs("[", file);
    for (int i = 0; i < bench->workload_count; i++) {
        const struct workload *workload = &bench->workload[i];
        if (!is_measured(workload) || workload->spike)
            continue;
        fputs(first ? "\n  " : ",\n  ", file);
        put_histogram(file, workload->id, "sizes", &workload->sizes, false);
        fputs(",\n  ", file);
        put_histogram(file, workload->id, "lifetimes", &workload->lifetimes, true);
        first = false;
    }
    fputs("]", file);
}

static void put_targets(FILE *file, const struct bench *bench) {
    fputs("[", file);
    for (int i = 0; i < bench->target_count; i++) {
        const struct target *target = &bench->target[i];
        fputs(i ? ",\n  {" : "\n  {", file);
        put_text(file, "case", bench->workload[target->workload].id, true);
        put_text(file, "target", target->name, false);
        put_value(file, "limit", target->limit);
        put_value(file, "value", target->value);
        put_truth(file, "met", target->met);
        put_text(file, "text", target->text, false);
        fputs("}", file);
    }
    fputs("]", file);
}

static void put_all(FILE *file, const struct bench *bench) {
    fputs("{\"format\": \"ebb-bench 1\",\n\"machine\": ", file);
    put_machine(file, &bench->machine);
    fputs(",\n\"settings\": ", file);
    put_settings(file, &bench->options);
    fputs(",\n\"allocators\": ", file);
    put_allocators(file, bench);
    fputs(",\n\"cases\": ", file);
    put_cases(file, bench);
    fputs(",\n\"failures\": ", file);
    put_failures(file, bench);
    fputs(",\n\"rows\": ", file);
    put_rows(file, bench);
    fputs(",\n\"series\": ", file);
    put_series(file, bench);
    fputs(",\n\"reports\": ", file);
    put_reports(file, bench);
    fputs(",\n\"histograms\": ", file);
    put_histograms(file, bench);
    fputs(",\n\"targets\": ", file);
    put_targets(file, bench);
    fputs("}\n", file);
}

int json_write(const struct bench *bench, const char *path) {
    struct output output;
    if (!output_begin(&output, path))
        return -1;
    put_all(output.file, bench);
    return output_end(&output);
}
