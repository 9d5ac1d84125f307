// SPDX-License-Identifier: Apache-2.0
/*
 * block.c - the public functions on blocks: which lane, which error.
 *
 * What a pointer is, is one look-up: block_at names the piece that starts there or the window
 * around it. The entry may be stale, so the piece must agree on address, state and owner before
 * it is believed. Everything that does not agree is an error that says what the pointer is.
 */
#include "base/check.h"
#include "base/error.h"
#include "region/small.h"
#include "region/exhausted.h"

#include <string.h>

/* The real symbol behind the inline function. */
extern inline void *ebb_region_alloc(ebb_region region, size_t bytes, size_t align);

/* ---- finding ---- */

static struct ebb_piece *piece_over(const struct ebb_piece *run, uintptr_t addr) {
    struct ebb_piece *piece = run->run.first;
    while (piece && addr >= piece_end(piece))
        piece = piece->after;
    return piece;
}

/* The same in a relinked run, whose survivors are only on the region's list. */
static struct ebb_piece *survivor_over(const struct region *region, const struct ebb_piece *run,
                                       uintptr_t addr) {
    struct ebb_piece *block = region->blocks;
    while (block && (block->state != PIECE_BLOCK || block->block.run != run ||
                     addr < block->addr || addr >= piece_end(block)))
        block = block->next;
    return block;
}

static int report_inside(const struct region *region, const struct ebb_piece *run,
                         uintptr_t addr) {
    const struct ebb_piece *piece = piece_over(run, addr);
    if (run->flag)
        piece = survivor_over(region, run, addr);
    if (piece && piece->state == PIECE_BLOCK && piece->owner != region->owner)
        return error_set(EBB_E_FOREIGN, "%p was promoted from region '%s' to '%s'", (void *)addr,
                         region->name, region_of_piece(piece)->name);
    if (piece && (piece->state == PIECE_BLOCK || piece->state == PIECE_WINDOW))
        return error_set(EBB_E_INTERIOR, "%p is inside a block of region '%s', %zu bytes from %p",
                         (void *)addr, region->name,
                         addr - piece->addr, (void *)piece->addr);
    return error_set(EBB_E_RELEASED, "%p is in free memory of region '%s': released before",
                     (void *)addr, region->name);
}

/* Why `addr` is no live block of the region: sets and returns the error. */
static int report_no_block(const struct region *region, uintptr_t addr) {
    if (!range_holds(addr))
        return error_set(EBB_E_FOREIGN, "%p is not memory of ebb, release asked in region '%s'",
                         (void *)addr, region->name);
    const struct ebb_piece *run = range_run_at(addr);
    if (!run)
        return error_set(EBB_E_FOREIGN, "%p belongs to no open region (asked in '%s')",
                         (void *)addr, region->name);
    if (run->owner != region->owner)
        return error_set(EBB_E_FOREIGN, "%p belongs to region '%s', not to '%s'", (void *)addr,
                         region_of_piece(run)->name, region->name);
    return report_inside(region, run, addr);
}

/* The large block that starts at `addr` or the window around it, of this region; or NULL. */
static struct ebb_piece *find_piece(const struct region *region, uintptr_t addr) {
    if (!range_holds(addr))
        return NULL;
    struct ebb_piece *piece = range_block_at(addr);
    if (piece->owner != region->owner)
        return NULL;
    if (piece->state == PIECE_BLOCK)
        return piece->addr == addr ? piece : NULL;
    if (piece->state == PIECE_WINDOW)
        return addr - piece->addr < piece->bytes ? piece : NULL;
    return NULL;
}

int block_find(struct region *region, const void *address, struct ebb_piece **piece,
               size_t *requested) {
    uintptr_t addr = (uintptr_t)address;
    *piece = find_piece(region, addr);
    if (!*piece)
        return report_no_block(region, addr);
    if ((*piece)->state == PIECE_BLOCK) {
        *requested = (*piece)->block.requested;
        return 0;
    }
    return small_find(region, *piece, addr, requested);
}

/* ---- allocating ---- */

static bool is_valid_request(const struct region *region, size_t bytes, size_t align) {
    if (region->sealed) {
        error_set(EBB_E_SEALED, "region '%s' is sealed: %zu bytes refused", region->name, bytes);
        return false;
    }
    if (!size_is_power_of_two(align) || align > EBB_ALIGN_MAX) {
        error_set(EBB_E_ALIGNMENT, "alignment %zu is no power of two up to %zu", align,
                  EBB_ALIGN_MAX);
        return false;
    }
    if (bytes > EBB_SIZE_MAX - EBB_ALIGN_MAX - EBB_PAGE) {
        error_set(EBB_E_SIZE, "%zu bytes are more than half the address space", bytes);
        return false;
    }
    return true;
}

