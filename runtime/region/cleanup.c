// SPDX-License-Identifier: Apache-2.0
/*
 * cleanup.c - callbacks that run when a region ends (see ebb/cleanup.h).
 *
 * Invariant: a node is in the list that its `list` names, or in none. A node leaves the list
 * before its callback runs, so what the callback registers or removes is seen at once. While one
 * runs, the region and all above it are `closing` and cannot be closed.
 */
#include "base/error.h"
#include "pool/shared.h"
#include "region/region.h"

int ebb_cleanup_add(ebb_region handle, struct ebb_cleanup *node) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    if (!node || !node->run)
        return error_set(EBB_E_ARGUMENT, "cleanup %p of region '%s' has no callback", (void *)node,
                         region->name);
    if (node->list)
        return error_set(EBB_E_DUPLICATE, "cleanup %p is registered already", (void *)node);
    node->serial = region->mark_serial;
    node->list = &region->cleanups;
    node->prev = NULL;
    node->next = region->cleanups;
    if (node->next)
        node->next->prev = node;
    region->cleanups = node;
    return 0;
}

int ebb_cleanup_remove(struct ebb_cleanup *node) {
    if (!node)
        return error_set(EBB_E_ARGUMENT, "removal of a NULL cleanup");
    if (!node->list)
        return 0;
    if (node->prev)
        node->prev->next = node->next;
    else
        *node->list = node->next;
    if (node->next)
        node->next->prev = node->prev;
    node->list = NULL;
    return 0;
}

int ebb_cleanup_run(struct ebb_cleanup *node) {
    if (!node)
        return error_set(EBB_E_ARGUMENT, "run of a NULL cleanup");
    if (!node->list)
        return 0;
    ebb_cleanup_remove(node);
    return node->run(node->data);
}

static void begin_closing(struct region *region) {
    for (; region; region = region->parent)
        region->closing++;
}

static void end_closing(struct region *region) {
    for (; region; region = region->parent)
        region->closing--;
}

void cleanup_run_newer(struct region *region, uint64_t serial, struct ebb_closed *closed) {
    if (pool_is_lost(region->pool))
        region->cleanups = NULL; /* nodes in shared memory: the parent's list, which it runs */
    if (!region->cleanups || region->cleanups->serial < serial)
        return;
    begin_closing(region);
    while (region->cleanups && region->cleanups->serial >= serial) {
        int result = ebb_cleanup_run(region->cleanups);
        if (result && !closed->failed++)
            closed->first_error = result;
    }
    end_closing(region);
}

int region_closed(const struct ebb_closed *closed) {
    if (!closed->failed)
        return 0;
    return error_set(EBB_E_CLEANUP, "%zu cleanups failed, the first returned %d", closed->failed,
                     closed->first_error);
}
