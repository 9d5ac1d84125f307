// SPDX-License-Identifier: Apache-2.0
/*
 * target.c - compares ebb with its targets and its peers.
 *
 * A target is judged only from figures that are there: with one allocator there is no fastest
 * peer. A miss is stated with its numbers, never explained here.
 */
#include "target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "bench.h"

enum { EBB = 0, TARGETS_PER_WORKLOAD = 8 };

/* Bytes that the costliest step may hold, over the most bytes alive. */
struct peaks {
    double repeating, others; /* steady steps of traces that repeat, and of others */
    double run;               /* all steps */
    double allowance;         /* or so many bytes more, where that is more */
};

static const struct peaks tensor_peaks = {1.02, 1.25, 1.15, 0};
static const struct peaks full_peaks = {1.10, 1.35, 1.25, 256 << 10};

/* Lowest value of a metric among the peers, and whose it is; INFINITY if there is none. */
static double lowest_peer(const struct bench *bench, int workload, const char *metric, int *whose) {
    double lowest = INFINITY;
    for (int nth = 0; nth < bench->options.allocator_count; nth++) {
        int allocator = bench->options.allocator[nth];
        double value = bench_value(bench, workload, allocator, metric, INFINITY);
        if (!allocator_is_ebb(allocator) && value < lowest) {
            lowest = value;
            *whose = allocator;
        }
    }
    return lowest;
}

static struct target *add(struct bench *bench, int workload, const char *name, double limit,
                          double value, bool met) {
    struct target *target = &bench->target[bench->target_count++];
    *target = (struct target){workload, name, limit, value, met, ""};
    return target;
}

static void judge_footprint(struct bench *bench, int workload) {
    double over = bench_value(bench, workload, EBB, "footprint_steps_over", -1);
    if (over < 0)
        return;
    double limit = workload_limit_percent(&bench->workload[workload]) / 100.0;
    double ratio = bench_value(bench, workload, EBB, "footprint_ratio", 0);
    struct target *target = add(bench, workload, "footprint", limit, ratio, over <= 0);
    snprintf(target->text, sizeof target->text,
             "footprint %.2f x max-live (largest %.2f), limit %.2f or 256 KiB above: %.0f of %.0f "
             "steps over", ratio, bench_value(bench, workload, EBB, "footprint_ratio_max", 0),
             limit, over, bench_value(bench, workload, EBB, "footprint_steps", 0));
}

/* `name`: "steady_peak" or "run_peak". */
static void judge_peak(struct bench *bench, int workload, const char *name, double limit,
                       double allowance) {
    char metric[SAMPLE_NAME_MAX];
    snprintf(metric, sizeof metric, "%s_bytes", name);
    double held = bench_value(bench, workload, EBB, metric, -1);
    snprintf(metric, sizeof metric, "%s_live_bytes", name);
    double live = bench_value(bench, workload, EBB, metric, -1);
    if (held < 0 || live <= 0)
        return;
    bool met = held <= fmax(live * limit, live + allowance);
    struct target *target = add(bench, workload, name, limit, held / live, met);
    snprintf(target->text, sizeof target->text,
             "%s %.3f x max-live (%.0f KiB above), limit %.2f%s", name, held / live,
             (held - live) / 1024, limit, allowance > 0 ? " or 256 KiB above" : "");
}

static void judge_peaks(struct bench *bench, int number) {
    const struct workload *workload = &bench->workload[number];
    const struct peaks *peaks = workload->tensor ? &tensor_peaks : &full_peaks;
    judge_peak(bench, number, "steady_peak", workload->repeats ? peaks->repeating : peaks->others,
               peaks->allowance);
    judge_peak(bench, number, "run_peak", peaks->run, peaks->allowance);
}

/* A metric that must not be above (or, strictly, must be below) the best peer's. */
static void judge_peers(struct bench *bench, int workload, const char *name, const char *metric,
                        double unit, const char *unit_name, bool strictly) {
    int whose = 0;
    double value = bench_value(bench, workload, EBB, metric, -1);
    double best = lowest_peer(bench, workload, metric, &whose);
    if (value < 0 || isinf(best))
        return;
    bool met = strictly ? value < best : value <= best;
    struct target *target = add(bench, workload, name, best, value, met);
    snprintf(target->text, sizeof target->text, "%s %.1f %s, best peer %s %.1f %s (%+.1f %%)", name,
             value / unit, unit_name, allocators[whose].name, best / unit, unit_name,
             best > 0 ? (value / best - 1) * 100 : 0);
}

static void judge_none(struct bench *bench, int workload, const char *name, const char *metric) {
    double value = bench_value(bench, workload, EBB, metric, -1);
    char mean[SAMPLE_NAME_MAX];
    if (value < 0)
        return;
    snprintf(mean, sizeof mean, "%s_mean", metric);
    struct target *target = add(bench, workload, name, 0, value, value <= 0);
    snprintf(target->text, sizeof target->text, "%s per step %.0f (mean %.2f)", name, value,
             bench_value(bench, workload, EBB, mean, 0));
}

static void judge_limit(struct bench *bench, int workload, const char *name, const char *metric,
                        double limit) {
    double value = bench_value(bench, workload, EBB, metric, -1);
    if (value < 0)
        return;
    struct target *target = add(bench, workload, name, limit, value, value <= limit);
    snprintf(target->text, sizeof target->text, "%s %.2f, limit %.2f", metric, value, limit);
}

static void judge_workload(struct bench *bench, int workload) {
    if (bench->workload[workload].spike) {
        judge_limit(bench, workload, "spike_rss", "spike_rss_ratio_20", 1.5);
        judge_limit(bench, workload, "spike_step", "spike_step_ratio_max", 2);
        return;
    }
    judge_footprint(bench, workload);
    judge_peaks(bench, workload);
    judge_peers(bench, workload, "peak_rss", "peak_rss_bytes", 1048576, "MiB", true);
    judge_peers(bench, workload, "step_us", "step_us", 1, "us", false);
    judge_none(bench, workload, "faults", "faults_per_step");
    judge_none(bench, workload, "syscalls", "syscalls_per_step");
}

bool target_judge(struct bench *bench) {
    bench->target = calloc((size_t)bench->workload_count * TARGETS_PER_WORKLOAD + 1,
                           sizeof *bench->target);
    for (int i = 0; bench->target && i < bench->workload_count; i++)
        judge_workload(bench, i);
    return bench->target != NULL;
}

const struct target *target_find(const struct bench *bench, int workload, const char *name) {
    for (int i = 0; i < bench->target_count; i++)
        if (bench->target[i].workload == workload && strcmp(bench->target[i].name, name) == 0)
            return &bench->target[i];
    return NULL;
}
