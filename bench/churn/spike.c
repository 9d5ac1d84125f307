// SPDX-License-Identifier: Apache-2.0
/*
 * spike.c - builds the synthetic trace in the form that trace_read() hands out.
 *
 * Everything is sized in advance from the constants below: a step of `times` copies has
 * EVENTS_PER_COPY events for each copy, and two for its region. Sound by construction: what is
 * freed was pushed on a list when it was born.
 */
#include "spike.h"

#include <stdlib.h>
#include <string.h>

enum {
    LAYERS = 24,
    SMALL_SHORT = 20, /* small blocks per layer that end at once */
    SMALL_LONG = 20,  /* and that live until the batch ends */
    SURVIVORS = 3,
    BATCHES = 4, /* forward and backward, one after the other */
    BIRTHS_PER_COPY = BATCHES * LAYERS * (2 + SMALL_SHORT + SMALL_LONG) + SURVIVORS,
    COPIES = SPIKE_BEFORE + SPIKE_TIMES + SPIKE_AFTER,
    STEPS = SPIKE_BEFORE + 1 + SPIKE_AFTER,
    EVENTS = 2 * BIRTHS_PER_COPY * COPIES + 2 * STEPS,
    LISTED = LAYERS * SMALL_LONG * SPIKE_TIMES,
};

static const uint32_t activation_bytes[] = {65536, 16384, 262144, 4096,
                                            98304, 32768, 131072, 8192};
static const uint32_t survivor_bytes[SURVIVORS] = {4096, 256, 20000};

struct list {
    uint32_t object[LISTED];
    uint32_t bytes[LISTED];
    uint32_t count;
};

struct builder {
    struct ebb_trace *trace;
    uint64_t live, live_bytes;
    uint32_t random;
    struct list activations, small, survivors;
};

static struct trace_event *emit(struct builder *b, enum trace_op op) {
    struct trace_event *event = &b->trace->events[b->trace->event_count++];
    event->op = (uint8_t)op;
    return event;
}

static uint32_t bear(struct builder *b, uint32_t bytes, uint8_t align_log2) {
    struct trace_totals *totals = &b->trace->totals;
    struct trace_event *event = emit(b, align_log2 ? TRACE_ALIGNED : TRACE_ALLOC);
    event->value = bytes;
    event->align_log2 = align_log2;
    event->index = (uint32_t)totals->objects++;
    totals->allocs++;
    b->live_bytes += bytes;
    if (++b->live > totals->max_live)
        totals->max_live = b->live;
    if (b->live_bytes > totals->max_live_bytes)
        totals->max_live_bytes = b->live_bytes;
    return event->index;
}

static void end(struct builder *b, uint32_t object, uint32_t bytes) {
    struct trace_event *event = emit(b, TRACE_FREE);
    event->index = object;
    event->value = bytes;
    b->trace->totals.frees++;
    b->live--;
    b->live_bytes -= bytes;
}

static void push(struct builder *b, struct list *list, uint32_t bytes, uint8_t align_log2) {
    list->object[list->count] = bear(b, bytes, align_log2);
    list->bytes[list->count++] = bytes;
}

static void pop(struct builder *b, struct list *list, uint32_t count) {
    while (count-- > 0) {
        list->count--;
        end(b, list->object[list->count], list->bytes[list->count]);
    }
}

/* 32 to 511 bytes, always the same sequence. */
static uint32_t small_bytes(struct builder *b) {
    b->random = b->random * 1664525u + 1013904223u;
    return 32 + (b->random >> 16) % 480;
}

static void forward(struct builder *b, uint32_t layer, uint32_t times) {
    uint32_t kinds = sizeof activation_bytes / sizeof *activation_bytes;
    for (uint32_t i = 0; i < times; i++)
        push(b, &b->activations, activation_bytes[layer % kinds], 6);
    for (uint32_t i = 0; i < times * SMALL_LONG; i++)
        push(b, &b->small, small_bytes(b), 0);
}

static void backward(struct builder *b, uint32_t layer, uint32_t times) {
    uint32_t kinds = sizeof activation_bytes / sizeof *activation_bytes;
    uint32_t bytes = activation_bytes[layer % kinds];
    for (uint32_t i = 0; i < times; i++)
        push(b, &b->activations, bytes, 6); /* the gradient */
    pop(b, &b->activations, times);
    for (uint32_t i = 0; i < times * SMALL_SHORT; i++) {
        uint32_t size = small_bytes(b);
        end(b, bear(b, size, 0), size);
    }
    pop(b, &b->activations, times);
}

static void batch(struct builder *b, uint32_t times) {
    for (uint32_t layer = 0; layer < LAYERS; layer++)
        forward(b, layer, times);
    for (uint32_t layer = LAYERS; layer-- > 0;)
        backward(b, layer, times);
    pop(b, &b->small, b->small.count);
}

static void step(struct builder *b, uint32_t number, uint32_t times) {
    uint32_t begin = b->trace->event_count;
    emit(b, TRACE_BEGIN)->index = number;
    pop(b, &b->survivors, b->survivors.count);
    for (uint32_t i = 0; i < BATCHES; i++)
        batch(b, times);
    for (uint32_t i = 0; i < SURVIVORS * times; i++)
        push(b, &b->survivors, survivor_bytes[i % SURVIVORS], 6);
    emit(b, TRACE_END)->index = begin;
}

static void build(struct builder *b) {
    for (uint32_t i = 0; i < STEPS; i++)
        step(b, i, i == SPIKE_BEFORE ? SPIKE_TIMES : 1);
    struct trace_totals *totals = &b->trace->totals;
    totals->events = totals->allocs + totals->frees;
    totals->left = b->live;
    totals->left_bytes = b->live_bytes;
}

struct ebb_trace *spike_make(void) {
    struct builder *b = calloc(1, sizeof *b);
    struct ebb_trace *trace = calloc(1, sizeof *trace);
    struct trace_event *events = calloc(EVENTS, sizeof *events);
    if (!b || !trace || !events) {
        free(b);
        free(trace);
        free(events);
        return NULL;
    }
    *trace = (struct ebb_trace){.name = "spike", .warmup = 3, .events = events};
    trace->kinds.count = 1;
    memcpy(trace->kinds.word[0], "train", sizeof "train");
    b->trace = trace;
    build(b);
    free(b);
    return trace;
}
