// SPDX-License-Identifier: Apache-2.0
/* block_map.h - which block lies at an address: a table for decode.c. */
#ifndef EBB_BENCH_TOOL_BLOCK_MAP_H
#define EBB_BENCH_TOOL_BLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCK_NONE = -1 };

struct block_map {
    struct block_slot *slot;
    size_t mask, count;
};

bool block_map_make(struct block_map *map);
void block_map_free(struct block_map *map);

/* Takes out the block at `address` and returns its number; BLOCK_NONE if there is none. */
int64_t block_map_take(struct block_map *map, uint64_t address);

/* Puts a block where none is. False: no memory. */
bool block_map_put(struct block_map *map, uint64_t address, uint32_t block);

#endif
