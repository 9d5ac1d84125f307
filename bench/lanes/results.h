// SPDX-License-Identifier: Apache-2.0
//
// results.h - footprints of variants on traces, and the tables made of them.

#ifndef EBB_BENCH_LANES_RESULTS_H
#define EBB_BENCH_LANES_RESULTS_H

#include <stddef.h>

#include "variants.h"

// One variant on one trace, over its steps. ratio = footprint / max-live; margin = footprint /
// allowance, where the allowance is 1.25 (tensor view) or 1.4 (full view) times max-live, but at
// least max-live + 256 KiB; a step passes while its margin is at most 1.
struct result {
    size_t steps, steps_over;
    double ratio_median, ratio_max;
    double margin_median, margin_max;
};

struct column {
    char name[256]; // "charlstm_sgd.tensor"
};

// results[variant * column_count + column].
struct results {
    const struct variants *variants;
    struct column *columns; // traces
    size_t column_count;
    struct result *results;
};

// What one trace says about one variant.
struct result measure(struct simulator *simulator, const struct variant *variant,
                      const struct steps *steps, enum trace_view view);

void results_print_rows(const struct results *results);  // tab separated, a line per pair
void results_print_table(const struct results *results); // Markdown, a line per variant

#endif
