// SPDX-License-Identifier: Apache-2.0
/*
 * quarantine.h - blocks that the program has freed and that wait before they are used again.
 *
 *     free -> | newest ... blocks, in the order they came ... oldest | -> looked at -> heap below
 *
 * A block that comes is filled, and its whole pages are closed: to touch them faults. A write to
 * the rest is noticed when the block leaves, which ends the process (misuse.h). When a scope ends
 * its blocks leave at once if nothing else is alive in their tray, which is closed instead
 * (closed.h); beside survivors they wait on.
 */
#ifndef EBB_MALLOC_QUARANTINE_H
#define EBB_MALLOC_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>

/* The block, of so many bytes, whose seal says by now that it is freed. It waits; one that needs
 * too much memory for that leaves at once. */
void quarantine_take(char *block, size_t bytes);

/* Whatever can leave does, for there is no memory. False: nothing could. */
bool quarantine_empty(void);

/* A scope has ended and its trays are sealed: releases blocks in these, and in trays sealed before,
 * wherever nothing else is alive in the tray. */
void quarantine_release_sealed(void);

/* Bytes that are closed but that the general heap counts. */
struct quarantine_closed {
    size_t blocks; /* of blocks that wait, and of trays */
    size_t pages;  /* of these: without memory, which is all but the ends of blocks */
};

struct quarantine_closed quarantine_read_closed(void);

/* The locks of the quarantine and of closed trays before a fork, and after. */
void quarantine_fork(bool before);

#endif
