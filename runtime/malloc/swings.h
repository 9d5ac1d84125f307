// SPDX-License-Identifier: Apache-2.0
/*
 * swings.h - how far what the general heap has in use rises and falls.
 *
 * After a fall a process may rest for ever with all in memory that it had before, so that begins
 * the tender (tender.h). jemalloc tells of a thread when it has allocated, or freed, 64 KiB more:
 * malloc() and free() have no instruction more.
 */
#ifndef EBB_MALLOC_SWINGS_H
#define EBB_MALLOC_SWINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWING ((size_t)16 << 20) /* less is no fall; so much may stay in a process that rests */

/* From here on falls count, unless jemalloc is to keep what is free. When the library is loaded. */
void swings_begin(void);

/* Falls so far. */
uint64_t swings_count(void);

/* So much is in use that there may be a fall. */
bool swings_is_high(void);

#endif
