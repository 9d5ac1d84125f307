// SPDX-License-Identifier: Apache-2.0
/*
 * name.h - the names of regions, pools and sites: bytes that a caller chose, mostly UTF-8.
 */
#ifndef EBB_BASE_NAME_H
#define EBB_BASE_NAME_H

#include <stddef.h>

/* Bytes of the UTF-8 sequence that starts here; 0 if none does. */
size_t name_utf8_bytes(const char *string);

/* Copies what fits into `room` bytes, the end included, and cuts between two characters. */
void name_copy(char *to, size_t room, const char *name);

#endif
