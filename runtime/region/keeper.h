// SPDX-License-Identifier: Apache-2.0
/* keeper.h - roots that have had children: what they allocate outlives steps (see keeper.c). */
#ifndef EBB_REGION_KEEPER_H
#define EBB_REGION_KEEPER_H

#include "region/region.h"

/* A step below the root has ended. */
void keeper_step_ended(struct region *keeper);

/* Gives back what is free between its blocks: all of it if `wholly`, else some, the largest pieces
 * first, and only if half of what it has is free. */
void keeper_settle(struct region *keeper, bool wholly);

/* A place joins the free piece behind it, in which nothing was put since the last look. */
void keeper_joins_idle(struct region *keeper, struct ebb_piece *piece,
                       const struct ebb_piece *after);

#endif
