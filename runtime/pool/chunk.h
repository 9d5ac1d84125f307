// SPDX-License-Identifier: Apache-2.0
/*
 * chunk.h - chunks of addresses from an arena of jemalloc that belongs to ebb alone.
 *
 * jemalloc manages which addresses of the range are in use: it splits, merges and reuses
 * chunks. Its extent hooks carve from the range and give pages back; they never unmap.
 */
#ifndef EBB_POOL_CHUNK_H
#define EBB_POOL_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#define CHUNK_ALIGN_LOG2 21

/* `bytes` (a multiple of the alignment) of readable, writable, zero pages; 0 on failure. */
uintptr_t chunk_take(size_t bytes);

/* Returns a chunk; its pages go back to the system at once. */
void chunk_give(uintptr_t addr);

#endif
