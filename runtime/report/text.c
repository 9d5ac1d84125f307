// SPDX-License-Identifier: Apache-2.0
/* text.c - see text.h. One call of text_print() writes at most 511 bytes. */
#include "report/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(struct text *text, const char *bytes, size_t count) {
    if (text->result == 0 && count)
        text->result = text->write(text->context, bytes, count);
}

void text_print(struct text *text, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0)
        put(text, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void text_json_string(struct text *text, const char *string) {
    put(text, "\"", 1);
    for (; *string; string++) {
        unsigned char byte = (unsigned char)*string;
        if (byte == '"' || byte == '\\')
            text_print(text, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            text_print(text, "\\u%04x", byte);
        else
            put(text, string, 1);
    }
    put(text, "\"", 1);
}
