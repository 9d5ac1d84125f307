// SPDX-License-Identifier: Apache-2.0
/*
 * histogram.c - counts blocks and their bytes by size and by lifetime.
 *
 * Object numbers are given in the order of birth, so a lifetime is a difference of two counts and
 * needs no table of times; only sizes have to be remembered.
 */
#include "histogram.h"

#include <stdlib.h>

static int bucket_of(const struct histogram *histogram, uint64_t value) {
    int bucket = histogram->first;
    while (bucket < HISTOGRAM_NEVER - 1 && value > UINT64_C(1) << bucket)
        bucket++;
    return bucket;
}

static void add(struct histogram *histogram, int bucket, uint64_t bytes) {
    histogram->count[bucket]++;
    histogram->bytes[bucket] += bytes;
}

struct census {
    struct histogram *sizes, *lifetimes;
    uint64_t *bytes; /* by object; DEAD once it has ended */
    uint32_t born;
    uint64_t preexisting;
};

static const uint64_t DEAD = UINT64_MAX;

static void on_birth(struct census *census, const struct trace_event *event) {
    census->bytes[census->born++] = event->value;
    if (event->op != TRACE_PREEXISTING)
        add(census->sizes, bucket_of(census->sizes, event->value), event->value);
}

static void on_death(struct census *census, uint32_t object) {
    uint64_t lifetime = census->born - object - 1, bytes = census->bytes[object];
    census->bytes[object] = DEAD;
    if (object >= census->preexisting)
        add(census->lifetimes, bucket_of(census->lifetimes, lifetime), bytes);
}

static void on_event(struct census *census, const struct trace_event *event) {
    if (event->op == TRACE_FREE || event->op == TRACE_REALLOC)
        on_death(census, event->index);
    if (event->op <= TRACE_REALLOC)
        on_birth(census, event);
}

bool histogram_fill(const struct ebb_trace *trace, struct histogram *sizes,
                    struct histogram *lifetimes) {
    *sizes = (struct histogram){.first = 4};
    *lifetimes = (struct histogram){.first = 0};
    struct census census = {.sizes = sizes, .lifetimes = lifetimes,
                            .preexisting = trace->totals.preexisting};
    census.bytes = calloc(trace->totals.objects + 1, sizeof *census.bytes);
    if (!census.bytes)
        return false;
    for (uint32_t i = 0; i < trace->event_count; i++)
        on_event(&census, &trace->events[i]);
    for (uint32_t i = (uint32_t)census.preexisting; i < census.born; i++)
        if (census.bytes[i] != DEAD)
            add(lifetimes, HISTOGRAM_NEVER, census.bytes[i]);
    free(census.bytes);
    return true;
}

int histogram_last(const struct histogram *histogram) {
    int last = HISTOGRAM_NEVER - 1;
    while (last > histogram->first && histogram->count[last] == 0)
        last--;
    return last;
}
