// SPDX-License-Identifier: Apache-2.0
/*
 * block_map.c - open addressing with linear probing.
 *
 * Invariant: between the home of an entry and its slot no slot is free. Taking one out moves later
 * ones back, so that there are no marks of what was deleted. At most half of the slots are taken.
 */
#include "block_map.h"

#include <stdlib.h>

struct block_slot {
    uint64_t address; /* 0: free */
    uint32_t block;
};

enum { SLOTS_FIRST = 1 << 16 };

bool block_map_make(struct block_map *map) {
    map->slot = calloc(SLOTS_FIRST, sizeof *map->slot);
    map->mask = SLOTS_FIRST - 1;
    map->count = 0;
    return map->slot != NULL;
}

void block_map_free(struct block_map *map) {
    free(map->slot);
    map->slot = NULL;
}

static size_t home_of(const struct block_map *map, uint64_t address) {
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & map->mask;
}

static void insert(struct block_map *map, uint64_t address, uint32_t block) {
    size_t at = home_of(map, address);
    while (map->slot[at].address)
        at = (at + 1) & map->mask;
    map->slot[at] = (struct block_slot){address, block};
    map->count++;
}

static bool grow(struct block_map *map) {
    struct block_map larger = {.mask = 2 * map->mask + 1};
    larger.slot = calloc(larger.mask + 1, sizeof *larger.slot);
    if (!larger.slot)
        return false;
    for (size_t i = 0; i <= map->mask; i++)
        if (map->slot[i].address)
            insert(&larger, map->slot[i].address, map->slot[i].block);
    free(map->slot);
    *map = larger;
    return true;
}

bool block_map_put(struct block_map *map, uint64_t address, uint32_t block) {
    if (map->count > map->mask / 2 && !grow(map))
        return false;
    insert(map, address, block);
    return true;
}

/* Closes the gap at `at`: whatever could lie there without leaving its chain moves in. */
static void close_gap(struct block_map *map, size_t at) {
    for (size_t next = (at + 1) & map->mask; map->slot[next].address;
         next = (next + 1) & map->mask) {
        size_t home = home_of(map, map->slot[next].address);
        if (((next - home) & map->mask) < ((next - at) & map->mask))
            continue;
        map->slot[at] = map->slot[next];
        at = next;
    }
    map->slot[at].address = 0;
    map->count--;
}

int64_t block_map_take(struct block_map *map, uint64_t address) {
    size_t at = home_of(map, address);
    while (map->slot[at].address && map->slot[at].address != address)
        at = (at + 1) & map->mask;
    if (!map->slot[at].address)
        return BLOCK_NONE;
    uint32_t block = map->slot[at].block;
    close_gap(map, at);
    return block;
}
