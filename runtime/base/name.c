// SPDX-License-Identifier: Apache-2.0
/*
 * name.c - see name.h. Any thread; cannot fail. A name that is not UTF-8 is cut at any byte.
 */
#include "base/name.h"

#include <string.h>

enum { UTF8_MOST = 4 }; /* bytes of a sequence */

size_t name_utf8_bytes(const char *string) {
    const unsigned char *at = (const unsigned char *)string;
    size_t bytes = *at < 0x80                  ? 1
                   : *at >= 0xc2 && *at < 0xe0 ? 2
                   : *at >= 0xe0 && *at < 0xf0 ? 3
                   : *at >= 0xf0 && *at < 0xf5 ? 4
                                               : 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    bool beyond = (*at == 0xed && at[1] >= 0xa0) || (*at == 0xf4 && at[1] >= 0x90);
    return overlong || beyond ? 0 : bytes;
}

/* U+0000 to U+001F, U+007F to U+009F; U+2028 to U+202E, U+2066 to U+2069. */
static bool is_plain_utf8(const unsigned char *at) {
    bool controls = at[0] < ' ' || at[0] == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
    bool separates_or_turns =
        at[0] == 0xe2 && ((at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) ||
                          (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9));
    return !controls && !separates_or_turns;
}

size_t name_character(const char *string, bool *is_plain) {
    size_t bytes = name_utf8_bytes(string);
    *is_plain = bytes && is_plain_utf8((const unsigned char *)string);
    return !*string ? 0 : bytes ? bytes : 1;
}

void name_make_plain(char *string) {
    char *to = string;
    bool is_plain;
    for (size_t bytes; (bytes = name_character(string, &is_plain)); string += bytes) {
        size_t shown = is_plain ? bytes : 1;
        memmove(to, is_plain ? string : "?", shown);
        to += shown;
    }
    *to = '\0';
}

/* The start of the character that straddles `end`; `end` itself if none does. */
static size_t between_characters(const char *name, size_t end) {
    for (size_t back = 1; back < UTF8_MOST && back <= end; back++)
        if (name_utf8_bytes(name + end - back) > back)
            return end - back;
    return end;
}

void name_copy(char *to, size_t room, const char *name) {
    size_t length = strnlen(name, room - 1);
    if (name[length])
        length = between_characters(name, length);
    memcpy(to, name, length);
    to[length] = '\0';
}
