// SPDX-License-Identifier: Apache-2.0
/* utf8.c - see utf8.h. */
#include "utf8.h"

size_t utf8_character(const char *text) {
    unsigned first = (unsigned char)text[0], second = first ? (unsigned char)text[1] : 0;
    size_t bytes = first < 0x80   ? 1
                   : first < 0xc2 ? 0
                   : first < 0xe0 ? 2
                   : first < 0xf0 ? 3
                   : first < 0xf5 ? 4
                                  : 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return 0; /* longer than it need be, half of a pair, or behind the last */
    for (size_t i = 1; i < bytes; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}
