// SPDX-License-Identifier: Apache-2.0
/* summary.h - the figures as tables on standard output. */
#ifndef EBB_BENCH_SUMMARY_H
#define EBB_BENCH_SUMMARY_H

#include "bench.h"

/* One table per trace, then one line per trace, then what was missed and what failed. */
void summary_print(const struct bench *bench);

#endif
