// SPDX-License-Identifier: Apache-2.0
/*
 * warm.h - of the places that a buffer could have, the one that was in use last.
 *
 * The height of a plan does not say which of several free places a buffer has. To a cache it makes
 * a difference: what another buffer left just before is in it still.
 *
 *     offset ^  +- a -+  +- c ---+              +- a -+ +- d -+
 *            |  +-----+  +-------+              +-----+ +-----+
 *            |  +- b ----+- d -+        ->      +- b ----+- c ---+
 *            |  +--------+-----+                +--------+-------+
 *            +-------------------> time
 *
 * From the birth of c on, its place and that of b are exchanged, with all that lies in them: b was
 * released after a.
 */
#ifndef EBB_PLAN_WARM_H
#define EBB_PLAN_WARM_H

#include "plan/order.h"
#include "plan/skyline.h"

/*
 * Moves tiles within a plan, of 16 KiB and more; smaller ones are near each other anyway. A valid
 * plan stays valid and gets no higher. `offsets` are those of buffers, by number; `list` and
 * `scratch` are as long as the tiles. 0.1 us a tile: at most it looks at 16 places for one, and at
 * 32 tiles for each tile on average.
 */
void warm_places(const struct tile *tiles, uint32_t count, uint64_t *offsets,
                 struct ordered *list, struct ordered *scratch);

#endif
