// SPDX-License-Identifier: Apache-2.0
/*
 * fault.c - what ends a replay before its time.
 *
 * A replay never goes on after a fault: its figures would not be comparable. The harness shows
 * the message with the trace and the allocator in front. May be called from ebb-heap.so.
 */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>

void fault_no_memory(const struct replay *replay, const struct script_event *event) {
    if (event->op == SCRIPT_OPEN)
        fprintf(stderr, "no memory to open a region");
    else if (event->op == SCRIPT_CLOSE)
        fprintf(stderr, "no memory to close a region");
    else
        fprintf(stderr, "no memory for a block of %llu bytes", (unsigned long long)event->bytes);
    fprintf(stderr, " (event %td, pass %u)\n", event - script_events(replay->script),
            replay->pass + 1);
    exit(FAULT_EXIT);
}

void fault_damaged(const struct replay *replay, const struct slot *slot) {
    fprintf(stderr, "a block of %llu bytes at %p does not hold what was written to it (pass %u)\n",
            (unsigned long long)slot->bytes, slot->block, replay->pass + 1);
    exit(FAULT_EXIT);
}

void fault_heap(const char *call, const char *reason) {
    fprintf(stderr, "%s failed: %s\n", call, reason);
    exit(FAULT_EXIT);
}
