// SPDX-License-Identifier: Apache-2.0
/*
 * small.c - the small lane: blocks up to 1 KiB, bumped in windows.
 *
 * The inline path bumps from lane.cursor to lane.limit; when that room is used up, or the path is
 * shut, the slow path here finds more (windows.h). A released block is an entry in the start map,
 * no more, until a hole takes it in or its window is begun again; the newest one moves the cursor
 * back.
 */
#include "region/small.h"
#include "base/error.h"
#include "region/count.h"
#include "region/remote.h"

#define SMALL_MOST ((size_t)16384 - 2 * RANGE_GRANULE) /* a small block can grow to this */

static inline void note_peaks(struct region *region, bool watched) {
    uint64_t used = flow_note_peak(&region->used), requested = flow_note_peak(&region->requested);
    size_t calm = size_smaller(used, requested);
    region->calm = watched ? 0 : region->lane.cursor + calm + 1;
    region->calm_blocks = (uint16_t)size_smaller(flow_note_peak(&region->counted), UINT16_MAX);
}

void small_note_peaks(struct region *region) {
    note_peaks(region, small_is_watched(region));
}

void small_fold_tracked(struct region *region) {
    if (__builtin_expect(region->track->due.on, 0))
        due_gather(region->track);
    else
        track_gather(region->track);
    small_fold_bumped(region);
    if (region->track->coarse)
        small_note_peaks(region); /* of both together: whatever leaves comes here first */
}

/* ---- blocks ---- */

static void *bump(struct region *region, uintptr_t start, size_t bytes) {
    size_t step = small_step(bytes);
    region->lane.cursor = start + step;
    *small_entry(region->window, start) = (uint16_t)(bytes + 1);
    region->lane.tally += (uint64_t)bytes << 16 | 1;
    if (!region->hollow)
        poison_opened(start, bytes);
    return (void *)start;
}

/* Asks the budgets before pages are taken for a block that they would refuse. */
static bool is_affordable(struct region *region, size_t step) {
    if (count_charge(region, step) != 0)
        return false;
    count_uncharge(region, step);
    return true;
}

/* The cursor comes to `start`, and what it passes is padding that is not charged. */
static void pass_padding(struct region *region, uintptr_t start) {
    size_t bytes = start - region->lane.cursor;
    small_fold(region);
    region->window->window.live += bytes;
    region->padding += bytes;
    region->lane.cursor = region->folded = start;
}

static inline bool has_room(const struct region *region, size_t step, size_t align) {
    return size_align(region->lane.cursor, align) + step <= region->limit;
}

/* Where the block starts, in new room if need be; 0: there is none. */
static inline uintptr_t find_start(struct region *region, size_t step, size_t align) {
    size_t slack = align > RANGE_GRANULE ? align - RANGE_GRANULE : 0;
    if (!has_room(region, step, align) && !windows_refill(region, step + slack))
        return 0;
    return size_align(region->lane.cursor, align);
}

/* Where a limit applies. What others released must not be in its way. */
static __attribute__((noinline)) void *alloc_metered(struct region *region, size_t bytes,
                                                     size_t align) {
    size_t step = small_step(bytes);
    remote_look(region);
    if (!has_room(region, step, align) && !is_affordable(region, step))
        return NULL;
    uintptr_t start = find_start(region, step, align);
    if (!start || count_charge(region, step) != 0)
        return NULL;
    pass_padding(region, start);
    return bump(region, start, bytes);
}

void *small_alloc(struct region *region, size_t bytes, size_t align) {
    if (region->metered)
        return alloc_metered(region, bytes, align);
    uintptr_t start = find_start(region, small_step(bytes), align);
    return start ? bump(region, start, bytes) : NULL;
}

/* A block is about to leave, so as much may come before a counter passes its peak. */
static void expect_room(struct region *region, uintptr_t addr, size_t bytes) {
    if (region->calm_blocks < UINT16_MAX)
        region->calm_blocks++;
    if (region->calm && !small_is_top(region, addr, addr + small_step(bytes)))
        region->calm += bytes;
}

int small_leave_top(struct region *region, struct ebb_piece *window, uintptr_t addr,
                    uint16_t *entry) {
    size_t bytes = small_entry_bytes(*entry), step = small_step(bytes);
    small_count_out(region, window, bytes, step);
    if (addr >= region->room) {
        *entry = 0;
        region->lane.cursor = region->folded = addr;
        region->calm -= size_smaller(region->calm, step - bytes); /* what comes may have less */
    } else {
        *entry |= STARTS_RELEASED; /* it ends where the room begins */
    }
    return small_look_after(region, window);
}

