// SPDX-License-Identifier: Apache-2.0
//
// holes.c - finds the hole for a request: a sorted array or two-level bins.
//
// Best and first fit keep the holes in an array, sorted by (bytes, address) or by address. TLSF
// keeps them in bins of a size range each, newest first, and a map of the bins that are not empty;
// it rounds a request up so that any hole of a bin fits, and looks through the request's own bin
// when nothing larger is there. One invariant: a hole is in the index once, and only holes are.

#include "holes.h"

#include <string.h>

#include "buffers.h"

enum { TLSF_UNIT_LOG2 = 6 }; // bins count in units of 64 bytes

static bool is_tlsf(const struct large_lane *lane)
{
    return lane->placement == PLACE_TLSF16 || lane->placement == PLACE_TLSF32;
}

static bool fits(const struct large_lane *lane, int32_t block, uint64_t bytes, uint64_t align)
{
    const struct large_block *hole = &lane->blocks[block];
    uint64_t pad = -hole->address & (align - 1);

    return pad <= hole->bytes && hole->bytes - pad >= bytes;
}

// ---- two-level bins

static int second_log2(const struct large_lane *lane)
{
    return lane->placement == PLACE_TLSF16 ? 4 : 5;
}

static int floor_log2(uint64_t value)
{
    return 63 - __builtin_clzll(value);
}

// Below 2^second units each unit count has a bin; above, each power of two has 2^second bins.
static int bin_of(const struct large_lane *lane, uint64_t bytes)
{
    uint64_t units = bytes >> TLSF_UNIT_LOG2;
    int second = second_log2(lane), first;

    if (units < (UINT64_C(1) << second))
        return (int)units;
    first = floor_log2(units);
    return ((first - second + 1) << second) +
           (int)(units >> (first - second) & ((UINT64_C(1) << second) - 1));
}

// The smallest size that starts a bin and is at least `bytes`, less one unit at most.
static uint64_t round_to_bin(const struct large_lane *lane, uint64_t bytes)
{
    uint64_t units = bytes >> TLSF_UNIT_LOG2;
    int second = second_log2(lane);

    if (units < (UINT64_C(1) << second))
        return bytes;
    return bytes + (UINT64_C(1) << (floor_log2(units) - second + TLSF_UNIT_LOG2)) - 1;
}

static void bin_add(struct large_lane *lane, int32_t block)
{
    struct large_block *hole = &lane->blocks[block];
    int bin = bin_of(lane, hole->bytes);

    hole->bin_before = NO_BLOCK;
    hole->bin_behind = lane->bins[bin];
    if (hole->bin_behind != NO_BLOCK)
        lane->blocks[hole->bin_behind].bin_before = block;
    lane->bins[bin] = block;
    lane->bin_map[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(struct large_lane *lane, int32_t block)
{
    const struct large_block *hole = &lane->blocks[block];
    int bin = bin_of(lane, hole->bytes);

    if (hole->bin_behind != NO_BLOCK)
        lane->blocks[hole->bin_behind].bin_before = hole->bin_before;
    if (hole->bin_before != NO_BLOCK)
        lane->blocks[hole->bin_before].bin_behind = hole->bin_behind;
    else
        lane->bins[bin] = hole->bin_behind;
    if (lane->bins[bin] == NO_BLOCK)
        lane->bin_map[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
}

static int32_t first_hole_from(const struct large_lane *lane, int bin)
{
    uint64_t mask = ~UINT64_C(0) << (bin % 64);

    for (int word = bin / 64; word < TLSF_BINS / 64; word++, mask = ~UINT64_C(0)) {
        uint64_t map = lane->bin_map[word] & mask;

        if (map)
            return lane->bins[word * 64 + __builtin_ctzll(map)];
    }
    return NO_BLOCK;
}

static int32_t find_binned(const struct large_lane *lane, uint64_t bytes, uint64_t align)
{
    uint64_t padded = bytes + align - lane->granule;
    int32_t block = first_hole_from(lane, bin_of(lane, round_to_bin(lane, padded)));

    if (block != NO_BLOCK)
        return block;
    block = lane->bins[bin_of(lane, bytes)];
    while (block != NO_BLOCK && !fits(lane, block, bytes, align))
        block = lane->blocks[block].bin_behind;
    return block;
}

// ---- sorted array

static bool sorts_before(const struct large_lane *lane, const struct large_block *a, uint64_t bytes,
                         uint64_t address)
{
    if (lane->placement == PLACE_BEST && a->bytes != bytes)
        return a->bytes < bytes;
    return a->address < address;
}

// Where a hole of this size and address stands, or would stand.
static size_t position(const struct large_lane *lane, uint64_t bytes, uint64_t address)
{
    size_t low = 0, high = lane->hole_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (sorts_before(lane, &lane->blocks[lane->sorted[middle]], bytes, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void sorted_add(struct large_lane *lane, int32_t block)
{
    const struct large_block *hole = &lane->blocks[block];
    size_t at = position(lane, hole->bytes, hole->address);

    lane->sorted = buffer_reserve(lane->sorted, &lane->sorted_capacity, lane->hole_count,
                                  sizeof *lane->sorted);
    memmove(lane->sorted + at + 1, lane->sorted + at,
            (lane->hole_count - at) * sizeof *lane->sorted);
    lane->sorted[at] = block;
    lane->hole_count++;
}

static void sorted_remove(struct large_lane *lane, int32_t block)
{
    const struct large_block *hole = &lane->blocks[block];
    size_t at = position(lane, hole->bytes, hole->address);

    lane->hole_count--;
    memmove(lane->sorted + at, lane->sorted + at + 1,
            (lane->hole_count - at) * sizeof *lane->sorted);
}

static int32_t find_sorted(const struct large_lane *lane, uint64_t bytes, uint64_t align)
{
    size_t i = lane->placement == PLACE_BEST ? position(lane, bytes, 0) : 0;

    for (; i < lane->hole_count; i++)
        if (fits(lane, lane->sorted[i], bytes, align))
            return lane->sorted[i];
    return NO_BLOCK;
}

// ---- either

void holes_reset(struct large_lane *lane)
{
    lane->hole_count = 0;
    memset(lane->bin_map, 0, sizeof lane->bin_map);
    for (int i = 0; i < TLSF_BINS; i++)
        lane->bins[i] = NO_BLOCK;
}

void holes_add(struct large_lane *lane, int32_t block)
{
    lane->blocks[block].is_hole = true;
    if (is_tlsf(lane))
        bin_add(lane, block);
    else
        sorted_add(lane, block);
}

void holes_remove(struct large_lane *lane, int32_t block)
{
    lane->blocks[block].is_hole = false;
    if (is_tlsf(lane))
        bin_remove(lane, block);
    else
        sorted_remove(lane, block);
}

int32_t holes_find(const struct large_lane *lane, uint64_t bytes, uint64_t align)
{
    return is_tlsf(lane) ? find_binned(lane, bytes, align) : find_sorted(lane, bytes, align);
}
