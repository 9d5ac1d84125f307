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

/* So many have nothing left to give: what later ones freed a child of a fork will have to give. */
void swings_settle(uint64_t count);
void swings_fork_in_child(void);

/* False: no handler of forks knows of this process, which vfork() made, say: it may have the memory
 * of its parent. */
bool swings_knows_process(void);

/* So much is in use that there may be a fall. */
bool swings_is_high(void);

#endif
