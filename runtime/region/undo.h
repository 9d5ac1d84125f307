// SPDX-License-Identifier: Apache-2.0
/* undo.h - counters of a region that a call must not have moved if it fails (see undo.c). */
#ifndef EBB_REGION_UNDO_H
#define EBB_REGION_UNDO_H

#include "region/track.h"

struct undo_part {
    struct flow counted, requested, used;
    uint64_t large_blocks;
    size_t large_used, padding;
    struct popped drained;
    size_t drained_large;
    uint32_t rooms; /* which room of small blocks it was */
    uintptr_t cursor;
    struct track_seen seen; /* while it follows a plan */
    struct track_drained drained_born;
};

struct undo {
    struct undo_part pages; /* of the region */
    struct undo_part safe;  /* if it had one */
    bool had_safe;          /* one that it gets meanwhile is left with nothing */
};

/* What the region counts now. */
void undo_remember(struct region *region, struct undo *undo);

/* What the region got since is released from here on, and goes although that is being sent. */
void undo_begin(const struct region *region);

/* Everything that the region got since is released: it counts again what it counted then, less what
 * other threads have released meanwhile. */
void undo_restore(struct region *region, const struct undo *undo);

#endif
