// SPDX-License-Identifier: Apache-2.0
/* gzip_text.c - see gzip_text.h. */
#include "gzip_text.h"

#include <stdarg.h>
#include <stdio.h>

void gzip_print(gzFile file, const char *format, ...) {
    char line[1100];
    va_list list;
    if (!file)
        return;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    gzwrite(file, line, (unsigned)length);
}
