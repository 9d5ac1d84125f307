// SPDX-License-Identifier: Apache-2.0
/*
 * fault.h - makes the n-th acquisition fail, once or from then on.
 *
 * Acquisitions are everything that goes through the table of runtime/base/os.h and can be
 * refused: internal ones (os.allow), addresses (reserve), protection (open, close) and giving
 * pages back (give_back). The machinery counts them from the moment it is armed.
 */
#ifndef FAILURE_FAULT_H
#define FAILURE_FAULT_H

#include <stdbool.h>

/* From now on acquisition number `nth` (from 1) fails; with `forever` all later ones too. */
void fault_arm(unsigned nth, bool forever);

/* Everything is granted again. Returns how many acquisitions were refused. */
unsigned fault_disarm(void);

/* Kinds of acquisition: those of enum os_acquisition, then the system's. */
enum fault_kind { FAULT_RESERVE = 32, FAULT_OPEN, FAULT_CLOSE, FAULT_GIVE_BACK, FAULT_KINDS };

/* Counts refusals by kind in `counts` (FAULT_KINDS of them), which children share. */
void fault_count_into(unsigned *counts);

#endif
