// SPDX-License-Identifier: Apache-2.0
/*
 * holes.h - holes of the small lane: room between live blocks of windows, left by releases.
 *
 * A window enters the list of those with holes once half of its blocks are gone: sooner, more live
 * blocks are stepped over than room is found. It is looked through once, from start to end; then it
 * leaves the list until half of what still lives there is gone, too.
 */
#ifndef EBB_REGION_HOLES_H
#define EBB_REGION_HOLES_H

#include "region/region.h"

/* Released blocks and padding between two live blocks. */
struct hole {
    uintptr_t from, to;
    size_t padding;
};

/* The window, which is not current, is to be looked through; or not any more. */
void holes_enter(struct region *region, struct ebb_piece *window);
void holes_leave(struct region *region, struct ebb_piece *window);

/* When a window that is not current should be looked at again: half of it is gone. */
void holes_await(struct ebb_piece *window);

/* A window with a hole for at least `bytes`, or NULL. */
struct ebb_piece *holes_find(struct region *region, size_t bytes, struct hole *hole);

#endif
