// SPDX-License-Identifier: Apache-2.0
/* words.h - numbers and names as people read them. */
#ifndef EBB_BENCH_TOOL_WORDS_H
#define EBB_BENCH_TOOL_WORDS_H

#include <stdint.h>

enum { WORDS_MAX = 32 };

struct words {
    char text[WORDS_MAX];
};

/* "12.3 MiB"; "1,234,567"; "12.3 us" of microseconds. Some bytes are never none: "<1 B". */
struct words words_bytes(double bytes);
struct words words_count(uint64_t count);
struct words words_us(double us);

/* With so many digits behind the point; what is not 0 is never said to be: "<0.1". */
struct words words_number(double value, int digits);

/* "12.3 %"; "100.0 %" of all alone and "0.0 %" of none alone, else ">99.9 %" and "<0.1 %"; "-" of
 * nothing. */
struct words words_share(uint64_t part, uint64_t whole, int digits);

/* The name of a file as a line can show it (base/name.h); valid until the next call. */
const char *words_name(const char *name);

#endif
