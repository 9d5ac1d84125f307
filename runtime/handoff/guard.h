// SPDX-License-Identifier: Apache-2.0
/* guard.h - a lease does not end before the devices that read it are done. See guard.c. */
#ifndef EBB_HANDOFF_GUARD_H
#define EBB_HANDOFF_GUARD_H

#include "handoff/lease.h"

/* True if no device reads it any more; then it has no guards. The lease is ending: one thread. */
bool guard_is_passed(struct ebb_lease *lease);

/* Gives back what guards of all leases of a table needed; false: refused. No lease is out. */
bool guard_end(struct lease_table *table);

#endif