/* The same where more must be seen to than the counters. */
static __attribute__((noinline)) int release_closely(struct region *region,
                                                     struct ebb_piece *window, uintptr_t addr,
                                                     uint16_t *entry) {
    size_t bytes = small_entry_bytes(*entry), step = small_step(bytes);
    small_fold(region);
    expect_room(region, addr, bytes);
    count_uncharge(region, step);
    region_poison(region, addr, step);
    return small_leave(region, window, addr, entry, bytes, step);
}

int small_release_noting(struct region *region, struct ebb_piece *window, uintptr_t addr,
                         uint16_t *entry) {
    if (region->track || small_is_watched(region))
        return release_closely(region, window, addr, entry);
    size_t bytes = (size_t)*entry - 1, blocks;
    small_count_in(region, &blocks);
    note_peaks(region, false);
    expect_room(region, addr, bytes);
    return small_leave(region, window, addr, entry, bytes, small_step(bytes));
}

int small_no_block(const struct region *region, const struct ebb_piece *window, uintptr_t addr) {
    bool room = window == region->window && addr >= region->lane.cursor && addr < region->limit;
    uint16_t entry = *small_entry(window, addr);
    if (addr % RANGE_GRANULE == 0 && (room || entry & STARTS_RELEASED))
        return error_set(EBB_E_RELEASED, "block %p of region '%s' was released before",
                         (void *)addr, region->name);
    return error_set(EBB_E_INTERIOR, "%p is inside region '%s' but starts no block", (void *)addr,
                     region->name);
}

/* The entry of the live block at `addr`, or NULL with an error. Room has no entries. */
static uint16_t *live_entry(const struct region *region, const struct ebb_piece *window,
                            uintptr_t addr) {
    uint16_t *entry = small_entry(window, addr);
    if (small_is_live(entry, addr))
        return entry;
    small_no_block(region, window, addr);
    return NULL;
}

/* A block changes its size, and with it its padding, by less than a granule: that much more may
 * have come than the cursor tells. */
static void expect_padding(struct region *region) {
    region->calm -= size_smaller(region->calm, RANGE_GRANULE);
}

/* Grows or shrinks the last block of the room by moving the cursor. */
static int move_top(struct region *region, struct ebb_piece *window, uintptr_t addr, size_t old,
                    size_t bytes) {
    size_t step = small_step(bytes), old_step = small_step(old);
    if (step > region->limit - addr)
        return error_set(EBB_E_NO_ROOM, "block %p: %zu bytes asked, %zu are free behind it",
                         (void *)addr, bytes, (size_t)(region->limit - addr));
    if (step > old_step && region->metered && count_charge(region, step - old_step) != 0)
        return error_latest();
    if (step < old_step)
        count_uncharge(region, old_step - step);
    expect_padding(region);
    region->lane.cursor = region->folded = addr + step;
    flow_change(&region->requested, old, bytes);
    flow_change(&region->used, old_step, step);
    window->window.live += step - old_step;
    return 0;
}

/* A block inside the room gets smaller: its end becomes a released entry. */
static void shrink_inner(struct region *region, struct ebb_piece *window, uintptr_t addr,
                         size_t old, size_t bytes) {
    size_t step = small_step(bytes), rest = small_step(old) - step;
    expect_padding(region);
    flow_change(&region->requested, old, bytes);
    if (!rest)
        return;
    flow_leave(&region->used, rest);
    window->window.live -= rest;
    count_uncharge(region, rest);
    *small_entry(window, addr + step) = (uint16_t)(STARTS_RELEASED | (rest + 1));
}

int small_resize(struct region *region, struct ebb_piece *window, uintptr_t addr, size_t bytes) {
    uint16_t *entry = live_entry(region, window, addr);
    if (!entry)
        return error_latest();
    size_t old = small_entry_bytes(*entry), old_step = small_step(old), step = small_step(bytes);
    bool top = small_is_top(region, addr, addr + old_step);
    if (bytes > SMALL_MOST)
        return error_set(EBB_E_NO_ROOM, "block %p of the small lane cannot grow to %zu bytes",
                         (void *)addr, bytes);
    if (step > old_step && !top)
        return error_set(EBB_E_NO_ROOM, "block %p is not the last one: %zu bytes stay %zu",
                         (void *)addr, bytes, old);
    small_fold(region);
    if (top) {
        int result = move_top(region, window, addr, old, bytes);
        if (result)
            return result;
    } else {
        shrink_inner(region, window, addr, old, bytes);
    }
    *entry = (uint16_t)(bytes + 1);
    if (!region->hollow) {
        poison_unused(addr, old_step);
        poison_opened(addr, bytes);
    }
    return 0;
}

int small_find(struct region *region, const struct ebb_piece *window, uintptr_t addr,
               size_t *requested) {
    const uint16_t *entry = live_entry(region, window, addr);
    if (!entry)
        return error_latest();
    *requested = small_entry_bytes(*entry);
    return 0;
}
