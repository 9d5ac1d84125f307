// SPDX-License-Identifier: Apache-2.0
/* text.c - see text.h. One call of text_print() writes at most 511 bytes. */
#include "report/text.h"

#include "base/cancel.h"
#include "base/name.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is reported may be noted as told until it has been, and plans have a user meanwhile. */
static void put(struct text *text, const char *bytes, size_t count) {
    if (text->result != 0 || !count)
        return;
    int cancels = cancel_defer();
    text->result = text->write(text->context, bytes, count);
    cancel_restore(cancels);
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

/* Bytes from the start that a line can show. */
static size_t plain_bytes(const char *string) {
    size_t bytes, all = 0;
    bool is_plain;
    while ((bytes = name_character(string + all, &is_plain)) && is_plain)
        all += bytes;
    return all;
}

void text_name(struct text *text, const char *name) {
    bool is_plain;
    for (;;) {
        size_t bytes = plain_bytes(name);
        put(text, name, bytes);
        name += bytes;
        if (!*name)
            return;
        put(text, "?", 1);
        name += name_character(name, &is_plain);
    }
}

/* Of a character that is not plain, of at most three bytes. A byte of no UTF-8 gets half of a pair,
 * which no UTF-8 stands for: so strings that differ stay different. */
static unsigned code_of(const char *string, size_t bytes) {
    const unsigned char *at = (const unsigned char *)string;
    return bytes == 1   ? (at[0] < 0x80 ? at[0] : 0xdc00u | at[0])
           : bytes == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu)
                        : (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
}

void text_json_inside(struct text *text, const char *string) {
    bool is_plain;
    for (size_t bytes; (bytes = name_character(string, &is_plain)); string += bytes) {
        if (*string == '"' || *string == '\\')
            text_print(text, "\\%c", *string);
        else if (is_plain)
            put(text, string, bytes);
        else
            text_print(text, "\\u%04x", code_of(string, bytes));
    }
}

void text_json_string(struct text *text, const char *string) {
    put(text, "\"", 1);
    text_json_inside(text, string);
    put(text, "\"", 1);
}
