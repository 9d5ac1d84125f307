// SPDX-License-Identifier: Apache-2.0
/*
 * closed.h - the hardened library's empty trays, which nobody may touch.
 *
 * Who uses a block after its scope has ended faults, whatever thread it is, and whether the scope's
 * own has ended. Closed trays have no pages. All threads have one row of them, so that mappings,
 * of which a process has some 65,000, do not grow with threads: a closed tray may need two.
 */
#ifndef EBB_MALLOC_CLOSED_H
#define EBB_MALLOC_CLOSED_H

#include "malloc/tray.h"

#define CLOSED_MOST 4096u /* trays */

/* An empty tray, of whichever heap. The oldest one goes if there are too many. */
void closed_give(struct tray *tray);

/* The oldest, open again, if at least so many are closed; else NULL, or if the system does
 * not open it. */
struct tray *closed_take(unsigned least);

/* How many there are, with those that the system did not open again. */
unsigned closed_count(void);

/* The lock before a fork, and after. */
void closed_fork(bool before);

#endif
