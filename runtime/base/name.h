// SPDX-License-Identifier: Apache-2.0
/*
 * name.h - the names of regions, pools and sites: bytes that a caller chose, usually UTF-8.
 */
#ifndef EBB_BASE_NAME_H
#define EBB_BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 sequence that starts here; 0 if none does. */
size_t name_utf8_bytes(const char *string);

/* Bytes of the character that starts here, 1 if it is not UTF-8; 0 at the end of the string. It is
 * plain if it can be printed within a line: UTF-8, and no control character, line or paragraph
 * separator, or character that changes the direction of the text behind it. */
size_t name_character(const char *string, bool *is_plain);

/* Each character that is not plain becomes a "?", in place; the string may get shorter. */
void name_make_plain(char *string);

/* Copies as much as fits into `room` bytes, terminated, and never cuts a character in two. */
void name_copy(char *to, size_t room, const char *name);

#endif
