// SPDX-License-Identifier: Apache-2.0
/*
 * general.h - the general heap: jemalloc, in a copy of our own.
 *
 * What is allocated outside of scopes lies here, and so does what this layer keeps for itself.
 */
#ifndef EBB_MALLOC_GENERAL_H
#define EBB_MALLOC_GENERAL_H

#include "base/jemalloc.h"

#include <stdint.h>

/* Once, as the library is loaded: jemalloc makes its first arena, which is the first thread's,
 * before it has read how large blocks are kept. */
void general_begin(void);

/* Reads a number of the heap by its name, such as "stats.allocated"; 0 if there is none. */
size_t general_read(const char *name);

/* Numbers that general_read() gives are of now. */
void general_refresh(void);

/* Bytes of pages, those of trays too, that went back to the system so far, as of then. */
uint64_t general_given_back(void);

/* All free pages go back to the system, those of trays too. */
void general_trim(void);

/* Those that have been free for long go, as far as their age says. */
#define GENERAL_AGES_MS 10000u /* after so long all are gone */
void general_decay(void);

#endif
