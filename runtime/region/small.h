// SPDX-License-Identifier: Apache-2.0
/*
 * small.h - the small lane: what it offers, and the release of a block, which is hot.
 *
 * Counting is lazy where it can be. What was bumped inline is in lane.tally until it is folded.
 * Peaks are looked at only when the cursor has reached `calm` or the tally has more than
 * `calm_blocks` blocks: a block counts for at least its requested bytes in its advance, so until
 * then no counter can be above its peak. docs/design.md has the argument. Where every block must
 * be seen (budgets, sites, checked builds, steps that are recorded or follow a plan which is not
 * coarse) `calm` is 0.
 */
#ifndef EBB_REGION_SMALL_H
#define EBB_REGION_SMALL_H

#include "region/track.h"
#include "region/windows.h"

void *small_alloc(struct region *region, size_t bytes, size_t align);
int small_resize(struct region *region, struct ebb_piece *window, uintptr_t addr, size_t bytes);

/* Notes the lane's present state in a new mark, whose flag is not set, and pins the newest window.
 * The mark goes, once all that are newer are gone. */
void small_mark(struct region *region, struct ebb_piece *mark);
void small_unmark(const struct ebb_piece *mark);

/* Ends every small block that is newer than the mark. */
void small_rewind(struct region *region, const struct ebb_piece *mark);

/* Everything behind `cursor` in room number `which` was released: that is as it was, if it is still
 * the current one. A window that was begun again is another, where a block may lie across it. */
void small_take_back(struct region *region, uint32_t which, uintptr_t cursor);

/* Bytes that were asked for the live block at `addr`; 0 or the error of a release. */
int small_find(struct region *region, const struct ebb_piece *window, uintptr_t addr,
               size_t *requested);

/* Calls back for every live block and every granule of padding in a window. */
typedef void small_visit(void *context, uintptr_t addr, size_t bytes, bool block);
void small_each_live(const struct region *region, const struct ebb_piece *window,
                     small_visit *visit, void *context);

/* True if every block must be seen when it leaves. */
static inline bool small_is_watched(const struct region *region) {
    return region->metered || track_watches(region->track) || EBB_POISON;
}

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

/* Blocks that came and left since the last time: no counter was any higher for them. */
static inline void small_fold_popped(struct region *region) {
    flow_pass(&region->counted, region->popped.blocks);
    flow_pass(&region->requested, region->popped.requested);
    flow_pass(&region->used, region->popped.used);
    region->popped = (struct popped){0};
}

/* What was bumped goes into the counters; how many blocks. False: nothing was. */
static inline bool small_count_in(struct region *region, size_t *count) {
    size_t advance = region->lane.cursor - region->folded;
    if (region->popped.blocks)
        small_fold_popped(region);
    if (!advance)
        return false; /* padding may be left of popped blocks, so the tally does not tell */
    uint64_t tally = region->lane.tally;
    size_t blocks = tally & 0xffff;
    flow_bring(&region->counted, blocks);
    flow_bring(&region->requested, tally >> 16);
    flow_bring(&region->used, advance);
    region->window->window.live += SMALL_LIVE(blocks, advance);
    region->lane.tally = 0;
    region->folded = region->lane.cursor;
    *count = blocks;
    return true;
}

static inline void small_fold_bumped(struct region *region) {
    size_t blocks;
    if (!((region->lane.cursor - region->folded) | region->popped.blocks))
        return; /* so it is where blocks are large */
    if (!small_count_in(region, &blocks))
        return;
    if (region->lane.cursor >= region->calm || blocks > region->calm_blocks)
        small_note_peaks(region);
    else
        region->calm_blocks = (uint16_t)(region->calm_blocks - blocks);
}

/* The same of a region that follows a plan, or is recorded. */
void small_fold_tracked(struct region *region);

/* Takes what was bumped and served inline since the last time into the counters. */
static inline void small_fold(struct region *region) {
    if (region->track)
        small_fold_tracked(region);
    else
        small_fold_bumped(region);
}

/* True if a counter may have passed its peak since the tally was folded. */
static inline bool small_may_peak(const struct region *region) {
    return region->lane.cursor >= region->calm ||
           (uint16_t)region->lane.tally > region->calm_blocks;
}

/* Says why `addr`, which lies in a window, is no live block: sets and returns the error. */
int small_no_block(const struct region *region, const struct ebb_piece *window, uintptr_t addr);

/* Releases where something must be noted first; 0 or an error. */
int small_release_noting(struct region *region, struct ebb_piece *window, uintptr_t addr,
                         uint16_t *entry);

/* True if the block that ends at `end` was allocated last in the present room. */
static inline bool small_is_top(const struct region *region, uintptr_t addr, uintptr_t end) {
    return end == region->lane.cursor && addr >= region->room;
}

/* True if a live block starts where the entry is. */
static inline bool small_says_live(uint16_t entry) {
    return (uint16_t)(entry - 1) < STARTS_RELEASED - 1;
}

static inline bool small_is_live(const uint16_t *entry, uintptr_t addr) {
    return small_says_live(*entry) && addr % RANGE_GRANULE == 0;
}

