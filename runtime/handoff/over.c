// SPDX-License-Identifier: Apache-2.0
/*
 * over.c - a region becomes another thread's.
 *
 * A region has no thread of its own; what must be true is that nothing outside of it would be
 * touched by who works in it, or the other way round. Invariant: nothing is changed before all of
 * that has been looked at. The generation grows as by a close and an open, so that handles of
 * before are recognised.
 */
#include "base/error.h"
#include "object/adopt.h"

#include <ebb/handoff.h>

static bool is_inside(const struct region *region, const struct region *top) {
    return region == top || region_is_above(top, region);
}

/* The region that a cleanup ties this one to, outside of the tree below `top`; or NULL. */
static const struct region *tied_outside(const struct ebb_cleanup *cleanup,
                                         const struct region *top) {
    const struct region *other = adoption_tied_to(cleanup);
    if (!other)
        other = tensor_tied_to(cleanup);
    return other && !is_inside(other, top) ? other : NULL;
}

static int check_ties(const struct region *region, const struct region *top) {
    for (const struct ebb_cleanup *at = region->cleanups; at; at = at->next) {
        const struct region *other = tied_outside(at, top);
        if (other)
            return error_set(EBB_E_BORROWED, "region '%s' and region '%s', which stays, share an "
                             "object: it is lent, attached, or a view", region->name, other->name);
    }
    return 0;
}

static int check_one(const struct region *region, const struct region *top) {
    if (region->closing)
        return region_refuse_closing(region);
    if (region->step || region->track)
        return error_set(EBB_E_BUSY, "region '%s' is that of a step", region->name);
    if (region->departed && !is_inside(region->heir, top))
        return error_set(EBB_E_BUSY, "region '%s' has %zu bytes of blocks that were promoted to "
                         "'%s', which stays", region->name, region->lent, region->heir->name);
    return check_ties(region, top);
}

/* What a child of a shared pool has lies in the slot of its root, which goes as a whole. */
static int check_slot(const struct region *top) {
    if (!top->parent || !top->pool->slot)
        return 0;
    return error_set(EBB_E_KIND, "region '%s' is in the slot of its parent '%s', which stays",
                     top->name, top->parent->name);
}

static int check_all(struct region *top) {
    int result = check_slot(top);
    for (struct region *at = top; at && !result; at = region_next_below(at, top))
        result = check_one(at, top);
    return result;
}

/* As if it had been closed and opened, but that it is not counted as opened once more. */
static void renew_handle(struct region *region) {
    struct ebb_pool *pool = region->pool;
    pthread_mutex_lock(&pool->lock);
    region->lane.generation += 2;
    pool->opened_before++;
    pthread_mutex_unlock(&pool->lock);
}

ebb_region ebb_region_hand_over(ebb_region handle) {
    struct region *region = region_find(handle);
    if (!region || check_all(region) != 0)
        return region_handle(NULL);
    if (region->parent)
        region_cut_off(region);
    renew_handle(region);
    return region_handle(region);
}
