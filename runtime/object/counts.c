// SPDX-License-Identifier: Apache-2.0
/*
 * counts.c - counters of objects: of a region, of the process, as a line.
 *
 * The process's counters are the sums of closed regions, which pools keep even when they are gone
 * themselves, and of those that are open now. Regions of other threads are read as they are: each
 * number is right, the sum of a moment that is passing.
 */
#include "base/error.h"
#include "object/object.h"

#include <stdio.h>

struct sums {
    uint32_t kind;
    struct kind_totals totals;
    uint64_t live;
};

static void add_region(struct sums *sums, const struct region *region) {
    for (uint32_t left = kinds_read(region); left; left &= left - 1) {
        uint32_t kind = (uint32_t)__builtin_ctz(left);
        if (sums->kind != EBB_OBJECT_ALL && sums->kind != kind)
            continue;
        kinds_add(&sums->totals, region, kind);
        sums->live += kind_live(&region->kind_counts[kind]);
    }
}

static void add_totals(struct kind_totals *totals, const struct kind_totals *more) {
    for (int root = 0; root < 2; root++) {
        totals->created[root] += more->created[root];
        totals->ended[root] += more->ended[root];
    }
    totals->attached += more->attached;
    totals->detached += more->detached;
    totals->moved += more->moved;
    totals->copied += more->copied;
    totals->relinked += more->relinked;
    totals->joined += more->joined;
}

/* A pool that is gone has no regions, but what they counted. */
static void add_pool(void *context, struct ebb_pool *pool) {
    struct sums *sums = context;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t kind = 0; kind < POOL_KINDS; kind++)
        if (sums->kind == EBB_OBJECT_ALL || sums->kind == kind)
            add_totals(&sums->totals, &pool->closed_kinds[kind]);
    for (const struct region *at = pool->slots; at; at = at->list_next)
        add_region(sums, at);
    pthread_mutex_unlock(&pool->lock);
}

static struct ebb_object_counts counts_of(const struct sums *sums) {
    const struct kind_totals *totals = &sums->totals;
    return (struct ebb_object_counts){
        .created_outside = totals->created[1],
        .ended_outside = totals->ended[1],
        .created_inside = totals->created[0],
        .ended_inside = totals->ended[0],
        .attached = totals->attached,
        .detached = totals->detached,
        .moved = totals->moved,
        .copied = totals->copied,
        .relinked = totals->relinked,
        .joined = totals->joined,
        .live = sums->live,
    };
}

static int check(uint32_t kind, const void *counts) {
    if (counts && (kind == EBB_OBJECT_ALL || kind < EBB_OBJECT_KINDS_MAX))
        return 0;
    return error_set(EBB_E_ARGUMENT, "counters of kind %u, %d exist, into %p", kind,
                     EBB_OBJECT_KINDS_MAX, counts);
}

int ebb_region_read_objects(ebb_region handle, uint32_t kind, struct ebb_object_counts *counts) {
    struct sums sums = {.kind = kind};
    const struct region *region = region_find(handle);
    int result = region ? check(kind, counts) : EBB_E_STALE;
    if (result)
        return result;
    add_region(&sums, region);
    *counts = counts_of(&sums);
    return 0;
}

int ebb_process_read_objects(uint32_t kind, struct ebb_object_counts *counts) {
    struct sums sums = {.kind = kind};
    int result = check(kind, counts);
    if (result)
        return result;
    pool_each_ever(add_pool, &sums);
    *counts = counts_of(&sums);
    return 0;
}

size_t ebb_report_objects(uint32_t kind, char *text, size_t room) {
    struct ebb_object_counts counts;
    if (!text && room > 0) {
        error_set(EBB_E_ARGUMENT, "counters of kind %u: room for %zu bytes at NULL", kind, room);
        return 0;
    }
    if (ebb_process_read_objects(kind, &counts) != 0)
        return 0;
    int length = snprintf(
        text, room,
        "ThreadTotalLive: %llu; CreatedOutsideScopeCount: %llu; DisposedOutsideScopeCount: %llu; "
        "CreatedInScopeCount: %llu; DisposedInScopeCount: %llu; AttachedToScopeCount: %llu; "
        "DetachedFromScopeCount: %llu",
        (unsigned long long)counts.live, (unsigned long long)counts.created_outside,
        (unsigned long long)counts.ended_outside, (unsigned long long)counts.created_inside,
        (unsigned long long)counts.ended_inside, (unsigned long long)counts.attached,
        (unsigned long long)counts.detached);
    return length < 0 ? 0 : (size_t)length;
}
