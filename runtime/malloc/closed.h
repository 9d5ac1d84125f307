// SPDX-License-Identifier: Apache-2.0
/*
 * closed.h - the hardened library's empty trays, which nobody may touch.
 *
 * Any thread that uses a block after its scope has ended faults, even once the scope's thread has
 * ended, too. Closed trays have no pages. All threads share one queue of them: a closed tray may
 * need two mappings, of which a process has some 65,000, so their number must not grow with the
 * threads.
 */
#ifndef EBB_MALLOC_CLOSED_H
#define EBB_MALLOC_CLOSED_H

#include "malloc/tray.h"

#define CLOSED_MOST 4096u /* trays */

/* Closes an empty tray of any heap. If there are too many the oldest one is given back. */
void closed_give(struct tray *tray);

/* Opens the oldest one and returns it, if at least `least` are closed; NULL if not, or if the
 * system refuses. */
struct tray *closed_take(unsigned least);

/* How many there are, including those that the system refused to open again. */
unsigned closed_count(void);

/* The lock before a fork, and after. */
void closed_fork(bool before);

#endif
