// SPDX-License-Identifier: Apache-2.0
/* rounds.h - runs everything that is to be run, in an order that is fair. */
#ifndef EBB_BENCH_ROUNDS_H
#define EBB_BENCH_ROUNDS_H

#include "bench.h"

/*
 * Replays every workload with every chosen allocator and fills bench->samples. A pair that fails
 * is given up, with the reason in bench->failure.
 */
void rounds_run(struct bench *bench);

#endif
