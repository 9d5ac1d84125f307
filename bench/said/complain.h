// SPDX-License-Identifier: Apache-2.0
/* complain.h - what goes wrong, said in one line on standard error. */
#ifndef EBB_BENCH_SAID_COMPLAIN_H
#define EBB_BENCH_SAID_COMPLAIN_H

#include <stdbool.h>

struct option;

/* "SPEAKER: TEXT", of which what no line can show is "?"; false, so that a caller can write
 * `return complain(...)`. */
__attribute__((format(printf, 1, 2))) bool complain(const char *format, ...);

/* The program that is named in front; set once, by main(), and kept by the caller. */
void complain_as(const char *speaker);
const char *complain_speaker(void);

/*
 * Of getopt_long() that has returned '?' or ':': what is wrong with the option, and that --help
 * tells more; false. For that the option string begins with ":", behind a "+" if there is one: then
 * getopt_long() itself says nothing.
 */
bool complain_of_option(int returned, char *const *argv, const struct option *known);

#endif
