// SPDX-License-Identifier: Apache-2.0
/* json.h - everything about a run in one JSON file; its shape is in docs/benchmarking.md. */
#ifndef EBB_BENCH_JSON_H
#define EBB_BENCH_JSON_H

#include "bench.h"

/* 0, or -1 after a message on standard error. */
int json_write(const struct bench *bench, const char *path);

#endif
