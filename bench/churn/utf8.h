// SPDX-License-Identifier: Apache-2.0
/* utf8.h - names of files are of any bytes, what is written of them is UTF-8. */
#ifndef EBB_BENCH_UTF8_H
#define EBB_BENCH_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character that begins here; 0: none does. */
size_t utf8_character(const char *text);

#endif
