// SPDX-License-Identifier: Apache-2.0
/* words.h - numbers and names as people read them. */
#ifndef EBB_BENCH_TOOL_WORDS_H
#define EBB_BENCH_TOOL_WORDS_H

#include <stdint.h>

enum { WORDS_MAX = 32 };

struct words {
    char text[WORDS_MAX];
};

/* "12.3 MiB"; "1,234,567"; "12.3 us" of microseconds. */
struct words words_bytes(double bytes);
struct words words_count(uint64_t count);
struct words words_us(double us);

/* The name of a file as a line can show it (base/name.h); valid until the next call. */
const char *words_name(const char *name);

#endif
