// SPDX-License-Identifier: Apache-2.0
/* argument.c - see argument.h. Digits alone: no sign, no space, and nothing behind them. */
#include "argument.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

unsigned long argument_number(const char *what, const char *text, unsigned long least,
                              unsigned long most) {
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (errno || !isdigit((unsigned char)*text) || *end || number < least || number > most) {
        fprintf(stderr, "%s: %s: not a number from %lu to %lu: %s\n",
                program_invocation_short_name, what, least, most, text);
        exit(2);
    }
    return number;
}
