// SPDX-License-Identifier: Apache-2.0
/* schedule.h - how the library's own threads are scheduled. */
#ifndef EBB_BASE_SCHEDULE_H
#define EBB_BASE_SCHEDULE_H

/*
 * Schedules this thread like the process's first one, not like the thread that created it, whose
 * priority may be lower or higher than all others'. Never in real time, however: where the first
 * thread is a real-time one, its processors are not taken over either, since this thread might
 * never get to run there. What the system refuses stays as it is.
 */
void schedule_as_first(void);

#endif
