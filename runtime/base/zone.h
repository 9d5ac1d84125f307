// SPDX-License-Identifier: Apache-2.0
/*
 * zone.h - an arena of jemalloc whose addresses all lie in one reserved zone.
 *
 * jemalloc splits, merges and reuses what it was given; it gives pages back to the system, never
 * addresses. So one comparison tells whether a pointer lies in the zone. Invariants: what is
 * carved, from the zone's start on, is open; every address that the arena hands out lies in the
 * zone, except that jemalloc may serve a thread that is ending from another arena: callers check.
 */
#ifndef EBB_BASE_ZONE_H
#define EBB_BASE_ZONE_H

#include "base/jemalloc.h"

#include <stdatomic.h>
#include <stdint.h>

struct zone {
    extent_hooks_t hooks; /* first: jemalloc hands it to them */
    uintptr_t base;
    size_t bytes;
    atomic_size_t carved; /* bytes handed to the arena or skipped */
    unsigned arena;       /* its number */
};

/* Makes the arena of a closed zone whose base and bytes are set. It opens what it takes, and takes
 * its own bookkeeping from the zone, too. False: it could not be made. */
bool zone_open(struct zone *zone);

#endif
