// SPDX-License-Identifier: Apache-2.0
/*
 * ledger.c - quantiles of per-step numbers.
 *
 * The memory is mapped and touched before the first pass, so that writing a number during a step
 * never costs a page fault. Sorting happens after the last pass. Quantiles are of the nearest
 * rank: each is a value that was measured.
 */
#include "ledger.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

bool ledger_make(struct ledger *ledger, const struct script *script, uint32_t passes,
                 uint32_t until) {
    uint64_t bytes = (uint64_t)passes * script->step_count * sizeof *ledger->value;
    void *at = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    *ledger = (struct ledger){.script = script, .passes = passes, .until = until, .value = at};
    if (at == MAP_FAILED)
        return false;
    ledger->sorted = ledger->value + (uint64_t)passes * script->step_count;
    return true;
}

bool ledger_steady(const struct script *script, uint32_t pass, uint32_t step) {
    return pass > 0 || !script_steps(script)[step].warmup;
}

static bool counts(const struct ledger *ledger, uint32_t pass, uint32_t step, int kind) {
    const struct script_step *which = &script_steps(ledger->script)[step];
    return which->end < ledger->until && (kind < 0 || which->kind == (uint32_t)kind) &&
           ledger_steady(ledger->script, pass, step) && !isnan(*ledger_at(ledger, pass, step));
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void ledger_sort(struct ledger *ledger, int kind) {
    ledger->count = 0;
    for (uint32_t pass = 0; pass < ledger->passes; pass++)
        for (uint32_t step = 0; step < ledger->script->step_count; step++)
            if (counts(ledger, pass, step, kind))
                ledger->sorted[ledger->count++] = *ledger_at(ledger, pass, step);
    qsort(ledger->sorted, ledger->count, sizeof *ledger->sorted, compare);
}

double ledger_quantile(const struct ledger *ledger, double quantile) {
    if (ledger->count == 0)
        return 0;
    return ledger->sorted[(uint64_t)(quantile * (double)(ledger->count - 1) + 0.5)];
}

double ledger_mean(const struct ledger *ledger) {
    double sum = 0;
    for (uint64_t i = 0; i < ledger->count; i++)
        sum += ledger->sorted[i];
    return ledger->count ? sum / (double)ledger->count : 0;
}

void ledger_print(const char *name, const char *suffix, double value) {
    printf("metric %s%s %.17g\n", name, suffix, value);
}

static void print_kind_medians(struct ledger *ledger, const char *name) {
    uint32_t found = 0;
    for (int round = 0; round < 2; round++)
        for (uint32_t kind = 0; kind < ledger->script->kind_count; kind++) {
            ledger_sort(ledger, (int)kind);
            found += round == 0 && ledger->count > 0;
            if (round == 1 && found > 1 && ledger->count > 0)
                printf("metric %s.%s %.17g\n", name, ledger->script->kind[kind],
                       ledger_quantile(ledger, 0.5));
        }
}

void ledger_print_kinds(struct ledger *ledger, const char *name) {
    print_kind_medians(ledger, name);
    ledger_sort(ledger, (int)ledger->script->main_kind);
    if (ledger->count == 0)
        return;
    ledger_print(name, "", ledger_quantile(ledger, 0.5));
    ledger_print(name, "_p10", ledger_quantile(ledger, 0.1));
    ledger_print(name, "_p90", ledger_quantile(ledger, 0.9));
    ledger_print(name, "_max", ledger_quantile(ledger, 1));
}

void ledger_print_all(struct ledger *ledger, const char *name) {
    ledger_sort(ledger, LEDGER_ALL_KINDS);
    if (ledger->count == 0)
        return;
    ledger_print(name, "", ledger_quantile(ledger, 0.5));
    ledger_print(name, "_mean", ledger_mean(ledger));
    ledger_print(name, "_max", ledger_quantile(ledger, 1));
}
