// SPDX-License-Identifier: Apache-2.0
/* relink.h - a large block goes to a region above where it lies: no byte moves (see relink.c). */
#ifndef EBB_REGION_RELINK_H
#define EBB_REGION_RELINK_H

#include "region/region.h"

/* The block `old` of the source is the target's from here on, with the new entry `entry` of that.
 * Who calls has checked that it may be. Returns the bytes that are pinned at once; of others it is
 * known when the source closes. */
size_t relink_block(struct region *source, struct region *target, struct ebb_piece *old,
                    struct ebb_piece *entry);

/* A departed block is released before its host closes: it becomes an entry of the host again. */
void relink_return(struct region *owner, struct ebb_piece *block);

#endif
