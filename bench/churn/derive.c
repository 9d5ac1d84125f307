// SPDX-License-Identifier: Apache-2.0
/*
 * derive.c - rows that are computed from other rows: spread, ratios to ebb, the spike.
 *
 * Nothing is derived from what was not measured. Of the spike's series, each value is already the
 * median over the rounds, so that one step that the machine disturbed once does not count.
 */
#include "derive.h"

#include <math.h>
#include <stdio.h>

#include "bench.h"
#include "spike.h"

enum { EBB = 0, SPIKE_WARM = 10 };

/* Rows NAME_vs_ebb: the allocator's value divided by ebb's. */
static bool derive_ratio(struct bench *bench, int workload, int allocator, const char *metric) {
    char name[SAMPLE_NAME_MAX];
    double own = bench_value(bench, workload, EBB, metric, 0);
    double value = bench_value(bench, workload, allocator, metric, -1);
    if (own <= 0 || value < 0 || allocator == EBB)
        return true;
    snprintf(name, sizeof name, "%s_vs_ebb", metric);
    return samples_derive(&bench->samples, workload, allocator, name, value / own);
}

static bool derive_spread(struct bench *bench, int workload, int allocator) {
    const struct row *row = samples_row(&bench->samples, workload, allocator, "step_us");
    if (!row)
        return true;
    struct row copy = *row;
    return samples_derive(&bench->samples, workload, allocator, "step_us_low", copy.low) &&
           samples_derive(&bench->samples, workload, allocator, "step_us_high", copy.high);
}

static double usual_step(const struct series *us) {
    double before[SPIKE_BEFORE];
    for (int i = SPIKE_WARM; i < SPIKE_BEFORE; i++)
        before[i - SPIKE_WARM] = us->values[i];
    return samples_median(before, SPIKE_BEFORE - SPIKE_WARM);
}

static bool derive_spike(struct bench *bench, int workload, int allocator) {
    struct samples *samples = &bench->samples;
    const struct series *us = samples_series(samples, workload, allocator, "spike_step_us");
    const struct series *rss = samples_series(samples, workload, allocator, "spike_rss_bytes");
    if (!us || !rss)
        return true;
    double usual = usual_step(us), longest = 0;
    for (size_t i = SPIKE_BEFORE + 1; i < us->count; i++)
        longest = fmax(longest, us->values[i]);
    double before = rss->values[SPIKE_BEFORE - 1], after = rss->values[SPIKE_BEFORE + SPIKE_LATER];
    return samples_derive(samples, workload, allocator, "spike_usual_step_us", usual) &&
           samples_derive(samples, workload, allocator, "spike_step_ratio_max", longest / usual) &&
           samples_derive(samples, workload, allocator, "spike_rss_before_bytes", before) &&
           samples_derive(samples, workload, allocator, "spike_rss_after_bytes", after) &&
           samples_derive(samples, workload, allocator, "spike_rss_ratio_20",
                          before > 0 ? after / before : 0);
}

bool derive_rows(struct bench *bench) {
    static const char *const compared[] = {"step_us", "peak_rss_bytes", "footprint_bytes",
                                           "event_ns"};
    bool good = true;
    for (int workload = 0; workload < bench->workload_count; workload++)
        for (int nth = 0; nth < bench->options.allocator_count; nth++) {
            int allocator = bench->options.allocator[nth];
            good &= derive_spread(bench, workload, allocator);
            good &= derive_spike(bench, workload, allocator);
            for (size_t i = 0; i < sizeof compared / sizeof *compared; i++)
                good &= derive_ratio(bench, workload, allocator, compared[i]);
        }
    return good;
}
