// SPDX-License-Identifier: Apache-2.0
/*
 * cleanup.c - callbacks that run when a region ends (see ebb/cleanup.h).
 *
 * Invariant: a node is in the list that its `list` names, or in none. A node leaves the list
 * before its callback runs, so what the callback registers or removes is seen at once. While one
 * runs, the region and all above it are `closing` and cannot be closed, and the thread is not
 * cancelled. No node lies in shared memory (safe.h): a list is followed without a look, and what is
 * in it is called.
 */
#include "region/cleanup.h"
#include "base/cancel.h"
#include "base/error.h"
#include "pool/shared.h"
#include "region/safe.h"

void cleanup_enlist(struct region *region, struct ebb_cleanup *node) {
    node->serial = region->mark_serial;
    node->list = &region->cleanups;
    node->prev = NULL;
    node->next = region->cleanups;
    if (node->next)
        node->next->prev = node;
    region->cleanups = node;
}

void cleanup_enlist_last(struct region *region, struct ebb_cleanup *node) {
    struct ebb_cleanup *oldest = region->cleanups;
    while (oldest && oldest->next)
        oldest = oldest->next;
    node->serial = 0; /* older than any mark */
    node->list = &region->cleanups;
    node->prev = oldest;
    node->next = NULL;
    if (oldest)
        oldest->next = node;
    else
        region->cleanups = node;
}

void cleanup_delist(struct ebb_cleanup *node) {
    if (!node->list)
        return;
    if (node->prev)
        node->prev->next = node->next;
    else
        *node->list = node->next;
    if (node->next)
        node->next->prev = node->prev;
    node->list = NULL;
}

int ebb_cleanup_add(ebb_region handle, struct ebb_cleanup *node) {
    struct region *region = region_find(handle);
    if (!region)
        return EBB_E_STALE;
    if (safe_is_needed(node))
        return error_set(EBB_E_KIND, "cleanup %p of region '%s' lies in shared memory, where other "
                         "processes could change what it calls", (void *)node, region->name);
    if (!node || !node->run)
        return error_set(EBB_E_ARGUMENT, "cleanup %p of region '%s' has no callback", (void *)node,
                         region->name);
    if (node->list)
        return error_set(EBB_E_DUPLICATE, "cleanup %p is registered already", (void *)node);
    cleanup_enlist(region, node);
    return 0;
}

/* What lies in shared memory never is: whatever it says, nobody looks at it. */
static bool is_registered(const struct ebb_cleanup *node) {
    return !safe_is_needed(node) && node->list;
}

int ebb_cleanup_remove(struct ebb_cleanup *node) {
    if (!node)
        return error_set(EBB_E_ARGUMENT, "removal of a NULL cleanup");
    if (is_registered(node))
        cleanup_delist(node);
    return 0;
}

/* Whoever runs it may have muted errors; those of what it calls are its own business. */
static int run(struct ebb_cleanup *node) {
    unsigned muted = error_muted;
    int cancels = cancel_defer();
    cleanup_delist(node);
    error_muted = 0;
    int result = node->run(node->data);
    error_muted = muted;
    cancel_restore(cancels);
    return result;
}

void region_begin_work(struct region *region) {
    for (; region; region = region->parent)
        region->closing++;
}

void region_end_work(struct region *region) {
    for (; region; region = region->parent)
        region->closing--;
}

/* Whose list of cleanups that is. */
static struct region *region_of_list(struct ebb_cleanup **list) {
    return (struct region *)(void *)((char *)list - offsetof(struct region, cleanups));
}

bool cleanup_is_lost(const struct ebb_cleanup *node) {
    return node->list && pool_is_lost(region_of_list(node->list)->pool);
}

int ebb_cleanup_run(struct ebb_cleanup *node) {
    if (!node)
        return error_set(EBB_E_ARGUMENT, "run of a NULL cleanup");
    if (!is_registered(node))
        return 0;
    struct region *region = region_of_list(node->list);
    region_begin_work(region);
    int result = run(node);
    region_end_work(region);
    return result;
}

/* None of those that are newer runs: that is for the process that this one was forked from. */
static void forget(struct region *region, uint64_t serial) {
    while (region->cleanups && region->cleanups->serial >= serial)
        if (!region->hooks || !region->hooks->part(region->cleanups))
            cleanup_delist(region->cleanups);
    if (region->safe && !is_registered(&region->door))
        cleanup_enlist_last(region, &region->door);
}

static void run_newer(struct region *region, uint64_t serial, struct ebb_closed *closed) {
    bool lost = false;
    while (region->cleanups && region->cleanups->serial >= serial) {
        if (!lost && pool_is_lost(region->pool)) { /* maybe since one of them forked */
            lost = true;
            forget(region, serial);
            continue;
        }
        if (region->cleanups == &region->door && region->children) {
            region_close_children(region, closed); /* which others have opened */
            continue;
        }
        int result = run(region->cleanups);
        if (result && !closed->failed++)
            closed->first_error = result;
    }
}

void cleanup_run_newer(struct region *region, uint64_t serial, struct ebb_closed *closed) {
    if (!region->cleanups || region->cleanups->serial < serial)
        return;
    region_begin_work(region);
    run_newer(region, serial, closed);
    region_end_work(region);
}

/* Those above that are at work already are so once. */
void cleanup_run_below(struct region *region, struct region **at_work,
                       struct ebb_closed *closed) {
    if (!region->cleanups)
        return;
    for (struct region *at = region; at != *at_work; at = at->parent)
        at->closing++;
    *at_work = region;
    run_newer(region, 0, closed);
}

void cleanup_end_work(const struct region *region, struct region **at_work) {
    if (*at_work == region)
        *at_work = region->parent;
}

int region_closed(const struct ebb_closed *closed) {
    if (!closed->failed)
        return 0;
    return error_set(EBB_E_CLEANUP, "%zu cleanups failed, the first returned %d", closed->failed,
                     closed->first_error);
}
