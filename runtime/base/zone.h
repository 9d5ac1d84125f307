// SPDX-License-Identifier: Apache-2.0
/*
 * zone.h - an arena of jemalloc that takes addresses from one reserved zone only.
 *
 * jemalloc splits, merges and reuses what it was given; it gives pages back to the system, never
 * addresses. So whether a pointer is of the zone is one comparison. Invariants: what is carved, all
 * from the zone's start on, can be touched; every address that the arena hands out lies there, but
 * to a thread that is ending, which jemalloc may serve from another arena: who takes looks.
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
    atomic_size_t carved; /* bytes that the arena has, and skipped */
    unsigned arena;       /* its number */
};

/* Makes the arena of a zone whose base and bytes are set and that is closed; it takes what it needs
 * for itself from there, too, and opens what it takes. False: none could be made. */
bool zone_open(struct zone *zone);

#endif
