// SPDX-License-Identifier: Apache-2.0
/*
 * send.c - the contents of a region leave for another process.
 *
 * All that can be refused is looked at while the region is open; then it closes like any other,
 * only that its pages stay as they are, and its slot changes hands. Cleanups that run meanwhile let
 * go of some of it: elements end with a loan or an attachment, say. That keeps its place until the
 * slot is another's, and pages of children that have closed serve nobody: what cleanups allocate
 * lies where nothing was. Invariant: the word of the slot says SENT after the region is closed, so
 * nothing of this process writes there any more.
 */
#include "base/error.h"
#include "base/poison.h"
#include "base/size.h"
#include "handoff/send.h"
#include "pool/shared.h"
#include "region/block.h"
#include "region/hold.h"
#include "region/lookup.h"
#include "region/safe.h"
#include "region/small.h"

/* The root of a tree in a slot, or NULL with an error. */
static struct region *find_root(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region)
        return NULL;
    if (!region->pool->slot)
        error_set(EBB_E_KIND, "region '%s' is in pool '%s', which is not shared", region->name,
                  region->pool->name);
    else if (region->parent)
        error_set(EBB_E_ARGUMENT, "region '%s' has a parent, '%s': only roots are sent",
                  region->name, region->parent->name);
    else if (region->closing)
        region_refuse_closing(region);
    else
        return region;
    return NULL;
}

/* Bytes of pages under exports that outlived their region. */
static size_t count_held(struct ebb_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    size_t held = pool->held_bytes;
    pthread_mutex_unlock(&pool->lock);
    return held;
}

/* A cleanup has exported something while the region closed: it is closed, and stays here. */
static int keep_for_exports(struct shared_slot *slot) {
    slot->sending = false;
    shared_leave(slot->pool);
    return error_set(EBB_E_BUSY, "slot %u of pool '%s' was not sent: a cleanup exported from it",
                     slot->index, slot->shared->pool->name);
}

/* Exports would let somebody write to what another process has. */
static int check_exports(struct region *root) {
    size_t count = 0;
    for (struct region *at = root; at; at = region_next_below(at, root)) {
        hold_sweep(at);
        count += at->hold_count;
    }
    size_t held = count_held(root->pool);
    if (!count && !held)
        return 0;
    return error_set(EBB_E_BUSY, "region '%s' cannot be sent: %zu exports are out, and %zu bytes "
                     "of pages under others", root->name, count, held);
}

/* Who has a live block there, also one in its safe; if nobody has, whose pages these are, who says
 * why. They differ if the block was relinked. */
static struct region *find_region(const void *block) {
    uintptr_t addr = (uintptr_t)block;
    struct ebb_piece *piece = range_holds(addr) ? range_block_at(addr) : NULL;
    struct region *region = piece ? region_of_piece(piece) : NULL;
    if (!region || !block_peek(region, piece, addr))
        return region_peek(ebb_region_of(block));
    return region->safe_of ? region->safe_of : region;
}

/* The region of the tree that has the block, and its bytes. */
static int find_block(struct region *root, const void *block, struct ebb_parcel *parcel) {
    struct region *region = find_region(block);
    struct block_place place;
    if (region != root && (!region || !region_is_above(root, region)))
        region = root; /* which says that it is not its own */
    int result = block_find(region, block, &place);
    if (result)
        return result;
    if (!safe_is_needed(block))
        return error_set(EBB_E_FOREIGN, "%p is an object of region '%s', or part of one: that is "
                         "not in its slot", block, region->name);
    parcel->root = (uintptr_t)block - atomic_load(&root->pool->slot->addr);
    parcel->bytes = place.requested;
    return 0;
}

/* Whole pages from the slot's start to behind the highest run. */
static size_t measure(const struct region *root) {
    uintptr_t start = atomic_load(&root->pool->slot->addr), end = start;
    for (const struct region *at = root; at; at = region_next_below((struct region *)at, root))
        for (const struct ebb_piece *run = at->runs; run; run = run->next)
            end = size_larger(end, piece_end(run));
    return end - start;
}

static int describe(struct region *root, const void *block, struct ebb_parcel *parcel) {
    const struct shared_slot *slot = root->pool->slot;
    *parcel = (struct ebb_parcel){.pool = slot->shared->identity,
                                  .slot = slot->index,
                                  .generation = word_generation(slot->word),
                                  .root = UINT64_MAX};
    return block ? find_block(root, block, parcel) : 0;
}

struct region *send_begin(ebb_region handle, const struct ebb_parcel *parcel) {
    struct region *root = find_root(handle);
    if (root && !parcel)
        error_set(EBB_E_ARGUMENT, "region '%s': no parcel to fill", root->name);
    return root && parcel && shared_may_send(root->pool) && check_exports(root) == 0 ? root : NULL;
}

/* From here on the contents stay, whatever is released: no quick way passes that by. */
static void leave_bytes(struct region *root) {
    shared_begin_sending(root->pool->slot);
    for (struct region *at = root; at; at = region_next_below(at, root))
        block_set_quick(at);
}

int ebb_region_send(ebb_region handle, const void *block, struct ebb_parcel *parcel) {
    struct region *root = send_begin(handle, parcel);
    struct ebb_parcel described;
    if (!root || describe(root, block, &described) != 0)
        return error_latest();
    struct shared_slot *slot = root->pool->slot;
    size_t bytes = measure(root);
    leave_bytes(root);
    int result = ebb_region_close(handle);
    if (count_held(slot->pool))
        return keep_for_exports(slot);
    poison_opened(atomic_load(&slot->addr), bytes);
    if (!shared_send(slot, bytes))
        return error_set(EBB_E_STALE, "slot %u of pool '%s' was taken away while it was sent",
                         slot->index, slot->shared->pool->name);
    *parcel = described;
    return result;
}

size_t ebb_region_offset(ebb_region handle, const void *address) {
    const struct region *region = region_find(handle);
    if (!region)
        return SIZE_MAX;
    const struct shared_slot *slot = region->pool->slot;
    if (!slot) {
        error_set(EBB_E_KIND, "region '%s' is in pool '%s', which is not shared", region->name,
                  region->pool->name);
        return SIZE_MAX;
    }
    size_t offset = (uintptr_t)address - atomic_load_explicit(&slot->addr, memory_order_relaxed);
    if (offset < slot->shared->slot_bytes)
        return offset;
    error_set(EBB_E_FOREIGN, "%p is not in the slot of region '%s'", address, region->name);
    return SIZE_MAX;
}
