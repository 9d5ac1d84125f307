// SPDX-License-Identifier: Apache-2.0
/* origin.h - which letter of the format stands for the code that asked for a block. */
#ifndef EBB_BENCH_TOOL_ORIGIN_H
#define EBB_BENCH_TOOL_ORIGIN_H

#include <stdbool.h>

/* `path`: of the program or library that called; "" where it is not known. */
char origin_of(const char *path, bool aligned);

/* "PyTorch tensor storage" */
const char *origin_name(char origin);

#endif
