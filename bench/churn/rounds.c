// SPDX-License-Identifier: Apache-2.0
/*
 * rounds.c - the schedule.
 *
 *     counting   every workload and allocator: kinds `trace` and `footprint`, two processes at a
 *                time where the machine has two cores and the memory, since no clock is read
 *     timing     for each round, for each workload, for each allocator: one process alone
 *
 * Allocators take turns within a workload, and each round begins with another one, so that
 * whatever else the machine does meets all of them alike. The rounds of one workload lie as far
 * apart as the others take. In a quick run the peers meet the spike in the first round only.
 *
 * An allocator that fails in one process, or of which one cannot be started, has no figures on that
 * workload, however many went well; the others go on.
 *
 * Invariant: at most `width` processes are under way, and they are waited for in the order in
 * which they were started.
 */
#include "rounds.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "process.h"
#include "progress.h"

enum { WIDTH_MAX = 2, EBB = 0 };

/* What a run costs besides what it replays: starting the process, mapping the script. */
static const double START_NS = 8e6;

struct schedule {
    struct bench *bench;
    struct progress progress;
    struct process under_way[WIDTH_MAX];
    int nth[WIDTH_MAX];
    double cost[WIDTH_MAX];
    int count, width;
};

static const struct portion *portion_of(const struct workload *workload,
                                        enum process_kind kind) {
    if (kind == PROCESS_FOOTPRINT)
        return &workload->footprint;
    return kind == PROCESS_TRACE ? &workload->counted : &workload->timed;
}

static void give_up(struct schedule *schedule, int workload, int nth, const char *fault) {
    struct bench *bench = schedule->bench;
    char **failure = bench_failure(bench, workload, nth);
    samples_forget(&bench->samples, workload, bench->options.allocator[nth]);
    if (*failure)
        return;
    *failure = strdup(fault);
    progress_wipe(&schedule->progress);
    complain("%s: %s: %s", bench->workload[workload].id,
             allocators[bench->options.allocator[nth]].name, fault);
}

/* Waits for the process that was started first. */
static void finish_one(struct schedule *schedule) {
    struct process first = schedule->under_way[0];
    char fault[PROCESS_FAULT_MAX];
    int nth = schedule->nth[0];
    double cost = schedule->cost[0];
    if (process_finish(&first, &schedule->bench->samples, fault) != 0)
        give_up(schedule, first.workload_number, nth, fault);
    if (*bench_failure(schedule->bench, first.workload_number, nth))
        samples_forget(&schedule->bench->samples, first.workload_number, first.allocator_number);
    schedule->count--;
    for (int i = 0; i < schedule->count; i++) {
        schedule->under_way[i] = schedule->under_way[i + 1];
        schedule->nth[i] = schedule->nth[i + 1];
        schedule->cost[i] = schedule->cost[i + 1];
    }
    progress_step(&schedule->progress, cost, first.workload->id);
}

static void give_up_start(struct schedule *schedule, const struct process *process, int nth) {
    char fault[PROCESS_FAULT_MAX];
    snprintf(fault, sizeof fault, "cannot start a process: %s", strerror(errno));
    give_up(schedule, process->workload_number, nth, fault);
}

/* Where one cannot be started, another that is under way may hold what is missing. */
static void start(struct schedule *schedule, struct process *process, int nth,
                  const struct portion *portion) {
    while (process_start(process, portion) != 0) {
        if (schedule->count == 0) {
            give_up_start(schedule, process, nth);
            return;
        }
        finish_one(schedule);
    }
    int at = schedule->count++;
    schedule->under_way[at] = *process;
    schedule->nth[at] = nth;
    schedule->cost[at] = (START_NS + portion->cost_ns) / schedule->width;
}

static void start_one(struct schedule *schedule, int workload, int nth, enum process_kind kind) {
    struct bench *bench = schedule->bench;
    if (*bench_failure(bench, workload, nth))
        return;
    if (schedule->count == schedule->width)
        finish_one(schedule);
    int allocator = bench->options.allocator[nth];
    struct process process = {.workload = &bench->workload[workload],
                              .allocator = &allocators[allocator],
                              .workload_number = workload, .allocator_number = allocator,
                              .kind = kind, .plan = bench->options.plan};
    start(schedule, &process, nth, portion_of(&bench->workload[workload], kind));
}

static void finish_all(struct schedule *schedule) {
    while (schedule->count > 0)
        finish_one(schedule);
}

static bool takes_part(const struct workload *workload) {
    return workload->fault[0] == '\0';
}

static void count_workload(struct schedule *schedule, int workload) {
    static const enum process_kind kinds[] = {PROCESS_TRACE, PROCESS_FOOTPRINT};
    for (int kind = 0; kind < 2; kind++)
        for (int nth = 0; nth < schedule->bench->options.allocator_count; nth++)
            start_one(schedule, workload, nth, kinds[kind]);
}

/* How many processes may count at once: two, if there are two cores and memory for both. */
static int counting_width(const struct bench *bench) {
    double largest = 0;
    for (int i = 0; i < bench->workload_count; i++)
        if (takes_part(&bench->workload[i]))
            largest = fmax(largest, (double)bench->workload[i].max_live_bytes);
    return bench->machine.cores > 1 && largest < bench->machine.memory_bytes / 4 ? WIDTH_MAX : 1;
}

static void count_all(struct schedule *schedule) {
    struct bench *bench = schedule->bench;
    schedule->width = counting_width(bench);
    for (int i = 0; i < bench->workload_count; i++)
        if (takes_part(&bench->workload[i]) && !bench->workload[i].spike)
            count_workload(schedule, i);
    finish_all(schedule);
}

static void time_workload(struct schedule *schedule, int workload, int round) {
    const struct options *options = &schedule->bench->options;
    bool spike = schedule->bench->workload[workload].spike;
    enum process_kind kind = spike            ? PROCESS_SPIKE
                             : options->touch ? PROCESS_TIME
                                              : PROCESS_BARE;
    for (int i = 0; i < options->allocator_count; i++) {
        int nth = (i + round + workload) % options->allocator_count;
        bool once = spike && options->quick && options->allocator[nth] != EBB;
        if (!once || round == 0)
            start_one(schedule, workload, nth, kind);
    }
}

static void time_all(struct schedule *schedule) {
    struct bench *bench = schedule->bench;
    schedule->width = 1;
    for (int round = 0; round < bench->options.rounds; round++)
        for (int i = 0; i < bench->workload_count; i++)
            if (takes_part(&bench->workload[i]))
                time_workload(schedule, i, round);
    finish_all(schedule);
}

static double price(const struct bench *bench) {
    double timed = 0, counted = 0;
    for (int i = 0; i < bench->workload_count; i++) {
        const struct workload *workload = &bench->workload[i];
        if (!takes_part(workload))
            continue;
        timed += START_NS + workload->timed.cost_ns;
        if (!workload->spike && bench->options.touch)
            counted += 2 * START_NS + workload->counted.cost_ns + workload->footprint.cost_ns;
    }
    return (timed * bench->options.rounds + counted / counting_width(bench)) *
           bench->options.allocator_count;
}

void rounds_run(struct bench *bench) {
    struct schedule schedule = {.bench = bench};
    progress_begin(&schedule.progress, price(bench));
    if (bench->options.touch)
        count_all(&schedule);
    time_all(&schedule);
    progress_end(&schedule.progress);
}
