// SPDX-License-Identifier: Apache-2.0
/*
 * workload.c - from a file to something that can be replayed in a known time.
 *
 * How much is replayed depends on the trace alone, never on an allocator, so that all do the same
 * work. A rough price (EVENT_NS for each event, BYTE_NS for each byte that is born, written and
 * read) decides: a cheap trace is replayed several times; an expensive one is cut after enough
 * steady steps, where no region is open. What counts is not cut but in a quick run.
 *
 * Refused: what trace_read() and the compiler refuse, and traces that need more memory than this
 * machine has.
 */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/name.h"
#include "spike.h"

static const double EVENT_NS = 25, BYTE_NS = 0.15;

enum { PASSES_MAX = 1000, WHOLE = INT32_MAX, TENSOR_LIMIT = 125, FULL_LIMIT = 140 };

/* What a kind of run should take in one process, and the steady steps it needs at least: WHOLE is
 * more than any trace has. */
struct aim {
    double cost_ns;
    uint32_t steady_steps;
};

static const struct aim timed_aim[2] = {{180e6, 10}, {20e6, 3}};
static const struct aim counted_aim[2] = {{1200e6, WHOLE}, {40e6, 4}};
static const struct aim footprint_aim[2] = {{0, WHOLE}, {60e6, 6}};

static double event_cost(const struct script_event *event) {
    bool writes = event->op <= SCRIPT_MOVE;
    return EVENT_NS + (writes ? BYTE_NS * (double)event->bytes : 0);
}

/* The shortest part that reaches the aim and ends where no region is open, or the whole. */
static struct portion cut(const struct script *script, struct aim aim) {
    const struct script_step *steps = script_steps(script);
    struct portion portion = {.passes = 1};
    uint32_t steady = 0;
    for (uint32_t i = 0; i < script->step_count; i++) {
        for (; portion.until <= steps[i].end; portion.until++)
            portion.cost_ns += event_cost(&script_events(script)[portion.until]);
        portion.steps = i + 1;
        steady += steps[i].kind == script->main_kind && !steps[i].warmup;
        if (steps[i].quiet && steady >= aim.steady_steps && portion.cost_ns >= aim.cost_ns)
            return portion;
    }
    for (; portion.until < script->event_count; portion.until++)
        portion.cost_ns += event_cost(&script_events(script)[portion.until]);
    return portion;
}

/* Repeats a whole script until the aim is reached, at least `least` times. */
static struct portion plan(const struct script *script, struct aim aim, uint32_t least) {
    struct portion portion = cut(script, aim);
    if (portion.until < script->event_count && portion.cost_ns >= aim.cost_ns)
        return portion;
    double passes = aim.cost_ns / portion.cost_ns;
    if (passes > least)
        least = passes < PASSES_MAX ? (uint32_t)passes : PASSES_MAX;
    portion.passes = least;
    portion.cost_ns *= least;
    return portion;
}

static void plan_all(struct workload *workload, bool quick) {
    const struct script *script = workload->compiled.script;
    workload->timed = plan(script, timed_aim[quick], 2);
    workload->counted = plan(script, counted_aim[quick], 1);
    if (workload->counted.passes > 3)
        workload->counted.passes = 3;
    workload->footprint = cut(script, footprint_aim[quick]);
    workload->footprint.passes = quick ? 1 : 2;
}

