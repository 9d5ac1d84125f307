// SPDX-License-Identifier: Apache-2.0
/* brief.h - names of functions and places, as short as the room for them. */
#ifndef EBB_BENCH_TOOL_BRIEF_H
#define EBB_BENCH_TOOL_BRIEF_H

#include <stddef.h>

/* The first `length` bytes of the name of a function, in at most `room` with the end of the text.
 * Functions of one template differ behind the last `::`, so what is before it goes first. The
 * bytes that were written. */
size_t brief_function(char *to, size_t room, const char *name, size_t length);

/* "NAME (FILE)" as lines and tables have it: no arguments of C++, no `.so` and version. There is
 * room for 16 bytes, or for more. */
void brief_place(char *to, size_t room, const char *name);

#endif
