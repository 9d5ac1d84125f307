// SPDX-License-Identifier: Apache-2.0
/*
 * remote.c - blocks that other threads released.
 *
 *     region->remote -> | link | dead block | -> | link | dead block | -> NULL
 *
 * Who releases pushes the block, linked by its own first word: every block has at least a granule.
 * In shared memory, where others write, the link is a word of the table of sites instead (range.h).
 * The owner takes the whole list at once when it looks for room, is read or ends. Taking everything
 * needs no counter against reuse (ABA): nothing is ever popped alone.
 *
 * A pointer that turns out to be no block is counted. What leaves here, and with exports that were
 * given back, is noted for calls that undo what they did: undo.c.
 */
#include <ebb/remote.h>

#include "base/error.h"
#include "region/hold.h"
#include "region/small.h"

#define MARKED ((uintptr_t)1) /* bit of a link that was seen: blocks start at a granule */

/* In a region that others write to, the link lies where the site of the block was noted. */
static EBB_UNCHECKED void **place_of_link(const struct region *region, void *block) {
    return region->shared ? (void **)(void *)range_site((uintptr_t)block) : (void **)block;
}

static EBB_UNCHECKED void set_link(const struct region *region, void *block, void *next) {
    *place_of_link(region, block) = next;
}

static EBB_UNCHECKED void *link_of(const struct region *region, void *block) {
    return *place_of_link(region, block);
}

int ebb_region_release_remote(ebb_region handle, void *block) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    if (!block)
        return 0;
    if (region->hollow)
        return region_refuse_hollow(region, "blocks that others release are linked by their bytes");
    if (!range_holds((uintptr_t)block) || (uintptr_t)block % RANGE_GRANULE != 0)
        return error_set(EBB_E_FOREIGN, "%p is no block of ebb, release asked in region '%s'",
                         block, region->name);
    void *first = atomic_load_explicit(&region->remote, memory_order_relaxed);
    do
        set_link(region, block, first);
    /* release: what this thread did with the block, and the link, come before the owner's use */
    while (!atomic_compare_exchange_weak_explicit(&region->remote, &first, block,
                                                  memory_order_release, memory_order_relaxed));
    return 0;
}

/* Turns the list round, its links marked. One that was handed in twice closes a ring: there the
 * list ends. */
static void *turn_round(struct region *region, void *block) {
    void *list = NULL;
    while (block) {
        void *next = link_of(region, block);
        if ((uintptr_t)next & MARKED) {
            region->strays++;
            break;
        }
        set_link(region, block, (void *)((uintptr_t)list | MARKED));
        list = block;
        block = next;
    }
    return list;
}

/* What a region had let go before. */
struct before {
    struct flow counted, requested, used;
    size_t large_used;
};

static struct before look(struct region *region) {
    small_fold(region);
    return (struct before){region->counted, region->requested, region->used, region->large_used};
}

/* What releases of others take away, a call that fails and undoes what it did must not bring back:
 * undo.c. */
static void note_drained(struct region *region, const struct before *before) {
    small_fold(region);
    region->drained.blocks += flow_out(&region->counted) - flow_out(&before->counted);
    region->drained.requested += flow_out(&region->requested) - flow_out(&before->requested);
    region->drained.used += flow_out(&region->used) - flow_out(&before->used);
    region->drained_large += before->large_used - region->large_used;
}

static void drain(struct region *region) {
    /* acquire: pairs with the release of each push: later pushes go on from earlier ones */
    void *block = atomic_exchange_explicit(&region->remote, NULL, memory_order_acquire);
    block = turn_round(region, block);
    error_mute();
    while (block) {
        void *next = (void *)((uintptr_t)link_of(region, block) & ~MARKED);
        if (ebb_region_release(region_handle(region), block) != 0)
            region->strays++;
        block = next;
    }
    error_unmute();
}

/* What is let go of is noted, where some of it was born in the parent there, too. */
static void note_bearing(struct region *region, struct track *track,
                         void (*let_go)(struct region *region)) {
    struct region *parent = region->parent;
    struct before above = look(parent);
    struct track_drained before = {track->seen.tenured_wrong, track->seen.tenured_wrong_bytes};
    let_go(region);
    note_drained(parent, &above);
    track->drained.blocks += track->seen.tenured_wrong - before.blocks;
    track->drained.bytes += track->seen.tenured_wrong_bytes - before.bytes;
}

/* What is let go of is noted, wherever it lies but in the region's safe. Whoever looks for it may
 * be placing a block. */
static void note_all(struct region *region, void (*let_go)(struct region *region)) {
    struct track *track = region_track(region);
    if (track)
        track->due.paused = true;
    struct before here = look(region);
    region->settling = true;
    if (track && track->born)
        note_bearing(region, track, let_go);
    else
        let_go(region);
    region->settling = false;
    note_drained(region, &here);
    if (track)
        track->due.paused = false;
}

void remote_drain(struct region *region) {
    note_all(region, drain);
}

void remote_sweep(struct region *region) {
    struct region *safe = region->safe;
    if (!region->holds)
        return;
    struct before in_safe = safe ? look(safe) : (struct before){.large_used = 0};
    note_all(region, hold_sweep);
    if (safe)
        note_drained(safe, &in_safe);
}

void remote_settle(struct region *region) {
    remote_sweep(region);
    remote_look(region);
}

void remote_settle_below(struct region *region) {
    for (struct region *at = region; at; at = region_next_below(at, region))
        remote_sweep(at);
    for (struct region *at = region; at; at = region_next_below(at, region))
        remote_look(at);
}

/* Between the region's blocks may lie those that were promoted from it, and of steps below it. */
static bool has_others_between(const struct region *region) {
    return region->departed || region->bearers;
}

bool remote_may_allow(const struct region *owner, int refusal) {
    return refusal == EBB_E_REGION_LIMIT || refusal == EBB_E_POOL_LIMIT ||
           (refusal == EBB_E_NO_ROOM && has_others_between(owner));
}

bool remote_makes_room(struct region *region) {
    struct region *root = region->safe_of ? region->safe_of : region;
    bool found = false;
    while (root->parent)
        root = root->parent;
    for (struct region *at = root; at; at = region_next_below(at, root)) {
        /* relaxed: as in remote_look() */
        found |= atomic_load_explicit(&at->remote, memory_order_relaxed) != NULL;
        remote_look(at);
    }
    return found;
}
