// SPDX-License-Identifier: Apache-2.0
/*
 * attempt.c - a call that makes several objects and fails in the middle leaves no trace.
 *
 * Between beginning and abandoning, nothing but new objects may happen in the region. Invariant:
 * the objects of the attempt are those in front of `newest` in the region's list, or members of
 * such.
 */
#include "object/attempt.h"

static void copy_counts(struct kind_counts *to, const struct kind_counts *from, uint32_t kinds) {
    for (uint32_t left = kinds; left; left &= left - 1)
        to[__builtin_ctz(left)] = from[__builtin_ctz(left)];
}

bool attempt_begin(struct attempt *attempt, ebb_region region) {
    attempt->region = object_host_for(region);
    if (!attempt->region)
        return false;
    attempt->newest = attempt->region->objects;
    attempt->kinds = attempt->region->kinds;
    copy_counts(attempt->counts, attempt->region->kind_counts, attempt->kinds);
    undo_remember(attempt->region, &attempt->undo);
    attempt->parent = attempt->region->track ? attempt->region->parent : NULL;
    if (attempt->parent)
        undo_remember(attempt->parent, &attempt->above);
    return true;
}

void attempt_compose(struct attempt *attempt, struct ebb_object *whole) {
    struct region *region = attempt->region;
    struct ebb_object *next;
    for (struct ebb_object *member = region->objects; member != attempt->newest; member = next) {
        next = member->next;
        if (member == whole)
            continue;
        object_delist(region, member);
        member_join(member, whole);
        member_count_in(member, region);
        kind_count(&kind_of(region, member->type->kind)->joined);
    }
}

/* Under the lock of whoever reads them on another thread: he finds all of them taken back, or none,
 * and is not at one of a kind that comes anew, with zeros. */
static void take_counts_back(const struct attempt *attempt) {
    struct region *region = attempt->region;
    pthread_mutex_lock(&region->pool->lock);
    kinds_set(region, attempt->kinds);
    copy_counts(region->kind_counts, attempt->counts, attempt->kinds);
    pthread_mutex_unlock(&region->pool->lock);
}

void attempt_abandon(struct attempt *attempt) {
    struct region *region = attempt->region;
    undo_begin(region);
    while (region->objects != attempt->newest)
        ebb_object_end(region->objects);
    take_counts_back(attempt);
    undo_restore(region, &attempt->undo);
    if (attempt->parent)
        undo_restore(attempt->parent, &attempt->above);
}
