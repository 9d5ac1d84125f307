// SPDX-License-Identifier: Apache-2.0
/*
 * clock.h - clocks and the process's own account of pages.
 *
 * Repeated work is timed with the processor time of the process: other load on the machine then
 * costs cache, not time. Single short calls (a close, a promotion) are timed with the monotonic
 * clock, whose own cost is measured once and taken off.
 */
#ifndef MICRO_CLOCK_H
#define MICRO_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t clock_cpu_ns(void);  /* processor time of this process */
uint64_t clock_wall_ns(void); /* monotonic */

/* What two readings of clock_wall_ns() with nothing in between differ by, on average. */
double clock_wall_cost_ns(void);

uint64_t clock_faults(void);             /* page faults of this process so far */
uint64_t clock_resident_bytes(void);     /* now, from /proc/self/statm */
uint64_t clock_peak_resident_bytes(void); /* highest, from /proc/self/status */

/* Sorts and returns the middle one. `count` at least 1. */
double clock_median(double *values, size_t count);

/*
 * Sorts and returns the mean of all but the largest quarter. For single short spans: the clock
 * may tick in steps of 10 ns, which a mean sees through and a median does not; the quarter that
 * interrupts fell into is left out.
 */
double clock_calm_mean(double *values, size_t count);

#ifdef __cplusplus
}
#endif

#endif
