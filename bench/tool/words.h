// SPDX-License-Identifier: Apache-2.0
/* words.h - numbers as people read them. */
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

/* Names come from programs and files: what is no printable character becomes '?'. */
void words_plain(char *text);

#endif
