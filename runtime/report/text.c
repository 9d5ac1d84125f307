// SPDX-License-Identifier: Apache-2.0
/* text.c - see text.h. One call of text_print() writes at most 511 bytes. */
#include "report/text.h"

#include "base/name.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(struct text *text, const char *bytes, size_t count) {
    if (text->result == 0 && count)
        text->result = text->write(text->context, bytes, count);
}

/* In the locale "C", which is always there: a comma in a number would be no JSON. */
void text_print(struct text *text, const char *format, ...) {
    char line[512];
    va_list arguments;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    uselocale(before);
    freelocale(plain);
    if (length > 0)
        put(text, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

/* Bytes from the start that are UTF-8 and stay in their line. */
static size_t plain_bytes(const char *string) {
    size_t bytes, all = 0;
    while ((unsigned char)string[all] >= ' ' && string[all] != 0x7f &&
           (bytes = name_utf8_bytes(string + all)))
        all += bytes;
    return all;
}

void text_name(struct text *text, const char *name) {
    for (;; name++) {
        size_t bytes = plain_bytes(name);
        put(text, name, bytes);
        name += bytes;
        if (!*name)
            return;
        put(text, "?", 1);
    }
}

void text_json_inside(struct text *text, const char *string) {
    while (*string) {
        unsigned char byte = (unsigned char)*string;
        size_t bytes = name_utf8_bytes(string);
        if (byte == '"' || byte == '\\')
            text_print(text, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f || !bytes)
            text_print(text, "\\u%04x", byte);
        else
            put(text, string, bytes);
        string += bytes ? bytes : 1;
    }
}

void text_json_string(struct text *text, const char *string) {
    put(text, "\"", 1);
    text_json_inside(text, string);
    put(text, "\"", 1);
}
