// SPDX-License-Identifier: Apache-2.0
/* complain.c - see complain.h. */
#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/name.h"

enum { LINE_BYTES = 16384 }; /* two of the longest paths, and more */

static const char *speaker = "";

void complain_as(const char *command) {
    speaker = command;
}

bool complain(const char *format, ...) {
    va_list list;
    char line[LINE_BYTES];
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    name_make_plain(line);
    fprintf(stderr, "ebb%s%s: %s\n", *speaker ? " " : "", speaker, line);
    return false;
}
