// SPDX-License-Identifier: Apache-2.0
//
// failure.h - how the files of this folder report: inside bench/trace only.

#ifndef EBB_BENCH_TRACE_FAILURE_H
#define EBB_BENCH_TRACE_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

// Fills *error and returns false, so that a caller can write `return trace_fail(...)`. The text is
// cut at 255 bytes. `line` 0: the error belongs to no line.
__attribute__((format(printf, 4, 5))) bool trace_fail(struct trace_error *error,
                                                      enum trace_error_code code, uint64_t line,
                                                      const char *format, ...);

#endif
