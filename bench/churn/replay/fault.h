// SPDX-License-Identifier: Apache-2.0
/* fault.h - what ends a replay before its time: a message on standard error and exit code 3. */
#ifndef EBB_BENCH_FAULT_H
#define EBB_BENCH_FAULT_H

#include "heap.h"

#define FAULT_COLD HEAP_SHARED __attribute__((noreturn, cold, noinline))

enum { FAULT_EXIT = 3 };

/* The heap gave no memory for this event. */
FAULT_COLD void fault_no_memory(const struct replay *replay, const struct script_event *event);

/* The block holds other bytes than were written to it. */
FAULT_COLD void fault_damaged(const struct replay *replay, const struct slot *slot);

/* A call of the heap failed: what it was, and what the heap says. */
FAULT_COLD void fault_heap(const char *call, const char *reason);

#endif
