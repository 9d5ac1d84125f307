// SPDX-License-Identifier: Apache-2.0
/* remote.h - blocks of a region that other threads have released (see remote.c). */
#ifndef EBB_REGION_REMOTE_H
#define EBB_REGION_REMOTE_H

#include "region/region.h"

/* Releases the blocks that other threads have handed in. */
void remote_drain(struct region *region);

/* True if there are any. */
static inline bool remote_waits(const struct region *region) {
    /* relaxed: who takes the list acquires it */
    return atomic_load_explicit(&region->remote, memory_order_relaxed) != NULL;
}

/* Releases them, if there are any. */
static inline void remote_look(struct region *region) {
    if (__builtin_expect(remote_waits(region), 0))
        remote_drain(region);
}

/* The same in the whole tree, whose blocks all count towards the limits above and the pool's: for a
 * refused call that has nothing half done. True: it may try again. */
bool remote_makes_room(struct region *region);

/* True if that may help a resize of a block of `owner` that was refused with the code `refusal`. */
bool remote_may_allow(const struct region *owner, int refusal);

/* hold_sweep(), also in the middle of a call that undoes what it did. */
void remote_sweep(struct region *region);

/* Drains and sweeps: before blocks are counted, or looked up for the caller. */
void remote_settle(struct region *region);

/* The same for all regions below, too: what was released there may lie in one further up. */
void remote_settle_below(struct region *region);

#endif
