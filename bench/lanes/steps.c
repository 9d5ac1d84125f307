// SPDX-License-Identifier: Apache-2.0
//
// steps.c - cuts a trace into its steady steps.
//
// One walk over the events. Every object remembers the step that it belongs to and its number in
// it, so that frees from other threads and after the step's end find their place. One invariant: in
// a step's list every free stands behind the allocation of its object, once at most. A trace was
// checked by its reader, so nothing is refused here.

#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "buffers.h"

enum { NO_STEP = -1, ALIGN_LOG2_MIN = 4 };

struct owner {
    int64_t step;
    uint32_t object;
    uint64_t bytes;
};

struct collector {
    struct steps *steps;
    const struct ebb_trace *trace;
    struct owner *owners; // by object
    uint32_t object_count;
    uint32_t thread;
    uint32_t depth[TRACE_THREADS_MAX];
    int64_t open_step[TRACE_THREADS_MAX]; // NO_STEP: none is open, or it is warm-up
    uint32_t seen[TRACE_NAMES_MAX];       // regions of each kind, nested ones too
};

static int64_t open_step(struct collector *collector)
{
    struct steps *steps = collector->steps;

    steps->step = buffer_reserve(steps->step, &steps->capacity, steps->count, sizeof *steps->step);
    steps->step[steps->count] = (struct step){.is_open = true};
    return (int64_t)steps->count++;
}

static void take_begin(struct collector *collector, uint8_t kind)
{
    uint32_t thread = collector->thread;
    bool warm = collector->seen[kind]++ >= collector->trace->warmup;
    bool outermost = collector->depth[thread]++ == 0;

    if (warm && outermost)
        collector->open_step[thread] = open_step(collector);
}

static void take_end(struct collector *collector)
{
    uint32_t thread = collector->thread;

    if (--collector->depth[thread] || collector->open_step[thread] == NO_STEP)
        return;
    collector->steps->step[collector->open_step[thread]].is_open = false;
    collector->open_step[thread] = NO_STEP;
}

static void append(struct step *step, struct step_event event)
{
    step->events = buffer_reserve(step->events, &step->event_capacity, step->event_count,
                                  sizeof *step->events);
    step->events[step->event_count++] = event;
}

static void take_birth(struct collector *collector, const struct trace_event *event)
{
    struct owner *owner = &collector->owners[collector->object_count++];
    struct step *step;
    uint8_t align = event->align_log2 > ALIGN_LOG2_MIN ? event->align_log2 : ALIGN_LOG2_MIN;

    *owner = (struct owner){collector->open_step[collector->thread], 0, event->value};
    if (owner->step == NO_STEP)
        return;
    step = &collector->steps->step[owner->step];
    owner->object = step->object_count++;
    append(step, (struct step_event){event->value, owner->object, align, false});
    step->live_bytes += event->value;
    if (step->live_bytes > step->max_live_bytes)
        step->max_live_bytes = step->live_bytes;
}

// The step that still counts the end of `owner`'s object, or NULL.
static struct step *counting_step(struct collector *collector, const struct owner *owner)
{
    struct step *step;

    if (owner->step == NO_STEP)
        return NULL;
    step = &collector->steps->step[owner->step];
    return step->is_open ? step : NULL;
}

static void take_death(struct collector *collector, uint32_t object)
{
    const struct owner *owner = &collector->owners[object];
    struct step *step = counting_step(collector, owner);

    if (!step)
        return;
    step->live_bytes -= owner->bytes;
    append(step, (struct step_event){.object = owner->object, .is_free = true});
}

// In the list the new block comes first, for max_live_bytes the old one goes first.
static void take_realloc(struct collector *collector, const struct trace_event *event)
{
    const struct owner *old = &collector->owners[event->index];
    struct step *step = counting_step(collector, old);

    if (step)
        step->live_bytes -= old->bytes;
    take_birth(collector, event);
    step = counting_step(collector, old);
    if (step)
        append(step, (struct step_event){.object = old->object, .is_free = true});
}

static void take_event(struct collector *collector, const struct trace_event *event)
{
    switch ((enum trace_op)event->op) {
    case TRACE_PREEXISTING:
        collector->owners[collector->object_count++] = (struct owner){NO_STEP, 0, event->value};
        break;
    case TRACE_ALLOC:
    case TRACE_CALLOC:
    case TRACE_ALIGNED:
        take_birth(collector, event);
        break;
    case TRACE_REALLOC:
        take_realloc(collector, event);
        break;
    case TRACE_FREE:
        take_death(collector, event->index);
        break;
    case TRACE_THREAD:
        collector->thread = event->index;
        break;
    case TRACE_BEGIN:
        take_begin(collector, event->name);
        break;
    case TRACE_END:
        take_end(collector);
        break;
    case TRACE_PHASE:
        break;
    }
}

static void drop_empty(struct steps *steps)
{
    size_t kept = 0;

    for (size_t i = 0; i < steps->count; i++)
        if (steps->step[i].object_count)
            steps->step[kept++] = steps->step[i];
    steps->count = kept;
}

void steps_collect(struct steps *steps, const struct ebb_trace *trace)
{
    struct collector *collector = buffer_resize(NULL, 1, sizeof *collector);

    memset(collector, 0, sizeof *collector);
    collector->steps = steps;
    collector->trace = trace;
    collector->owners =
        buffer_resize(NULL, (size_t)trace->totals.objects, sizeof *collector->owners);
    for (uint32_t i = 0; i < TRACE_THREADS_MAX; i++)
        collector->open_step[i] = NO_STEP;
    *steps = (struct steps){0};
    for (uint32_t i = 0; i < trace->event_count; i++)
        take_event(collector, &trace->events[i]);
    drop_empty(steps);
    free(collector->owners);
    free(collector);
}

void steps_free(struct steps *steps)
{
    for (size_t i = 0; i < steps->count; i++)
        free(steps->step[i].events);
    free(steps->step);
    *steps = (struct steps){0};
}
