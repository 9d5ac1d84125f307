// SPDX-License-Identifier: Apache-2.0
/*
 * summary.c - what the user sees.
 *
 * A `!` behind a figure of ebb means that it misses its target (target.h). Missing figures are
 * "-". Times are medians over the rounds of the median steady step; `+-` is half the range of the
 * rounds.
 */
#include "summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "table.h"

enum { EBB = 0 };

static const double MIB = 1048576;

/* '!' where ebb misses the target, ' ' elsewhere, so that figures stay aligned. */
static char mark(const struct bench *bench, int workload, int allocator, const char *name) {
    const struct target *target = target_find(bench, workload, name);
    return allocator == EBB && target && !target->met ? '!' : ' ';
}

static void cell(struct table *table, double value, int digits, char flag) {
    if (isnan(value))
        table_cell(table, "-%c", flag);
    else
        table_cell(table, "%.*f%c", digits, value, flag);
}

static int digits_of(double value) {
    return value < 10 ? 2 : value < 1000 ? 1 : 0;
}

static double value_of(const struct bench *bench, int workload, int allocator,
                       const char *metric) {
    return bench_value(bench, workload, allocator, metric, NAN);
}

static void time_cells(struct table *table, const struct bench *bench, int workload,
                       int allocator) {
    double us = value_of(bench, workload, allocator, "step_us");
    double range = value_of(bench, workload, allocator, "step_us_high") -
                   value_of(bench, workload, allocator, "step_us_low");
    double ratio = value_of(bench, workload, allocator, "step_us_vs_ebb");
    cell(table, us, digits_of(us), mark(bench, workload, allocator, "step_us"));
    if (isnan(us))
        table_cell(table, "-");
    else
        table_cell(table, "%.0f %%", us > 0 ? 50 * range / us : 0);
    cell(table, allocator == EBB && !isnan(us) ? 1 : ratio, 2, ' ');
}

static void touched_row(struct table *table, const struct bench *bench, int workload,
                        int allocator) {
    table_row(table);
    table_cell(table, "%s", allocators[allocator].name);
    time_cells(table, bench, workload, allocator);
    cell(table, value_of(bench, workload, allocator, "faults_per_step"), 0,
         mark(bench, workload, allocator, "faults"));
    cell(table, value_of(bench, workload, allocator, "syscalls_per_step"), 0,
         mark(bench, workload, allocator, "syscalls"));
    cell(table, value_of(bench, workload, allocator, "peak_rss_bytes") / MIB, 1,
         mark(bench, workload, allocator, "peak_rss"));
    cell(table, value_of(bench, workload, allocator, "footprint_ratio"), 2,
         mark(bench, workload, allocator, "footprint"));
}

static void bare_row(struct table *table, const struct bench *bench, int workload,
                     int allocator) {
    double own = value_of(bench, workload, allocator, "event_ns");
    double ratio = value_of(bench, workload, allocator, "event_ns_vs_ebb");
    table_row(table);
    table_cell(table, "%s", allocators[allocator].name);
    cell(table, own, 2, ' ');
    cell(table, allocator == EBB && !isnan(own) ? 1 : ratio, 2, ' ');
    cell(table, value_of(bench, workload, allocator, "bare_step_us"), 1, ' ');
}

static void spike_row(struct table *table, const struct bench *bench, int workload,
                      int allocator) {
    table_row(table);
    table_cell(table, "%s", allocators[allocator].name);
    cell(table, value_of(bench, workload, allocator, "spike_usual_step_us"), 1, ' ');
    cell(table, value_of(bench, workload, allocator, "spike_step_ratio_max"), 2,
         mark(bench, workload, allocator, "spike_step"));
    cell(table, value_of(bench, workload, allocator, "spike_rss_before_bytes") / MIB, 1, ' ');
    cell(table, value_of(bench, workload, allocator, "spike_rss_after_bytes") / MIB, 1, ' ');
    cell(table, value_of(bench, workload, allocator, "spike_rss_ratio_20"), 2,
         mark(bench, workload, allocator, "spike_rss"));
}

typedef void row_fn(struct table *, const struct bench *, int, int);

/* Those of the main kind, and where there are others how many there are of all. */
static void print_steps(const struct script *script) {
    uint32_t main_steps = 0;
    for (uint32_t i = 0; i < script->step_count; i++)
        main_steps += script_steps(script)[i].kind == script->main_kind;
    printf("%u ", main_steps);
    if (main_steps < script->step_count)
        printf("of %u ", script->step_count);
    printf("steps `%s`", script->kind[script->main_kind]);
}

static void print_heading(const struct workload *workload) {
    printf("\n%s   ", workload->id);
    print_steps(workload->compiled.script);
    printf(", %llu events, max-live %.1f MiB; timed: %u steps x %u\n",
           (unsigned long long)workload->events, (double)workload->max_live_bytes / MIB,
           workload->timed.steps, workload->timed.passes);
}

