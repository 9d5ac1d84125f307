// SPDX-License-Identifier: Apache-2.0
/*
 * figures.c - one pass over the events.
 *
 * Each object remembers its step; so when it ends it is known whether that is still open, and if
 * not, whether the next one has ended, too. The next one is that of the same kind and thread: what
 * other threads do meanwhile has nothing to do with it.
 */
#include "figures.h"

#include <inttypes.h>
#include <stdlib.h>

#include "complain.h"

#define NO_STEP UINT32_MAX

struct object {
    uint64_t bytes;
    uint32_t step; /* NO_STEP: born outside */
};

struct open_step {
    uint32_t step, depth;
};

struct pass {
    struct figures *figures;
    const struct places *places;
    struct object *object;
    uint64_t *live;   /* by step: bytes of its own that are alive; */
    bool *open;       /* by step */
    bool *passed;     /* by step: the next one has ended */
    uint32_t *last;   /* by thread and kind: the step that ended last, and 1; 0: none has */
    uint32_t *begun;  /* by kind: regions so far */
    uint32_t warmup;  /* as many of each kind are */
    struct open_step *thread;
    uint32_t current; /* thread */
    size_t objects;
};

static void add(struct amount *amount, uint64_t bytes) {
    amount->blocks++;
    amount->bytes += bytes;
}

static void bear(struct pass *pass, uint64_t bytes, bool counts) {
    struct figures *figures = pass->figures;
    uint32_t step = counts && pass->thread[pass->current].depth
                        ? pass->thread[pass->current].step : NO_STEP;
    size_t number = pass->objects++;
    pass->object[number] = (struct object){.bytes = bytes, .step = step};
    if (step == NO_STEP) {
        if (counts)
            add(&figures->outside, bytes);
        return;
    }
    struct step_figures *own = &figures->step[step];
    add(&own->born, bytes);
    add(&figures->kind[own->kind].born, bytes);
    add(&figures->place[pass->places->of[number]].born, bytes);
    pass->live[step] += bytes;
    if (pass->live[step] > own->peak)
        own->peak = pass->live[step];
}

/* The part of a fate that the end of an object of this step belongs to. */
static struct amount *part_of(const struct pass *pass, struct fate *fate, uint32_t step) {
    if (pass->open[step])
        return &fate->died;
    return pass->passed[step] ? &fate->later : &fate->next;
}

static void bury(struct pass *pass, size_t number) {
    const struct object *object = &pass->object[number];
    struct figures *figures = pass->figures;
    if (object->step == NO_STEP)
        return;
    struct fate *kind = &figures->kind[figures->step[object->step].kind];
    add(part_of(pass, kind, object->step), object->bytes);
    add(part_of(pass, &figures->place[pass->places->of[number]], object->step), object->bytes);
    pass->live[object->step] -= object->bytes;
    if (!pass->open[object->step])
        return;
    figures->step[object->step].survived.blocks--; /* counts down from what was born */
    figures->step[object->step].survived.bytes -= object->bytes;
}

static void begin(struct pass *pass, uint8_t kind) {
    struct open_step *open = &pass->thread[pass->current];
    uint32_t earlier = pass->begun[kind]++;
    if (open->depth++)
        return;
    open->step = (uint32_t)pass->figures->step_count++;
    pass->figures->step[open->step].kind = kind;
    pass->figures->step[open->step].warmup = earlier < pass->warmup;
    pass->open[open->step] = true;
}

static void end(struct pass *pass) {
    struct open_step *open = &pass->thread[pass->current];
    if (--open->depth)
        return;
    struct step_figures *step = &pass->figures->step[open->step];
    step->survived.blocks += step->born.blocks;
    step->survived.bytes += step->born.bytes;
    pass->open[open->step] = false;
    uint32_t *last = &pass->last[pass->current * TRACE_NAMES_MAX + step->kind];
    if (*last)
        pass->passed[*last - 1] = true;
    *last = open->step + 1;
}

static void take(struct pass *pass, const struct trace_event *event) {
    switch (event->op) {
    case TRACE_PREEXISTING: bear(pass, event->value, false); break;
    case TRACE_REALLOC:
        bury(pass, event->index);
        bear(pass, event->value, true);
        break;
    case TRACE_FREE: bury(pass, event->index); break;
    case TRACE_THREAD: pass->current = event->index; break;
    case TRACE_BEGIN: begin(pass, event->name); break;
    case TRACE_END: end(pass); break;
    case TRACE_PHASE: break;
    default: bear(pass, event->value, true); break;
    }
}

static struct amount rest_of(const struct fate *fate) {
    return (struct amount){
        fate->born.blocks - fate->died.blocks - fate->next.blocks - fate->later.blocks,
        fate->born.bytes - fate->died.bytes - fate->next.bytes - fate->later.bytes};
}

