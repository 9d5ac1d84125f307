// SPDX-License-Identifier: Apache-2.0
/*
 * wide.h - the loops of weave.c for rows that fit wide registers, where the machine has them.
 *
 * Meson picks wide_x86_64.c or wide_none.c. All rows here are row-major. In a tile, one side is a
 * block or NULL: packed rows, where the tile says.
 */
#ifndef EBB_OBJECT_WIDE_H
#define EBB_OBJECT_WIDE_H

#include "object/weave.h"

enum { WIDE_BYTES = 32 };

/* True if this machine has wide registers. */
bool wide_is_here(void);

/*
 * Moves the rows of a tile and returns how many: `bytes` is a multiple of WIDE_BYTES. To `stream`
 * is to write past the caches; then places are such multiples, too.
 */
uint64_t wide_move(const struct tile *tile, const struct block *to, const struct block *from,
                   size_t bytes, bool stream);

/* Moves all rows, of 8 bytes each, between a dense block that begins with `rank` and packed ones
 * without gaps; returns how many. Either `packs`, or unpacks. */
uint64_t wide_move_words(const struct ranks *ranks, int64_t rank, const struct block *block,
                         bool packs);

/* Moves the rows of a tile to a padded tensor and fills the rest with the pattern, in the order
 * in which all of it lies there; returns how many rows. Packed ones only if padding is on the
 * right. */
uint64_t wide_pad(const struct tile *tile, const struct block *to, const struct block *from,
                  const struct frame *frame, const unsigned char pattern[WIDE_BYTES],
                  size_t bytes, bool stream);

#endif
