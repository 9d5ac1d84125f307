// SPDX-License-Identifier: Apache-2.0
/*
 * chunk.h - chunks: which addresses of the range are in use.
 *
 * Two sources, one is built (Meson option `chunks`):
 *
 *     chunk_range.c      a bit for every 2 MiB of the range; the default
 *     chunk_jemalloc.c   an arena of jemalloc, for who wants one allocator below everything
 *
 * Both hand out addresses of the range only, and reuse what came back. Any thread.
 */
#ifndef EBB_POOL_CHUNK_H
#define EBB_POOL_CHUNK_H

#include "pool/range.h"

#define CHUNK_ALIGN RANGE_HUGE

/* `bytes` (a multiple of the alignment) of addresses, open, and so is what describes them; 0 on
 * failure. */
uintptr_t chunk_take(size_t bytes);

/* Returns a chunk as it was taken; its pages go back to the system at once. */
void chunk_give(uintptr_t addr, size_t bytes);

/* Takes the lock before a fork, and gives it back after. */
void chunk_fork(bool before);

/* Addresses in use, in bytes: what lies in chunks, or what the arena has in all. */
size_t chunk_bytes(void);

#endif
