// SPDX-License-Identifier: Apache-2.0
/* complain.h - what goes wrong, said in one line on standard error. */
#ifndef EBB_BENCH_TOOL_COMPLAIN_H
#define EBB_BENCH_TOOL_COMPLAIN_H

#include <stdbool.h>

/* "ebb record: TEXT", of which what no line can show is "?"; false, so that a caller can write
 * `return complain(...)`. */
__attribute__((format(printf, 1, 2))) bool complain(const char *format, ...);

/* The command that is named in front; set once, by main(). */
void complain_as(const char *command);

#endif