/* What a block takes with it out of its window and the counters. */
static inline void small_count_out(struct region *region, struct ebb_piece *window, size_t bytes,
                                   size_t step) {
    flow_leave(&region->counted, 1);
    flow_leave(&region->requested, bytes);
    flow_leave(&region->used, step);
    window->window.live -= SMALL_LIVE(1, step);
}

/* What follows when a block left its window. 0 */
static inline int small_look_after(struct region *region, struct ebb_piece *window) {
    bool few = small_live_blocks(window) <= window->window.act_blocks;
    return few ? windows_settle(region, window) : 0;
}

/* A block leaves that ends where the cursor is. */
int small_leave_top(struct region *region, struct ebb_piece *window, uintptr_t addr,
                    uint16_t *entry);

/* A block that is known to be live leaves. */
static inline int small_leave(struct region *region, struct ebb_piece *window, uintptr_t addr,
                              uint16_t *entry, size_t bytes, size_t step) {
    if (addr + step == region->lane.cursor)
        return small_leave_top(region, window, addr, entry);
    small_count_out(region, window, bytes, step);
    *entry |= STARTS_RELEASED;
    return small_look_after(region, window);
}

/*
 * A live block ends. What was bumped since the last fold may stay in the tally while no counter can
 * have passed its peak: then folding later comes to the same. Until then counters of blocks that
 * left may be ahead of those that came, which nobody sees, because who reads folds first.
 *
 * The newest block, not folded yet, leaves the room and the tally, as if it had never been there:
 * its window and the counters of what is live do not know it. What came and left is summed up.
 */
static inline int small_end(struct region *region, struct ebb_piece *window, uintptr_t addr,
                            uint16_t *entry, size_t bytes) {
    size_t step = small_step(bytes);
    if (__builtin_expect(small_may_peak(region), 0))
        return small_release_noting(region, window, addr, entry);
    if (addr + step != region->lane.cursor || addr < region->folded)
        return small_leave(region, window, addr, entry, bytes, step);
    *entry = 0;
    region->lane.cursor = addr;
    region->lane.tally -= (uint64_t)bytes << 16 | 1;
    region->popped.blocks++;
    region->popped.requested += bytes;
    region->popped.used += step;
    return 0;
}

static inline int small_release(struct region *region, struct ebb_piece *window, uintptr_t addr) {
    uint16_t *entry = small_entry(window, addr);
    if (!small_is_live(entry, addr))
        return small_no_block(region, window, addr);
    return small_end(region, window, addr, entry, small_entry_bytes(*entry));
}

/* Bytes that were asked for the live block at `addr` if the piece, which block_at names there, is
 * of the region; 0 if there is no such block. Nor is one that a plan has served malloc(), of which
 * any thread may ask: to know it settles what the region's thread is at work with. */
static inline size_t block_peek(const struct region *region, const struct ebb_piece *piece,
                                uintptr_t addr) {
    uint64_t key = piece_key(piece);
    if (key == region->block_key)
        return piece->addr == addr ? piece->block.requested : 0;
    if (!piece_covers(piece, addr))
        return 0;
    if (key == region->window_key) {
        const uint16_t *entry = small_entry(piece, addr);
        return small_is_live(entry, addr) ? small_entry_bytes(*entry) : 0;
    }
    if (key != region->arena_key || region->inner)
        return 0;
    const struct track_slot *slot = track_find(region_track(region), addr);
    return slot ? slot->bytes : 0;
}

/* True if the inline path has room for a block at `start`; it never has while it is shut. */
static inline bool small_fits(const struct region *region, uintptr_t start, size_t bytes) {
    return start + bytes <= region->lane.limit;
}

/* A block that there is room for, as the inline path of ebb/region.h makes it. */
static inline void small_bump(struct region *region, uintptr_t start, size_t bytes) {
    region->lane.cursor = size_align(start + bytes, RANGE_GRANULE);
    *(uint16_t *)(region->lane.start_map + (start >> 3)) = (uint16_t)(bytes + 1);
    region->lane.tally += (uint64_t)bytes << 16 | 1;
}

/* The block that is due, as the inline path takes it; NULL: it is another one. */
static inline void *block_due(struct region *region, size_t bytes, size_t align) {
    const struct ebb_due *due = region->lane.due;
    if (due->request != (align << 32 | bytes) || !align || (bytes >> 32 | align >> 32) != 0)
        return NULL;
    region->lane.due = due + 1;
    return (void *)due->addr;
}

/* True if such a request is for a window. */
static inline bool small_suits(size_t bytes, size_t align) {
    return bytes <= EBB_SMALL_MAX_BYTES && align <= EBB_SMALL_MAX_ALIGN;
}

/* A block as the inline paths make it: the one that is due, of the plan's next slot, or bumped.
 * NULL: that is not so simple. */
static inline void *block_quickly(struct region *region, size_t bytes, size_t align) {
    void *due = block_due(region, bytes, align);
    if (due)
        return due;
    uintptr_t start = size_align(region->lane.cursor, align);
    if (region->track && track_fits(region->track, bytes, align))
        return track_serve(region->track, bytes);
    if (!bytes || bytes > EBB_SMALL_MAX_BYTES || align > EBB_SMALL_MAX_ALIGN ||
        !small_fits(region, start, bytes))
        return NULL;
    small_bump(region, start, bytes);
    return (void *)start;
}

#endif
