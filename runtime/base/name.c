// SPDX-License-Identifier: Apache-2.0
/*
 * name.c - see name.h. Any thread; cannot fail. What is no UTF-8 is cut where the room ends.
 */
#include "base/name.h"

#include <stdbool.h>
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

/* Where the character begins that has bytes on both sides of `end`; `end` if none has. */
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
