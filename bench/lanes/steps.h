// SPDX-License-Identifier: Apache-2.0
//
// steps.h - the steady top-level regions of a trace, each as a list of allocations and frees.

#ifndef EBB_BENCH_LANES_STEPS_H
#define EBB_BENCH_LANES_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace.h"

// `object` counts from 0 within the step. A free has only that.
struct step_event {
    uint64_t bytes; // as requested
    uint32_t object;
    uint8_t align_log2; // 4 unless more was asked for
    bool is_free;
};

struct step {
    struct step_event *events;
    size_t event_count, event_capacity;
    uint32_t object_count;
    uint64_t live_bytes;     // while it is collected: requested bytes alive
    uint64_t max_live_bytes; // most requested bytes alive at once
    bool is_open;            // while it is collected
};

struct steps {
    struct step *step;
    size_t count, capacity;
};

// Collects the steps of `trace`:
//   - a step is a region with no region of its thread around it; those among the first
//     trace->warmup regions of their kind, nested ones counted, and those without allocations are
//     left out;
//   - an object belongs to the step that is open on the thread that allocates it, whoever frees it;
//   - a free counts while the step is open; survivors live to the end;
//   - realloc: the new object is allocated, then the old one freed; for max_live_bytes the old one
//     is dead before the new one is alive, as in the headers of the traces.
void steps_collect(struct steps *steps, const struct ebb_trace *trace);
void steps_free(struct steps *steps);

#endif
