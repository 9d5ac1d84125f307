// SPDX-License-Identifier: Apache-2.0
/* complain.c - see complain.h. */
#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

static const char *speaker = "";

void complain_as(const char *command) {
    speaker = command;
}

bool complain(const char *format, ...) {
    va_list list;
    fprintf(stderr, "ebb%s%s: ", *speaker ? " " : "", speaker);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return false;
}
