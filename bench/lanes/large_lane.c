// SPDX-License-Identifier: Apache-2.0
//
// large_lane.c - blocks that split when they are taken and merge when they are given back.
//
// The holes are found by holes.c. One invariant: blocks and holes cover [0, top) without gaps and
// no two holes are neighbours (large_lane_check() walks it). The space grows only at the top, and
// by no more than is missing: a hole that ends at the top is extended. Nothing is refused: callers
// give powers of two and blocks that are alive.

#include "large_lane.h"

#include <stdlib.h>

#include "buffers.h"
#include "holes.h"

void large_lane_reset(struct large_lane *lane, enum placement placement, uint64_t granule)
{
    lane->placement = placement;
    lane->granule = granule;
    lane->top = 0;
    lane->last = NO_BLOCK;
    lane->block_count = 0;
    lane->unused = NO_BLOCK;
    holes_reset(lane);
}

void large_lane_free(struct large_lane *lane)
{
    free(lane->blocks);
    free(lane->sorted);
    *lane = (struct large_lane){0};
}

uint64_t large_lane_address(const struct large_lane *lane, int32_t block)
{
    return lane->blocks[block].address;
}

static int32_t new_record(struct large_lane *lane)
{
    int32_t block = lane->unused;

    if (block != NO_BLOCK) {
        lane->unused = lane->blocks[block].behind;
        return block;
    }
    lane->blocks = buffer_reserve(lane->blocks, &lane->block_capacity, lane->block_count,
                                  sizeof *lane->blocks);
    return (int32_t)lane->block_count++;
}

static void drop_record(struct large_lane *lane, int32_t block)
{
    lane->blocks[block].behind = lane->unused;
    lane->unused = block;
}

// Puts a record for [address, address + bytes) between `before` and the block behind that.
static int32_t insert_behind(struct large_lane *lane, int32_t before, uint64_t address,
                             uint64_t bytes)
{
    int32_t block = new_record(lane);
    int32_t behind = before == NO_BLOCK ? NO_BLOCK : lane->blocks[before].behind;

    lane->blocks[block] = (struct large_block){.address = address,
                                               .bytes = bytes,
                                               .before = before,
                                               .behind = behind};
    if (before != NO_BLOCK)
        lane->blocks[before].behind = block;
    if (behind != NO_BLOCK)
        lane->blocks[behind].before = block;
    else
        lane->last = block;
    return block;
}

// Cuts `block` after `bytes`; the rest becomes a block of its own, which is returned.
static int32_t split(struct large_lane *lane, int32_t block, uint64_t bytes)
{
    struct large_block whole = lane->blocks[block];

    lane->blocks[block].bytes = bytes;
    return insert_behind(lane, block, whole.address + bytes, whole.bytes - bytes);
}

// Gives the bytes of the block behind `block` to it.
static void absorb_behind(struct large_lane *lane, int32_t block)
{
    int32_t gone = lane->blocks[block].behind;
    int32_t behind = lane->blocks[gone].behind;

    lane->blocks[block].bytes += lane->blocks[gone].bytes;
    lane->blocks[block].behind = behind;
    if (behind != NO_BLOCK)
        lane->blocks[behind].before = block;
    else
        lane->last = block;
    drop_record(lane, gone);
}

// A block at the top that holds `bytes` at a multiple of `align`, made of the hole there, if any,
// and of new space.
static int32_t grow(struct large_lane *lane, uint64_t bytes, uint64_t align)
{
    int32_t block = lane->last;
    uint64_t start;

    if (block != NO_BLOCK && lane->blocks[block].is_hole)
        holes_remove(lane, block);
    else
        block = insert_behind(lane, lane->last, lane->top, 0);
    start = lane->blocks[block].address;
    lane->top = ((start + align - 1) & ~(align - 1)) + bytes;
    lane->blocks[block].bytes = lane->top - start;
    return block;
}

// Cuts what is not needed off both ends of `block`, which is in no index.
static int32_t trim(struct large_lane *lane, int32_t block, uint64_t bytes, uint64_t align)
{
    uint64_t pad = -lane->blocks[block].address & (align - 1);

    if (pad) {
        int32_t rest = split(lane, block, pad);

        holes_add(lane, block);
        block = rest;
    }
    if (lane->blocks[block].bytes > bytes)
        holes_add(lane, split(lane, block, bytes));
    return block;
}

int32_t large_lane_allocate(struct large_lane *lane, uint64_t bytes, uint64_t align)
{
    int32_t block;

    bytes = ((bytes ? bytes : 1) + lane->granule - 1) & ~(lane->granule - 1);
    if (align < lane->granule)
        align = lane->granule;
    block = holes_find(lane, bytes, align);
    if (block == NO_BLOCK)
        block = grow(lane, bytes, align);
    else
        holes_remove(lane, block);
    return trim(lane, block, bytes, align);
}

void large_lane_release(struct large_lane *lane, int32_t block)
{
    int32_t behind = lane->blocks[block].behind;
    int32_t before = lane->blocks[block].before;

    if (behind != NO_BLOCK && lane->blocks[behind].is_hole) {
        holes_remove(lane, behind);
        absorb_behind(lane, block);
    }
    if (before != NO_BLOCK && lane->blocks[before].is_hole) {
        holes_remove(lane, before);
        absorb_behind(lane, before);
        block = before;
    }
    holes_add(lane, block);
}

static int32_t first_block(const struct large_lane *lane)
{
    int32_t block = lane->last;

    while (block != NO_BLOCK && lane->blocks[block].before != NO_BLOCK)
        block = lane->blocks[block].before;
    return block;
}

bool large_lane_check(const struct large_lane *lane)
{
    uint64_t end = 0;
    int32_t before = NO_BLOCK;

    for (int32_t i = first_block(lane); i != NO_BLOCK; before = i, i = lane->blocks[i].behind) {
        const struct large_block *block = &lane->blocks[i];

        if (block->address != end || !block->bytes || block->before != before)
            return false;
        if ((block->address | block->bytes) & (lane->granule - 1))
            return false;
        if (before != NO_BLOCK && block->is_hole && lane->blocks[before].is_hole)
            return false;
        end += block->bytes;
    }
    return before == lane->last && end == lane->top;
}
