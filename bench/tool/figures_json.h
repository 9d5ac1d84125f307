// SPDX-License-Identifier: Apache-2.0
/* figures_json.h - the figures of a trace for the page; what is in it is said in figures_json.c. */
#ifndef EBB_BENCH_TOOL_FIGURES_JSON_H
#define EBB_BENCH_TOOL_FIGURES_JSON_H

#include <stdbool.h>

#include "case.h"

/* Writes them to an open file. False after a message. */
bool figures_write(const struct recorded_case *recorded, int file);

#endif
