// SPDX-License-Identifier: Apache-2.0
/*
 * kinds.h - objects counted by kind, in the region that owns them.
 *
 * A region's counters are made when it first has to do with a kind, so that opening one costs
 * nothing. When it ends, or becomes a root, they go to the pool's sums: created and ended apart for
 * roots, which is what other systems call outside of a scope. What lives on is given, then, by the
 * child to the root. Law:
 *     over all regions that ever were: created = ended + live, given = received
 */
#ifndef EBB_REGION_KINDS_H
#define EBB_REGION_KINDS_H

#include "region/region.h"

/*
 * Written by the region's thread alone and read by any that holds the pool's lock, so each is
 * written at once. A kind's bit is set when its counters are zero. Under the lock it is cleared,
 * when they went to the sums, and so are counters taken back, after a call that failed.
 */
static inline void kind_add(uint64_t *counter, uint64_t more) {
    /* release: who reads that something left, and then what came, reads that it had come */
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELEASE);
}

static inline void kind_count(uint64_t *counter) {
    kind_add(counter, 1);
}

static inline uint64_t kind_read(const uint64_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Kinds that the region has counters of, as a set of bits. */
static inline uint32_t kinds_read(const struct region *region) {
    /* acquire: the counters are seen as zero, or as they were later */
    return __atomic_load_n(&region->kinds, __ATOMIC_ACQUIRE);
}

static inline void kinds_set(struct region *region, uint32_t kinds) {
    __atomic_store_n(&region->kinds, kinds, __ATOMIC_RELEASE);
}

static inline struct kind_counts *kind_of(struct region *region, uint32_t kind) {
    struct kind_counts *counts = &region->kind_counts[kind];
    if (__builtin_expect(!(region->kinds >> kind & 1), 0)) {
        *counts = (struct kind_counts){0};
        kinds_set(region, region->kinds | (uint32_t)1 << kind);
    }
    return counts;
}

/* How many the region has now. What left is read first: it never is more than what came. */
static inline uint64_t kind_live(const struct kind_counts *counts) {
    uint64_t left = __atomic_load_n(&counts->ended, __ATOMIC_ACQUIRE);
    left += __atomic_load_n(&counts->given, __ATOMIC_ACQUIRE);
    return kind_read(&counts->created) + kind_read(&counts->received) - left;
}

static inline void kind_created(struct region *region, uint32_t kind) {
    kind_count(&kind_of(region, kind)->created);
}

static inline void kind_ended(struct region *region, uint32_t kind) {
    kind_count(&kind_of(region, kind)->ended);
}

static inline void kind_passed(struct region *from, struct region *to, uint32_t kind) {
    kind_count(&kind_of(from, kind)->given);
    kind_count(&kind_of(to, kind)->received);
}

/* All objects of the region have ended. */
static inline void kinds_end_all(struct region *region) {
    for (uint32_t left = region->kinds; left; left &= left - 1) {
        struct kind_counts *counts = &region->kind_counts[__builtin_ctz(left)];
        kind_add(&counts->ended, kind_live(counts));
    }
    region->objects = region->came_back = NULL;
}

/* What a region counted joins the sums of closed or of all regions. */
static inline void kinds_add(struct kind_totals *totals, const struct region *region,
                             uint32_t kind) {
    const struct kind_counts *counts = &region->kind_counts[kind];
    bool root = region->depth == 0;
    totals->created[root] += kind_read(&counts->created);
    totals->ended[root] += kind_read(&counts->ended);
    totals->attached += kind_read(&counts->attached);
    totals->detached += kind_read(&counts->detached);
    totals->moved += kind_read(&counts->moved);
    totals->copied += kind_read(&counts->copied);
    totals->relinked += kind_read(&counts->relinked);
    totals->joined += kind_read(&counts->joined);
}

#endif