static uint64_t memory_bytes(void) {
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void count_steady(struct workload *workload) {
    const struct script *script = workload->compiled.script;
    const struct script_step *steps = script_steps(script);
    for (uint32_t i = 0; i < script->step_count; i++)
        workload->steady_steps += steps[i].kind == script->main_kind && !steps[i].warmup;
}

/* Traces whose steps have fixed shapes, or shapes padded to the longest. Of the others, and of any
 * that are not known, less is asked. */
static bool has_fixed_shapes(const char *id) {
    static const char *const known[] = {"autoenc_accum.", "mlp_digits.", "mlp_digits_eval.",
                                        "resnet18_train.", "transformer_train."};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(id, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

/* Takes over what the benchmark needs of `trace`. False, with a fault, if it cannot be used. */
static bool adopt(struct workload *workload, const struct ebb_trace *trace) {
    const struct trace_totals *totals = &trace->totals;
    workload->events = totals->events;
    workload->objects = totals->objects;
    workload->max_live_bytes = totals->max_live_bytes;
    workload->left_bytes = totals->left_bytes;
    workload->repeats = has_fixed_shapes(workload->id);
    workload->tensor = trace->view == TRACE_VIEW_TENSOR;
    if (totals->max_live_bytes > memory_bytes() / 10 * 8) {
        snprintf(workload->fault, sizeof workload->fault,
                 "needs %llu bytes at once; this machine has %llu",
                 (unsigned long long)totals->max_live_bytes, (unsigned long long)memory_bytes());
        return false;
    }
    if (!histogram_fill(trace, &workload->sizes, &workload->lifetimes)) {
        snprintf(workload->fault, sizeof workload->fault, "out of memory: histograms");
        return false;
    }
    if (compiler_run(trace, &workload->compiled, workload->fault) != 0)
        return false;
    count_steady(workload);
    return true;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Bytes that would break a row become '_', other characters that no line can show '?'. */
static void make_plain(char *name) {
    for (char *at = name; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == '"' || *at == '\\' || *at == 127)
            *at = '_';
    name_make_plain(name);
}

/* "traces/x.full.trace.gz" becomes "x.full". No name would break a row, too: of ".trace" nothing
 * else is left. */
static void name_by_file(struct workload *workload, const char *path) {
    const char *slash = strrchr(path, '/');
    snprintf(workload->id, sizeof workload->id, "%s", slash ? slash + 1 : path);
    make_plain(workload->id);
    static const char *const ends[] = {".gz", ".trace"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(workload->id, ends[i]))
            workload->id[strlen(workload->id) - strlen(ends[i])] = '\0';
    if (!workload->id[0])
        strcpy(workload->id, "trace");
}

const char *workload_view(const struct workload *workload) {
    static const char *const views[] = {"full", "tensor"};
    const char *dot = strrchr(workload->id, '.');
    for (size_t i = 0; dot && i < sizeof views / sizeof *views; i++)
        if (strcmp(dot + 1, views[i]) == 0)
            return dot + 1;
    return NULL;
}

/* Where the file's name does not tell the view, the header's is added. */
static void name_by_view(struct workload *workload, enum trace_view view) {
    size_t length = strlen(workload->id);
    if (view == TRACE_VIEW_UNSAID || workload_view(workload))
        return;
    snprintf(workload->id + length, sizeof workload->id - length, ".%s",
             view == TRACE_VIEW_TENSOR ? "tensor" : "full");
}

void workload_read(struct workload *workload, const char *path, bool quick) {
    struct trace_error error;
    *workload = (struct workload){.compiled.fd = -1};
    name_by_file(workload, path);
    struct ebb_trace *trace = trace_read(path, &error);
    if (!trace) {
        snprintf(workload->fault, sizeof workload->fault, "%s (%s)", error.text,
                 trace_error_name(error.code));
        return;
    }
    name_by_view(workload, trace->view);
    if (adopt(workload, trace))
        plan_all(workload, quick);
    trace_free(trace);
}

void workload_make_spike(struct workload *workload) {
    *workload = (struct workload){.id = WORKLOAD_SPIKE_ID, .spike = true, .compiled.fd = -1};
    struct ebb_trace *trace = spike_make();
    if (!trace) {
        snprintf(workload->fault, sizeof workload->fault, "out of memory: the synthetic trace");
        return;
    }
    if (adopt(workload, trace)) {
        workload->timed = cut(workload->compiled.script, footprint_aim[0]);
        workload->counted = workload->footprint = workload->timed;
    }
    trace_free(trace);
}

void workload_free(struct workload *workload) {
    compiled_free(&workload->compiled);
}

uint32_t workload_limit_percent(const struct workload *workload) {
    return workload->tensor ? TENSOR_LIMIT : FULL_LIMIT;
}
