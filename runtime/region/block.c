// SPDX-License-Identifier: Apache-2.0
/*
 * block.c - the public functions that make and resize blocks: which lane, which error.
 *
 * A request is served by what is due or the plan, if the region follows one, else by its lane. One
 * that was refused is made again if other threads' releases, or the arena, made room meanwhile.
 */
#include "region/block.h"
#include "base/error.h"
#include "region/exhausted.h"
#include "region/large.h"
#include "region/lookup.h"
#include "region/remote.h"
#include "region/safe.h"
#include "region/small.h"

#include <string.h>

/* The real symbol behind the inline function. */
extern inline void *ebb_region_alloc(ebb_region region, size_t bytes, size_t align);

#define BYTES_MOST (EBB_SIZE_MAX - EBB_ALIGN_MAX - EBB_PAGE) /* of a block */

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

/* Its outcome is the caller's: the error of the refusal before goes. */
static void *ask_again(struct region *region, size_t bytes, size_t align) {
    error_take_back();
    return allocate(region, bytes, align);
}

/* After a refusal: other threads may have released something, which only `own` may look for, or the
 * arena may give way. */
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

/* `own`: the program asks, and nothing is half done; the block may be born in the parent. */
struct request {
    size_t bytes, align;
    uint32_t key;
    bool own;
    const void *site;
};

/* From the plan, or NULL: at once, if the next slot has no place in the arena. */
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

/* Notes who asked for the block, if the region that it lies in notes sites. */
static void note_site(const struct region *region, void *block, const void *site) {
    const struct region *parent = region->parent;
    if (region->sites || (parent && parent->sites && lookup_home(region, (uintptr_t)block)))
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

/* True if the request is valid, and nothing but its lane has to do with it. */
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

/* The same where the step follows the tables, if it is born there at once. */
static __attribute__((noinline)) void *allocate_due(ebb_region handle, size_t bytes, size_t align,
                                                    const void *site) {
    const struct region *region = (const struct region *)handle.lane;
    void *block = track_bears_due(region->track, align)
                      ? track_bear_due(region->track, bytes, align)
                      : NULL;
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
        if (track)
            return allocate_due(handle, bytes, align, __builtin_return_address(0));
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

/* ---- resizing ---- */

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

/* The same, and once more if other threads have released something. */
static int resize_own(struct region *region, void *block, size_t bytes, struct block_place *place) {
    int result = resize(place, (uintptr_t)block, bytes);
    if (!remote_may_allow(place->owner, result) || !remote_makes_room(region))
        return result;
    if (block_find_unheld(region, block, place) != 0 || resize(place, (uintptr_t)block, bytes) != 0)
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
    int result = block_find_unheld(region, block, &place);
    return result ? result : resize_own(region, block, bytes, &place);
}

/* The same without an error: the caller has another way. */
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
    if (!is_valid_request(region, bytes, align) || block_find_unheld(region, block, &old) != 0)
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
