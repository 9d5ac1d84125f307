// SPDX-License-Identifier: Apache-2.0
/*
 * name.h - the names of regions, pools and sites: bytes that a caller chose, mostly UTF-8.
 */
#ifndef EBB_BASE_NAME_H
#define EBB_BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 sequence that starts here; 0 if none does. */
size_t name_utf8_bytes(const char *string);

/* Bytes of the character that starts here, of what is no UTF-8 one; 0 at the end. It is plain if a
 * line can show it: UTF-8, no control character, no separator of lines or paragraphs, and none that
 * turns the direction of what is behind it. */
size_t name_character(const char *string, bool *is_plain);

/* Each character that is not plain becomes a "?", in place; the string may get shorter. */
void name_make_plain(char *string);

/* Copies what fits into `room` bytes, the end included, and cuts between two characters. */
void name_copy(char *to, size_t room, const char *name);

#endif
