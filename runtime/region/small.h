// SPDX-License-Identifier: Apache-2.0
/*
 * small.h - the small lane: what it offers, and the release of a block, which is hot.
 *
 * Counting is lazy where it can be. What was bumped inline is in lane.tally until it is folded.
 * Peaks are looked at only when the cursor has passed `calm`: a block counts for at least its
 * requested bytes and for a sixteenth block in its advance, so below that cursor no counter can
 * be above its peak. docs/design.md has the argument.
 */
#ifndef EBB_REGION_SMALL_H
#define EBB_REGION_SMALL_H

#include "region/region.h"

void *small_alloc(struct region *region, size_t bytes, size_t align);
int small_resize(struct region *region, struct ebb_piece *window, uintptr_t addr, size_t bytes);

/* Opens or shuts the inline path, as the region's state asks. */
void small_set_inline(struct region *region);

/* The lane forgets all windows; the pieces are the large lane's business. */
void small_forget(struct region *region);

/* Notes the lane's present state in a mark and pins the newest window. May want a new one. */
bool small_mark(struct region *region, struct ebb_piece *mark);

/* Ends every small block that is newer than the mark. */
void small_rewind(struct region *region, const struct ebb_piece *mark);

/* Everything behind `cursor` in the room was released: the room is as it was, if still current. */
void small_take_back(struct region *region, uintptr_t room, uintptr_t cursor);

/* Bytes that were asked for the live block at `addr`; 0 or the error of a release. */
int small_find(struct region *region, const struct ebb_piece *window, uintptr_t addr,
               size_t *requested);

/* Calls back for every live block and every granule of padding in a window. */
typedef void small_visit(void *context, uintptr_t addr, size_t bytes, bool block);
void small_each_live(const struct region *region, const struct ebb_piece *window,
                     small_visit *visit, void *context);

/* The bytes a small block takes, from the bytes that were asked. */
static inline size_t small_step(size_t bytes) {
    return (bytes + (RANGE_GRANULE - 1) + (bytes == 0)) & ~(RANGE_GRANULE - 1);
}

static inline size_t small_entry_bytes(uint16_t entry) {
    return (size_t)(entry & ~STARTS_RELEASED) - 1;
}

/* The start map's entry of an address inside the window. */
static inline uint16_t *small_entry(const struct ebb_piece *window, uintptr_t addr) {
    return starts_entries(window->window.map) + (addr - window->addr) / RANGE_GRANULE;
}

/* Blocks and bytes as a window counts them. */
#define SMALL_LIVE(blocks, bytes) ((uint64_t)(blocks) << 32 | (uint64_t)(bytes))

static inline size_t small_live_blocks(const struct ebb_piece *window) {
    return window->window.live >> 32;
}

static inline size_t small_live_bytes(const struct ebb_piece *window) {
    return (uint32_t)window->window.live;
}

/* Looks at the peaks and finds the cursor up to which they need not be looked at again. */
void small_note_peaks(struct region *region);

/* Takes what was bumped inline since the last time into the counters. */
static inline void small_fold(struct region *region) {
    uint64_t tally = region->lane.tally;
    size_t blocks = tally & 0xffff, advance = region->lane.cursor - region->folded;
    if (!advance)
        return; /* padding may be left of blocks that were popped, so the tally does not tell */
    region->counted.in += blocks;
    region->requested.in += tally >> 16;
    region->used.in += advance;
    region->window->window.live += SMALL_LIVE(blocks, advance);
    region->lane.tally = 0;
    region->folded = region->lane.cursor;
    if (region->lane.cursor > region->calm)
        small_note_peaks(region);
}

/* Says why `addr`, which lies in a window, is no live block: sets and returns the error. */
int small_no_block(const struct region *region, const struct ebb_piece *window, uintptr_t addr);

/* What follows when a release left few blocks in a window. */
void small_settle(struct region *region, struct ebb_piece *window);

/* True if the block that ends at `end` was allocated last in the present room. */
static inline bool small_is_top(const struct region *region, uintptr_t addr, uintptr_t end) {
    return end == region->lane.cursor && addr >= region->room;
}

static inline bool small_is_live(const uint16_t *entry, uintptr_t addr) {
    return (uint16_t)(*entry - 1) < STARTS_RELEASED - 1 && addr % RANGE_GRANULE == 0;
}

/*
 * The block at the top leaves: the cursor goes back. If it was not folded yet it leaves the tally
 * and is counted here instead. If it was, many small blocks may take the place of a large one, so
 * `calm` goes back as well.
 */
static inline void small_pop(struct region *region, struct ebb_piece *window, uintptr_t addr,
                             size_t bytes, size_t step) {
    region->lane.cursor = addr;
    if (addr < region->folded) {
        region->folded = addr;
        region->calm -= size_smaller(region->calm, step);
        return;
    }
    region->lane.tally -= (uint64_t)bytes << 16 | 1;
    region->counted.in++;
    region->requested.in += bytes;
    region->used.in += step;
    window->window.live += SMALL_LIVE(1, step);
}

static inline int small_release(struct region *region, struct ebb_piece *window, uintptr_t addr) {
    uint16_t *entry = small_entry(window, addr);
    if (__builtin_expect(!small_is_live(entry, addr), 0))
        return small_no_block(region, window, addr);
    if (region->lane.cursor > region->calm)
        small_fold(region);
    size_t bytes = small_entry_bytes(*entry), step = small_step(bytes);
    count_block_gone(region, bytes, step);
    count_uncharge(region, step);
    if (EBB_POISON && !region->measuring)
        poison_released(addr, step);
    if (small_is_top(region, addr, addr + step)) {
        *entry = 0;
        small_pop(region, window, addr, bytes, step);
    } else {
        *entry |= STARTS_RELEASED;
    }
    window->window.live -= SMALL_LIVE(1, step);
    if (__builtin_expect(small_live_blocks(window) <= window->window.act_blocks, 0))
        small_settle(region, window);
    return 0;
}

#endif
