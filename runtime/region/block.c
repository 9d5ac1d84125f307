// SPDX-License-Identifier: Apache-2.0
/*
 * block.c - the public functions on blocks: which lane, which error.
 *
 * What a pointer is, is one look-up: block_at names the piece that starts there or the window
 * around it. The entry may be stale, so the piece must agree on address, state and owner before
 * it is believed. Everything that does not agree is an error that says what the pointer is.
 */
#include "region/block.h"
#include "base/error.h"
#include "region/exhausted.h"
#include "region/hold.h"
#include "region/large.h"
#include "region/safe.h"
#include "region/small.h"

#include <string.h>

/* The real symbols behind the inline functions. */
extern inline void *ebb_region_alloc(ebb_region region, size_t bytes, size_t align);
extern inline int ebb_region_release(ebb_region region, void *block);

#define BYTES_MOST (EBB_SIZE_MAX - EBB_ALIGN_MAX - EBB_PAGE) /* of a block */

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
    const struct region *step = track_of_step(region, addr);
    if (step)
        return error_set(EBB_E_FOREIGN, "%p was born in region '%s' for a step '%s' below it, and "
                         "was not promoted yet", (void *)addr, region->name, step->name);
    if (!range_holds(addr))
        return error_set(EBB_E_FOREIGN, "%p is not memory of ebb, asked in region '%s'",
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

/* The large block that starts at `addr`, or the window or arena around it, in this region; or
 * NULL. */
static struct ebb_piece *find_place(const struct region *region, uintptr_t addr) {
    if (!range_holds(addr))
        return NULL;
    struct ebb_piece *piece = range_block_at(addr);
    uint64_t key = piece_key(piece);
    if (key == region->window_key || key == region->arena_key)
        return piece_covers(piece, addr) ? piece : NULL;
    return key == region->block_key && piece->addr == addr ? piece : NULL;
}

/* The same, but not for blocks that were born there for steps. */
static struct ebb_piece *find_piece(const struct region *region, uintptr_t addr) {
    struct ebb_piece *piece = find_place(region, addr);
    return piece && region->bearers && track_of_step(region, addr) ? NULL : piece;
}

/* The parent, if a block of the region was born there. */
static struct region *home_of(const struct region *region, uintptr_t addr) {
    return region->track ? track_home(region->track, addr) : NULL;
}

struct region *block_owner(struct region *place, uintptr_t addr) {
    if (!place->mixed)
        return place;
    if (place->safe_of)
        return place->safe_of;
    struct region *step = track_of_step(place, addr);
    return step ? step : place;
}

/* Every release must be seen, whatever notes say. */
static bool is_seen_closely(const struct region *region) {
    return region->shared || (region->track && region->track->recording);
}

void block_set_quick(struct region *region) {
    struct track *track = region_track(region);
    bool watched = region->bearers || is_seen_closely(region);
    region->mixed = region->bearers || region->shared || region->safe_of;
    region->quick_key = watched ? PIECE_KEY_NONE : region->window_key;
    if (track)
        track_set_paths(track);
}

/* The live block at `addr` in a piece of the region, whoever it was born for. */
static int find_in(struct region *region, struct ebb_piece *piece, uintptr_t addr,
                   struct block_place *place) {
    place->owner = region;
    place->piece = piece;
    if (piece->state == PIECE_BLOCK) {
        place->requested = piece->block.requested;
        return 0;
    }
    if (piece->state == PIECE_WINDOW)
        return small_find(region, piece, addr, &place->requested);
    place->slot = track_find(region_track(region), addr);
    if (!place->slot)
        return track_no_block(region->track, addr);
    place->requested = place->slot->bytes;
    return 0;
}

int block_find(struct region *region, const void *address, struct block_place *place) {
    uintptr_t addr = (uintptr_t)address;
    struct region *home = home_of(region, addr);
    struct ebb_piece *piece = home ? find_place(home, addr) : find_piece(region, addr);
    if (piece)
        return find_in(home ? home : region, piece, addr, place);
    if (region->safe && (piece = find_place(region->safe, addr)) != NULL)
        return find_in(region->safe, piece, addr, place);
    return report_no_block(region, addr);
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
    if (bytes > BYTES_MOST) {
        error_set(EBB_E_SIZE, "%zu bytes are more than half the address space", bytes);
        return false;
    }
    return true;
}

static void *allocate(struct region *region, size_t bytes, size_t align) {
    void *block = small_suits(bytes, align) ? small_alloc(region, bytes, align)
                                            : large_alloc(region, bytes, align, false);
    if (track_watches(region->track))
        small_fold(region); /* at once: the track looks at the peaks of what it serves */
    return block;
}

/* As it is now: what was refused is not, or for the reason that there is still. */
static void *ask_again(struct region *region, size_t bytes, size_t align) {
    error_take_back();
    return allocate(region, bytes, align);
}

/* What was refused, if others have released what was in the way, for whom `own` may look, or if the
 * arena gives way. */
static __attribute__((noinline)) void *try_again(struct region *region, size_t bytes, size_t align,
                                                 bool own) {
    bool again = own && remote_makes_room(region);
    void *block = again ? ask_again(region, bytes, align) : NULL;
    if (!block && region->track && track_gives_way(region->track, bytes, align))
        block = ask_again(region, bytes, align);
    return block;
}

__attribute__((noinline)) void *block_refused(struct region *region, size_t bytes,
                                              size_t align) {
    void *block = try_again(region, bytes, align, true);
    if (!block)
        exhausted_report(region, bytes, align);
    return block;
}

void *block_place(struct region *region, size_t bytes, size_t align) {
    void *block = allocate(region, bytes, align);
    if (block && region->sites)
        *range_site((uintptr_t)block) = 0;
    return block;
}

/* `own`: of the program itself, with nothing in hand; its block may lie in the parent. */
struct request {
    size_t bytes, align;
    uint32_t key;
    bool own;
    const void *site;
};

/* From the plan, or NULL; at once where the next slot says that it is no arena's. */
static void *place_planned(struct track *track, const struct request *request) {
    bool simple = !request->key;
    void *block = NULL;
    if (simple && track_leaves_next(track)) {
        track_pass_next(track, 0);
        return NULL;
    }
    if (simple && request->own && track_bears_next(track, request->align))
        block = track_bear_next(track, request->bytes, request->align);
    return block ? block
                 : track_place(track, request->bytes, request->align, request->key,
                               request->own);
}

static void *allocate_in_lane(struct region *region, const struct request *request) {
    void *block = allocate(region, request->bytes, request->align);
    return block ? block : try_again(region, request->bytes, request->align, request->own);
}

static void *allocate_planned(struct region *region, const struct request *request) {
    struct track *track = region->track;
    if (track_is_behind(track))
        due_stop(track);
    if (track_ignores(track, request->bytes, request->align))
        return allocate_in_lane(region, request);
    struct track_missed before = track_missed(track);
    enum track_turn turn = track_turn(track, request->bytes, request->key);
    void *block = turn == TRACK_FIRST ? place_planned(track, request) : NULL;
    track->tight = turn == TRACK_TOLD;
    if (block)
        return block;
    block = allocate_in_lane(region, request); /* the plan is asked once */
    if (turn != TRACK_FIRST && block)
        track_pass(track, request->bytes, request->align, request->key, request->own);
    if (block)
        track_note_block(track, block, request->bytes, request->align, request->key,
                         request->own);
    else
        track_unmiss(track, &before);
    return block;
}

/* Who asked for the block, if that is noted where it lies. */
static void note_site(const struct region *region, void *block, const void *site) {
    const struct region *parent = region->parent;
    if (region->sites || (parent && parent->sites && home_of(region, (uintptr_t)block)))
        *range_site((uintptr_t)block) = (uintptr_t)site;
}

static void *request_block(struct region *region, const struct request *request) {
    if (!is_valid_request(region, request->bytes, request->align))
        return NULL;
    void *block = request->key ? NULL : block_due(region, request->bytes, request->align);
    if (!block)
        block = region->track ? allocate_planned(region, request)
                              : allocate_in_lane(region, request);
    if (region->track && region->track->due.tried)
        due_resume(region->track);
    if (block)
        note_site(region, block, request->site);
    else
        exhausted_report(region, request->bytes, request->align);
    return block;
}

void *block_allocate(struct region *region, size_t bytes, size_t align, const void *site) {
    return request_block(region, &(struct request){bytes, align, 0, false, site});
}

static void *request_private(struct region *region, const struct request *request) {
    if (region->shared && !is_valid_request(region, request->bytes, request->align))
        return NULL;
    struct region *safe = safe_for(region);
    return safe ? request_block(safe, request) : NULL;
}

void *block_allocate_private(struct region *region, size_t bytes, size_t align, const void *site) {
    return request_private(region, &(struct request){bytes, align, 0, false, site});
}

/* The same where it is not simple. */
static void *allocate_for_object(struct region *region, size_t bytes, size_t align,
                                 const void *site) {
    return request_private(region, &(struct request){bytes, align, 0, true, site});
}

void *block_for_object(struct region *region, size_t bytes, size_t align, const void *site) {
    void *block = block_quickly(region, bytes, align);
    return block ? block : allocate_for_object(region, bytes, align, site);
}

void *block_allocate_keyed(struct region *region, size_t bytes, size_t align, uint32_t key,
                           const void *site) {
    return request_block(region, &(struct request){bytes, align, key, true, site});
}

static __attribute__((noinline)) void *allocate_from(ebb_region handle, size_t bytes, size_t align,
                                                     const void *site) {
    struct region *region = region_find(handle);
    return region ? block_allocate_keyed(region, bytes, align, 0, site) : NULL;
}

/* Valid, and of the lanes alone. */
static bool is_plain(const struct region *region, size_t bytes, size_t align) {
    return size_is_power_of_two(align) && align <= EBB_ALIGN_MAX && bytes <= BYTES_MOST &&
           !region->track && !region->sealed && !region->sites;
}

static __attribute__((noinline)) void *allocate_small(struct region *region, size_t bytes,
                                                      size_t align) {
    void *block = small_alloc(region, bytes, align);
    return block ? block : block_refused(region, bytes, align);
}

/* Apart, so that what a plan serves has no more to do. */
static __attribute__((noinline)) void *allocate_plain(struct region *region, size_t bytes,
                                                      size_t align) {
    if (align > EBB_SMALL_MAX_ALIGN)
        return large_alloc(region, bytes, align, true);
    return bytes <= EBB_SMALL_MAX_BYTES ? allocate_small(region, bytes, align)
                                        : large_alloc_plain(region, bytes);
}

/* The next slot's block is born in the parent. */
static __attribute__((noinline)) void *allocate_born(ebb_region handle, size_t bytes, size_t align,
                                                     const void *site) {
    const struct region *region = (const struct region *)handle.lane;
    void *block = track_bear_next(region->track, bytes, align);
    return block ? block : allocate_from(handle, bytes, align, site);
}

/* Where the plan or a lane has it at once, the handle need not be looked at in full. */
void *ebb_region_alloc_slow(ebb_region handle, size_t bytes, size_t align) {
    struct region *region = (struct region *)handle.lane;
    if (region && region->lane.generation == handle.generation) {
        const struct track *track = region->track;
        if (track && track_fits(track, bytes, align))
            return track_serve(region->track, bytes);
        if (track && track_bears_next(track, align))
            return allocate_born(handle, bytes, align, __builtin_return_address(0));
        if (is_plain(region, bytes, align))
            return allocate_plain(region, bytes, align);
    }
    return allocate_from(handle, bytes, align, __builtin_return_address(0));
}

static void *allocate_zeroed(ebb_region handle, size_t bytes, size_t align, const void *site) {
    const struct region *region = region_find(handle);
    if (!region)
        return NULL;
    if (region_is_on_device(region)) {
        region_refuse_hollow(region, "ebb_fill_device() sets its bytes");
        return NULL;
    }
    void *block = allocate_from(handle, bytes, align, site);
    if (block && !region->hollow)
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

/* The region has no piece there: a block that was born in the parent or is in its safe, or none. */
static int release_born(struct region *region, uintptr_t addr) {
    const struct region *home = home_of(region, addr);
    if (!home && region->safe && find_place(region->safe, addr))
        return ebb_region_release(region_handle(region->safe), (void *)addr);
    if (!home)
        return report_no_block(region, addr);
    int result = hold_check_block(region, find_place(home, addr), addr);
    if (!result)
        track_end(region_track(region), addr);
    due_resume(region->track);
    return result;
}

static int release_planned(struct region *region, uintptr_t addr) {
    struct track_slot *slot = track_find(region_track(region), addr);
    if (!slot)
        return track_no_block(region->track, addr);
    if (slot->align & TRACK_HELD)
        return hold_check_block(region, range_block_at(addr), addr);
    if (!region_is_leaving(region))
        track_release(region->track, slot);
    due_resume(region->track);
    return 0;
}

/* The same for a block that lies in an ordinary lane. What is being sent stays where it is. */
static int release_placed(struct region *region, struct ebb_piece *piece, uintptr_t addr) {
    struct block_place place;
    int result = hold_check_block(region, piece, addr);
    if (result)
        return result;
    if (region_is_leaving(region))
        return find_in(region, piece, addr, &place);
    if (region->track)
        track_note_end(region_track(region), addr); /* while the address is the region's */
    if (piece->state == PIECE_WINDOW)
        return small_release(region, piece, addr);
    return large_release(region, piece);
}

static __attribute__((noinline)) int release_noting(struct track *track, struct track_slot *slot) {
    track_note_peaks(track);
    track_take_back(track, slot);
    return 0;
}

/* The block that is expected, but first the peaks are looked at. */
static __attribute__((noinline)) int release_expected(struct track *track,
                                                      struct track_slot *slot) {
    if (!track_is_calm(track))
        return release_noting(track, slot);
    track->looked = track->next;
    track_take_back(track, slot);
    return 0;
}

/* Everything but a small block and the expected one of a plan: out of their way. */
static __attribute__((noinline)) int release_other(struct region *region, uintptr_t addr) {
    if (!addr)
        return 0;
    struct ebb_piece *piece = find_piece(region, addr);
    int result = !piece                        ? release_born(region, addr)
                 : piece->state == PIECE_ARENA ? release_planned(region, addr)
                                               : release_placed(region, piece, addr);
    return result > 0 ? release_other(region, addr) : result; /* it is held no more */
}

/* True if the piece is the large block that begins there, and its end need not be noted. */
static bool ends_quickly(const struct region *region, const struct ebb_piece *piece,
                         uintptr_t addr) {
    return piece_key(piece) == region->block_key && piece->addr == addr && !piece->pins &&
           region->quick_key != PIECE_KEY_NONE;
}

/* True for a small block of the region's own, though others were born there for steps below. */
static bool is_beside_births(const struct region *region, const struct ebb_piece *piece,
                             uintptr_t addr) {
    return region->bearers && piece_key(piece) == region->window_key &&
           piece_covers(piece, addr) && !is_seen_closely(region) && !track_may_be_born(addr);
}

static __attribute__((noinline)) int release_beside_births(struct region *region,
                                                           struct ebb_piece *window,
                                                           uintptr_t addr) {
    return small_release(region, window, addr);
}

/* All but what a plan expects: a function of its own, so that the latter needs no frame. */
static __attribute__((noinline)) int release_ordinary(struct region *region, uintptr_t addr) {
    if (range_holds(addr)) {
        struct ebb_piece *piece = range_block_at(addr);
        if (piece_key(piece) == region->quick_key && piece_covers(piece, addr))
            return small_release(region, piece, addr);
        if (ends_quickly(region, piece, addr))
            return large_release_plain(region, piece);
        if (is_beside_births(region, piece, addr))
            return release_beside_births(region, piece, addr);
    }
    return release_other(region, addr);
}

static __attribute__((noinline)) int release_nowhere(ebb_region handle) {
    region_not_found(handle);
    return EBB_E_STALE;
}

/* The inline function has looked at the lane already, so it is one, or none. */
int ebb_region_release_slow(ebb_region handle, void *block) {
    struct region *region = (struct region *)handle.lane;
    if (!region || region->lane.generation != handle.generation)
        return release_nowhere(handle);
    if (!region->track)
        return release_ordinary(region, (uintptr_t)block);
    struct track_slot *slot = track_expected(region->track, (uintptr_t)block);
    if (!slot)
        return release_ordinary(region, (uintptr_t)block);
    if (track_may_peak(region->track))
        return release_expected(region->track, slot);
    track_take_back(region->track, slot);
    return 0;
}

/* Finds a live block that nobody needs as it is. */
static int find_unheld(struct region *region, const void *block, struct block_place *place) {
    int found = block_find(region, block, place);
    int result = found ? found : hold_check_block(region, place->piece, (uintptr_t)block);
    return result > 0 ? find_unheld(region, block, place) : result; /* it is held no more */
}

static int resize(const struct block_place *place, uintptr_t addr, size_t bytes) {
    struct region *owner = place->owner;
    if (bytes <= place->requested && region_is_leaving(owner))
        return 0; /* as in release_placed() */
    if (place->piece->state == PIECE_ARENA)
        return track_resize(owner->track, place->slot, bytes);
    int result = place->piece->state == PIECE_WINDOW
                     ? small_resize(owner, place->piece, addr, bytes)
                     : large_resize(owner, place->piece, bytes);
    if (!result && owner->track)
        track_note_resize(owner->track, addr, bytes);
    return result;
}

/* The same, once more if others have released some of what was in the way. */
static int resize_own(struct region *region, void *block, size_t bytes, struct block_place *place) {
    int result = resize(place, (uintptr_t)block, bytes);
    if (!remote_may_allow(place->owner, result) || !remote_makes_room(region))
        return result;
    if (find_unheld(region, block, place) != 0 || resize(place, (uintptr_t)block, bytes) != 0)
        return error_latest();
    error_take_back();
    return 0;
}

int ebb_region_resize(ebb_region handle, void *block, size_t bytes) {
    struct region *region = region_find(handle);
    struct block_place place;
    if (!region)
        return EBB_E_STALE;
    remote_look(region); /* what others released may lie behind the block, or be charged */
    int result = find_unheld(region, block, &place);
    return result ? result : resize_own(region, block, bytes, &place);
}

/* The same without an error if it cannot be: the caller has another way. */
static bool try_resize(struct region *region, void *block, size_t bytes,
                       struct block_place *place) {
    error_mute();
    int result = resize_own(region, block, bytes, place);
    error_unmute();
    return result == 0;
}

void *ebb_region_realloc(ebb_region handle, void *block, size_t bytes, size_t align) {
    struct region *region = region_find(handle);
    const void *site = __builtin_return_address(0);
    struct block_place old;
    if (!region)
        return NULL;
    if (!block)
        return allocate_from(handle, bytes, align, site);
    remote_look(region); /* as in ebb_region_resize() */
    if (!is_valid_request(region, bytes, align) || find_unheld(region, block, &old) != 0)
        return NULL;
    if ((uintptr_t)block % align == 0 && try_resize(region, block, bytes, &old))
        return block;
    if (region_is_on_device(region)) {
        region_refuse_hollow(region, "a block that cannot stay where it is cannot be copied");
        return NULL;
    }
    void *moved = block_quickly(region, bytes, align);
    if (!moved)
        moved = block_allocate_keyed(region, bytes, align, 0, site);
    if (!moved)
        return NULL;
    if (!region->hollow)
        memcpy(moved, block, size_smaller(old.requested, bytes));
    ebb_region_release(handle, block);
    return moved;
}
