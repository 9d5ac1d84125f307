// SPDX-License-Identifier: Apache-2.0
/*
 * safe.c - the safe of a region in shared memory.
 *
 * All processes that have the memory file can write to all of a slot, at any time. So nothing that
 * ebb follows as a pointer, calls, or takes for a size while the region is open may lie there. The
 * safe is a second region, a root of the default pool that only ebb knows: it has the heads of
 * objects and storages, the pointers to members, integers that say where others are, records of
 * adoptions. Its blocks are the region's for all who ask (block_owner(), block_find()),
 * end with what they are for, and count in the safe and in the budgets above the region. It is
 * opened when it is first needed and closed by the last cleanup of the region.
 *
 * Invariant: no object lies in a shared region's own pages; what looks like one there is a block.
 */
#include "region/safe.h"
#include "base/error.h"
#include "pool/shared.h"
#include "region/block.h"
#include "region/cleanup.h"
#include "region/exhausted.h"
#include "region/kinds.h"
#include "region/remote.h"

#include <stdio.h>

/* As deep as a child of a child: its end is not the end of a step for the pool that it is in. */
#define SAFE_DEPTH 2

/* The last cleanup of the region, when its children are closed. */
static int close_safe(void *data) {
    struct region *region = data, *safe = region->safe;
    struct ebb_closed closed = {0, 0};
    region->safe = NULL;
    kinds_end_all(region); /* the heads of its objects go */
    region_close(safe, &closed);
    return closed.first_error;
}

static void tie(struct region *safe, struct region *region) {
    safe->budget = region->budget;
    safe->metered |= region->metered;
    safe->depth = SAFE_DEPTH;
    safe->safe_of = region;
    safe->mixed = true;
    region->safe = safe;
    region->door = (struct ebb_cleanup){.run = close_safe, .data = region};
    cleanup_enlist_last(region, &region->door);
}

struct region *safe_open(struct region *region) {
    char name[REGION_NAME_BYTES + sizeof "safe of "];
    if (region->safe)
        return region->safe;
    snprintf(name, sizeof name, "safe of %s", region->name);
    struct ebb_region_options options = {.size = sizeof options,
                                         .pool = pool_for_work(region->pool),
                                         .name = name,
                                         .sites = region->sites};
    if (!options.pool)
        return NULL;
    struct region *safe = region_peek(ebb_region_open(&options));
    if (safe)
        tie(safe, region);
    return safe;
}

bool safe_is_needed(const void *address) {
    if (!range_holds((uintptr_t)address))
        return shared_may_view(address) && shared_slot_at(address);
    const struct ebb_piece *run = range_run_at((uintptr_t)address);
    return run ? region_of_piece(run)->shared : shared_slot_at(address) != NULL;
}

/* What was refused, if others have released what was in the way; else it is reported. */
static __attribute__((noinline)) void *place_again(struct region *region, struct region *safe,
                                                   size_t bytes, size_t align) {
    void *block = remote_makes_room(region) ? block_place(safe, bytes, align) : NULL;
    if (block)
        error_take_back();
    else
        exhausted_report(safe, bytes, align);
    return block;
}

void *block_place_private(struct region *region, size_t bytes, size_t align) {
    struct region *safe = safe_for(region);
    void *block = safe ? block_place(safe, bytes, align) : NULL;
    return block || !safe ? block : place_again(region, safe, bytes, align);
}