static void *allocate(struct region *region, size_t bytes, size_t align) {
    if (bytes <= EBB_SMALL_MAX_BYTES && align <= EBB_SMALL_MAX_ALIGN)
        return small_alloc(region, bytes, align);
    return large_alloc(region, bytes, align);
}

void *block_allocate(struct region *region, size_t bytes, size_t align, const void *site) {
    if (!is_valid_request(region, bytes, align))
        return NULL;
    void *block = allocate(region, bytes, align);
    if (!block)
        exhausted_report(region, bytes, align);
    else if (region->sites)
        *range_site((uintptr_t)block) = (uintptr_t)site;
    return block;
}

static void *allocate_from(ebb_region handle, size_t bytes, size_t align, const void *site) {
    struct region *region = region_find(handle);
    return region ? block_allocate(region, bytes, align, site) : NULL;
}

void *ebb_region_alloc_slow(ebb_region handle, size_t bytes, size_t align) {
    return allocate_from(handle, bytes, align, __builtin_return_address(0));
}

static void *allocate_zeroed(ebb_region handle, size_t bytes, size_t align, const void *site) {
    void *block = allocate_from(handle, bytes, align, site);
    if (block && !((struct region *)handle.lane)->measuring)
        memset(block, 0, bytes);
    return block;
}

void *ebb_region_alloc_zeroed(ebb_region handle, size_t bytes, size_t align) {
    return allocate_zeroed(handle, bytes, align, __builtin_return_address(0));
}

void *ebb_region_alloc_array(ebb_region handle, size_t count, size_t bytes, size_t align) {
    size_t total;
    if (!size_multiply(count, bytes, &total)) {
        error_set(EBB_E_SIZE, "%zu elements of %zu bytes overflow", count, bytes);
        return NULL;
    }
    return allocate_from(handle, total, align, __builtin_return_address(0));
}

/* ---- releasing and resizing ---- */

int ebb_region_release(ebb_region handle, void *block) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    if (!block)
        return 0;
    struct ebb_piece *piece = find_piece(region, (uintptr_t)block);
    if (!piece)
        return report_no_block(region, (uintptr_t)block);
    if (piece->state == PIECE_WINDOW)
        return small_release(region, piece, (uintptr_t)block);
    large_release(region, piece);
    return 0;
}

static int resize(struct region *region, void *block, size_t bytes) {
    struct ebb_piece *piece = find_piece(region, (uintptr_t)block);
    if (!piece)
        return report_no_block(region, (uintptr_t)block);
    if (piece->state == PIECE_WINDOW)
        return small_resize(region, piece, (uintptr_t)block, bytes);
    return large_resize(region, piece, bytes);
}

int ebb_region_resize(ebb_region handle, void *block, size_t bytes) {
    struct region *region = region_find(handle);
    return region ? resize(region, block, bytes) : EBB_E_STALE;
}

/* The same without an error if it cannot be: the caller has another way. */
static bool try_resize(struct region *region, void *block, size_t bytes) {
    error_mute();
    int result = resize(region, block, bytes);
    error_unmute();
    return result == 0;
}

void *ebb_region_realloc(ebb_region handle, void *block, size_t bytes, size_t align) {
    struct region *region = region_find(handle);
    const void *site = __builtin_return_address(0);
    struct ebb_piece *piece;
    size_t old;
    if (!region)
        return NULL;
    if (!block)
        return allocate_from(handle, bytes, align, site);
    if (!is_valid_request(region, bytes, align) ||
        block_find(region, block, &piece, &old) != 0)
        return NULL;
    if ((uintptr_t)block % align == 0 && try_resize(region, block, bytes))
        return block;
    void *moved = allocate_from(handle, bytes, align, site);
    if (!moved)
        return NULL;
    if (!region->measuring)
        memcpy(moved, block, size_smaller(old, bytes));
    ebb_region_release(handle, block);
    return moved;
}

size_t ebb_region_block_bytes(ebb_region handle, const void *block) {
    struct region *region = region_find(handle);
    struct ebb_piece *piece;
    size_t requested;
    if (!region || block_find(region, block, &piece, &requested) != 0)
        return 0;
    return requested;
}