static void print_workload(struct table *table, const struct bench *bench, int number) {
    const struct workload *workload = &bench->workload[number];
    row_fn *row = workload->spike ? spike_row : bench->options.touch ? touched_row : bare_row;
    const char *headings =
        workload->spike
            ? "allocator|usual step us|longest later|MiB before|MiB 20 steps after|ratio"
        : bench->options.touch
            ? "allocator|step us|+-|vs ebb|faults|syscalls|peak MiB|footprint"
            : "allocator|ns/event|vs ebb|step us";
    print_heading(workload);
    table_begin(table, headings);
    for (int nth = 0; nth < bench->options.allocator_count; nth++)
        row(table, bench, number, bench->options.allocator[nth]);
    table_print(table);
}

/* The best peer's value of a metric; NAN if there is none. */
static double best_peer(const struct bench *bench, int workload, const char *metric) {
    double best = NAN;
    for (int nth = 0; nth < bench->options.allocator_count; nth++)
        if (!allocator_is_ebb(bench->options.allocator[nth]))
            best = fmin(best, value_of(bench, workload, bench->options.allocator[nth], metric));
    return best;
}

/* How many times an allocator's step takes as long as ebb's. */
static double slower(const struct bench *bench, int workload, const char *name) {
    int allocator = allocator_find(name, (int)strlen(name));
    return value_of(bench, workload, allocator, "step_us_vs_ebb");
}

static void overview_row(struct table *table, const struct bench *bench, int number) {
    double own = value_of(bench, number, EBB, "step_us");
    double peak = value_of(bench, number, EBB, "peak_rss_bytes");
    table_row(table);
    table_cell(table, "%s", bench->workload[number].id);
    cell(table, own, digits_of(own), mark(bench, number, EBB, "step_us"));
    cell(table, best_peer(bench, number, "step_us") / own, 2, ' ');
    cell(table, slower(bench, number, "glibc"), 2, ' ');
    cell(table, slower(bench, number, "jemalloc"), 2, ' ');
    cell(table, value_of(bench, number, EBB, "footprint_ratio"), 2,
         mark(bench, number, EBB, "footprint"));
    cell(table, best_peer(bench, number, "footprint_ratio"), 2, ' ');
    cell(table, value_of(bench, number, EBB, "steady_peak_ratio"), 2,
         mark(bench, number, EBB, "steady_peak"));
    cell(table, value_of(bench, number, EBB, "run_peak_ratio"), 2,
         mark(bench, number, EBB, "run_peak"));
    cell(table, value_of(bench, number, EBB, "steady_hit_bytes_percent"), 1, ' ');
    cell(table, peak / MIB, 1, mark(bench, number, EBB, "peak_rss"));
    cell(table, best_peer(bench, number, "peak_rss_bytes") / MIB, 1, ' ');
}

static bool is_measured(const struct bench *bench, int number) {
    return bench->workload[number].fault[0] == '\0';
}

static void print_overview(struct table *table, const struct bench *bench) {
    if (!bench->options.touch || bench->options.allocator[0] != EBB)
        return;
    puts("\nebb against the best peer of each column, glibc and jemalloc (times: above 1.00 ebb is "
         "faster);\nsteady and run: most bytes held over most alive; planned: bytes of steady "
         "steps served by plans");
    table_begin(table, "trace|ebb us|best peer|glibc|jemalloc|footprint|peers'|steady|run|"
                       "planned %|peak MiB|peers'");
    for (int i = 0; i < bench->workload_count; i++)
        if (is_measured(bench, i) && !bench->workload[i].spike)
            overview_row(table, bench, i);
    table_print(table);
}

static void print_misses(const struct bench *bench) {
    int missed = 0;
    for (int i = 0; i < bench->target_count; i++)
        missed += !bench->target[i].met;
    if (bench->target_count == 0)
        return;
    printf("\ntargets: %d of %d met\n", bench->target_count - missed, bench->target_count);
    for (int i = 0; i < bench->target_count; i++)
        if (!bench->target[i].met)
            printf("  missed  %-32s %s\n", bench->workload[bench->target[i].workload].id,
                   bench->target[i].text);
}

static void print_failures(const struct bench *bench) {
    for (int i = 0; i < bench->workload_count; i++) {
        if (!is_measured(bench, i))
            printf("  failed  %s: %s\n", bench->workload[i].id, bench->workload[i].fault);
        for (int nth = 0; nth < bench->options.allocator_count; nth++)
            if (*bench_failure(bench, i, nth))
                printf("  failed  %s: %s: %s\n", bench->workload[i].id,
                       allocators[bench->options.allocator[nth]].name,
                       *bench_failure(bench, i, nth));
    }
}

void summary_print(const struct bench *bench) {
    struct table *table = malloc(sizeof *table);
    if (!table)
        return;
    for (int i = 0; i < bench->workload_count; i++)
        if (is_measured(bench, i))
            print_workload(table, bench, i);
    print_overview(table, bench);
    print_misses(bench);
    print_failures(bench);
    free(table);
}
