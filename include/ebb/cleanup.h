// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/cleanup.h - what else has to happen when a region ends.
 *
 * A cleanup is a callback that runs when its region closes or is reset: after the region's children
 * are closed, before its memory goes, last in first out. The node is the caller's (in the region
 * itself, or anywhere that lives as long, but not in shared memory, where other processes could
 * change what is called), so registering cannot fail for want of memory. A cleanup may allocate in
 * the region, register more cleanups (they run too) and run or remove others; it cannot close,
 * reset or rewind the region that it is called for (EBB_E_BUSY). Closing always completes: an error
 * is counted and reported, the rest goes on, and no thread is cancelled in a cleanup, but at the
 * next such point behind the call. A rewind runs the cleanups that were registered after the mark.
 *
 * Source of the semantics: APR's apr_pool_cleanup_register(), less its separate pre-cleanups.
 */
#ifndef EBB_CLEANUP_H
#define EBB_CLEANUP_H

#include <ebb/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One cleanup. The caller fills `run` and `data` and sets `list` to NULL, as an initializer does;
 * it is NULL again when the node runs or was removed. The rest is ebb's while it is registered.
 */
struct ebb_cleanup {
    int (*run)(void *data);         /* 0, or a code of the caller's that close reports */
    void *data;
    struct ebb_cleanup *next, *prev;
    struct ebb_cleanup **list;      /* head of the list it is in; NULL: not registered */
    uint64_t serial;                /* of the newest mark when it was registered */
};

/*
 * Registers `node` with the region. Valid until it ran, was removed, or the region ended.
 * Constant time. One thread at a time.
 * Errors: EBB_E_STALE, EBB_E_ARGUMENT (node or callback NULL), EBB_E_DUPLICATE (registered),
 * EBB_E_KIND (the node lies in the slot of a shared pool).
 */
EBB_API int ebb_cleanup_add(ebb_region region, struct ebb_cleanup *node);

/* Takes the node out without running it; 0 also if it is not registered. Constant time.
 * EBB_E_ARGUMENT for NULL. */
EBB_API int ebb_cleanup_remove(struct ebb_cleanup *node);

/* Takes the node out and runs it now, as the end of its region would: EBB_E_BUSY is for it there,
 * too. Returns what it returned, 0 if it is not registered. Time linear in the region's depth.
 * EBB_E_ARGUMENT for NULL. */
EBB_API int ebb_cleanup_run(struct ebb_cleanup *node);

/* What went wrong while a region and its descendants closed. */
struct ebb_closed {
    size_t failed;   /* count of cleanups that returned anything but 0 */
    int first_error; /* what the first of them returned */
};

/*
 * As ebb_region_close(), with the same errors, and tells what went wrong. Cleanups that fail keep
 * no region open: EBB_E_CLEANUP says that there were some. `closed` may be NULL, and must not lie
 * in what ends: it is written after that.
 */
EBB_API int ebb_region_close_reporting(ebb_region region, struct ebb_closed *closed);

#ifdef __cplusplus
}
#endif

#endif
