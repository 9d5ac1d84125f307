// SPDX-License-Identifier: Apache-2.0
/* schedule.h - how threads of the library's own are scheduled. */
#ifndef EBB_BASE_SCHEDULE_H
#define EBB_BASE_SCHEDULE_H

/*
 * This thread is scheduled as the process's first one: whoever began it may be one that works
 * behind all others, or before them. Never in real time, though, and where the first one is, not on
 * its processors, on which this one might never run. What the system refuses stays as it is.
 */
void schedule_as_first(void);

#endif
