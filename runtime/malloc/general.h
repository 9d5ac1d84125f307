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

/* Once, when the library is loaded: sets the option for oversized blocks in jemalloc's first arena,
 * the first thread's, which is made before the options are read. */
void general_begin(void);

/* Reads a number of the heap by its name, such as "stats.allocated"; 0 if there is none. */
size_t general_read(const char *name);

/* Brings the numbers that general_read() gives up to date. */
void general_refresh(void);

/* Bytes of pages that went back to the system so far, those of trays too, as of the last
 * general_refresh(). */
uint64_t general_given_back(void);

/* Gives all free pages back to the system, those of trays too. */
void general_trim(void);

/* Gives back pages that have been free for long, by their age. */
#define GENERAL_AGES_MS 10000u /* after so long all are gone */
void general_decay(void);

#endif
