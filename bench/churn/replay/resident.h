// SPDX-License-Identifier: Apache-2.0
/* resident.h - how much memory of this process is resident, without allocating any. */
#ifndef EBB_BENCH_RESIDENT_H
#define EBB_BENCH_RESIDENT_H

#include <stdint.h>

/* Bytes resident now; 0 if /proc cannot be read. The kernel's count may lag by some pages. */
uint64_t resident_now(void);

/* Most bytes that were ever resident (VmHWM). */
uint64_t resident_peak(void);

#endif