static void add_fate(struct fate *to, const struct fate *from) {
    const struct amount *part = &from->born;
    struct amount *sum = &to->born;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++) {
        sum[i].blocks += part[i].blocks;
        sum[i].bytes += part[i].bytes;
    }
}

/* The kind whose steps allocate most, warm-up left out or not; where none has more than others,
 * that of the first step. `most`: how much. */
static int largest_kind(const struct figures *figures, bool all, uint64_t *most) {
    uint64_t bytes[TRACE_NAMES_MAX] = {0};
    int largest = figures->step[0].kind;
    for (size_t i = 0; i < figures->step_count; i++)
        if (all || !figures->step[i].warmup)
            bytes[figures->step[i].kind] += figures->step[i].born.bytes;
    for (int i = 0; i < TRACE_NAMES_MAX; i++)
        if (bytes[i] > bytes[largest])
            largest = i;
    *most = bytes[largest];
    return largest;
}

/* As a replay chooses it (name_kinds() of churn/compiler.c): the figures are of the same steps. */
static int main_kind(const struct figures *figures) {
    uint64_t most = 0;
    if (figures->step_count == 0)
        return -1;
    int steady = largest_kind(figures, false, &most);
    return most ? steady : largest_kind(figures, true, &most);
}

static void sum_up(struct figures *figures, const struct ebb_trace *trace) {
    figures->main_kind = main_kind(figures);
    for (uint32_t i = 0; i < trace->kinds.count; i++) {
        figures->kind[i].never = rest_of(&figures->kind[i]);
        add_fate(&figures->all, &figures->kind[i]);
    }
    for (int i = 0; i < PLACES_MAX; i++)
        figures->place[i].never = rest_of(&figures->place[i]);
}

static size_t count_begins(const struct ebb_trace *trace) {
    size_t count = 0;
    for (uint32_t i = 0; i < trace->event_count; i++)
        count += trace->events[i].op == TRACE_BEGIN;
    return count;
}

bool figures_make(struct figures *figures, const struct ebb_trace *trace,
                  const struct places *places) {
    size_t begins = count_begins(trace);
    struct pass pass = {.figures = figures, .places = places, .warmup = trace->warmup};
    *figures = (struct figures){0};
    figures->step = calloc(begins + 1, sizeof *figures->step);
    figures->kind = calloc(TRACE_NAMES_MAX, sizeof *figures->kind);
    figures->place = calloc(PLACES_MAX, sizeof *figures->place);
    pass.object = calloc(trace->totals.objects + 1, sizeof *pass.object);
    pass.live = calloc(begins + 1, sizeof *pass.live);
    pass.open = calloc(begins + 1, sizeof *pass.open);
    pass.passed = calloc(begins + 1, sizeof *pass.passed);
    pass.last = calloc((size_t)TRACE_THREADS_MAX * TRACE_NAMES_MAX, sizeof *pass.last);
    pass.thread = calloc(TRACE_THREADS_MAX, sizeof *pass.thread);
    pass.begun = calloc(TRACE_NAMES_MAX, sizeof *pass.begun);
    bool good = figures->step && figures->kind && figures->place && pass.object && pass.live &&
                pass.open && pass.passed && pass.last && pass.thread && pass.begun;
    for (uint32_t i = 0; good && i < trace->event_count; i++)
        take(&pass, &trace->events[i]);
    if (good)
        sum_up(figures, trace);
    free(pass.object);
    free(pass.live);
    free(pass.open);
    free(pass.passed);
    free(pass.last);
    free(pass.thread);
    free(pass.begun);
    if (good)
        return true;
    figures_free(figures);
    return complain("out of memory: %" PRIu64 " objects", trace->totals.objects);
}

void figures_free(struct figures *figures) {
    free(figures->step);
    free(figures->kind);
    free(figures->place);
    *figures = (struct figures){0};
}

size_t figures_worst(const struct figures *figures, uint16_t *place, size_t count) {
    size_t found = 0;
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        uint64_t bytes = fate_survived(&figures->place[i]).bytes;
        if (fate_survived(&figures->place[i]).blocks == 0)
            continue;
        size_t at = found < count ? found++ : count;
        for (; at > 0 && fate_survived(&figures->place[place[at - 1]]).bytes < bytes; at--)
            if (at < count)
                place[at] = place[at - 1];
        if (at < count)
            place[at] = (uint16_t)i;
    }
    return found;
}

static bool is_among(const uint16_t *place, size_t count, uint32_t number) {
    for (size_t i = 0; i < count; i++)
        if (place[i] == number)
            return true;
    return false;
}

size_t figures_others(const struct figures *figures, const uint16_t *place, size_t count,
                      struct fate *sum) {
    size_t others = 0;
    *sum = (struct fate){0};
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        if (fate_survived(&figures->place[i]).blocks == 0 || is_among(place, count, i))
            continue;
        add_fate(sum, &figures->place[i]);
        others++;
    }
    return others;
}
