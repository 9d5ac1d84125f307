// SPDX-License-Identifier: Apache-2.0
/*
 * windows.h - windows of the small lane, and the room in one of them that blocks are bumped in.
 *
 * A window is a block of the large lane, 4 to 128 KiB. When the room at the cursor is used up, more
 * is looked for: the present window again, if all in it was released, an empty window that was
 * kept, a hole between live blocks, a new window. So a step that releases what it no longer needs
 * stays small, and one that does not pays nothing for the possibility.
 *
 *     window   | live | released | live | pad | released        | live | filler |
 *     starts    n+1    R|n+1      n+1    0     R|n+1             n+1    R|n+1
 *                                       \_______ a hole ________/
 *
 * A window whose last block is released goes back to the large lane, but for one that is kept.
 *
 * Padding counts as used until a hole takes it in or the window is empty. That is too long where a
 * limit may refuse what it is in the way of: a metered region is charged with none, and counts it
 * by itself, so that blocks lie where they do elsewhere.
 */
#ifndef EBB_REGION_WINDOWS_H
#define EBB_REGION_WINDOWS_H

#include "region/region.h"

#define WINDOWS_LEAST ((size_t)4096) /* bytes of one */

/* Room for `bytes` at the cursor; false, with an error: there is none, and nothing has changed. */
bool windows_refill(struct region *region, size_t bytes);

/* Opens or shuts the inline path, as the region's state asks. */
void windows_set_inline(struct region *region);

/* Nothing starts in [from, to) any more. */
void windows_clear(const struct ebb_piece *window, uintptr_t from, uintptr_t to);

/* Blocks go to [from, to) from now on, where nothing starts. */
void windows_go_to(struct region *region, struct ebb_piece *window, uintptr_t from, uintptr_t to);

/* Both. */
void windows_set_room(struct region *region, struct ebb_piece *window, uintptr_t from,
                      uintptr_t to);

/* The current window, which is folded, is left: there is no room until some is set. */
void windows_leave(struct region *region);

/* Gives a window back to the large lane, whatever is in it. */
void windows_give(struct region *region, struct ebb_piece *window);

/* Padding in the window that turned out to be free again: it is not counted any more. */
void windows_drop_padding(struct region *region, struct ebb_piece *window, size_t bytes);

/* What follows when a release left few blocks in a window. 0 */
int windows_settle(struct region *region, struct ebb_piece *window);

/* The lane forgets all windows; the pieces are the large lane's business. */
void windows_forget(struct region *region);

#endif
