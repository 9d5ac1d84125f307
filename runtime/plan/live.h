// SPDX-License-Identifier: Apache-2.0
/*
 * live.h - how many bytes are alive: when a tile is born, and at most until it dies.
 *
 *     bytes      +--------+
 *      alive     |   c    |               at the birth of b: b and a
 *           +----+-------++----+          at most while b lives: c, b and a
 *           |      b     |  d  |          at most while d lives: c, d and a
 *     +-----+------------+-----+---+
 *     |              a             |
 *     +----------------------------+--> births
 */
#ifndef EBB_PLAN_LIVE_H
#define EBB_PLAN_LIVE_H

#include "plan/contour.h"
#include "plan/skyline.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes alive when each tile is born, its own among them. False: more than EBB_SIZE_MAX are. */
bool live_fill(uint64_t *live, const struct tile *tiles, uint32_t count);

/* Replaces each by the most that are alive until the tile dies. O(count log count). */
void live_to_most(uint64_t *live, const struct tile *tiles, uint32_t count, struct low *stack);

#endif
