// SPDX-License-Identifier: Apache-2.0
/* symbols.h - names of functions, from the symbol tables of the files they are in. */
#ifndef EBB_BENCH_TOOL_SYMBOLS_H
#define EBB_BENCH_TOOL_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the name of the function at `address` of the file (as linked), demangled where a C++
 * library is at hand, brief enough for `room` bytes; "" where the file does not tell. Files stay
 * open until symbols_close().
 */
void symbols_name(const char *path, uint64_t address, char *name, size_t room);

void symbols_close(void);

#endif
