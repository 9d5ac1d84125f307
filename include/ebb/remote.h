// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/remote.h - the one thing that other threads may do with a region: release its blocks.
 *
 * A region belongs to one thread at a time. A block of it that another thread was given, and is
 * done with, goes to a list of the region without a lock; the owner takes it from there when it
 * next looks.
 */
#ifndef EBB_REMOTE_H
#define EBB_REMOTE_H

#include <ebb/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Releases a block of a region that another thread is using. The caller must not touch it again.
 * Its place is reused once the owner looks, which it does when the region needs room; when one of
 * its blocks is resized or reallocated; when the region is read, rewound, reset or closed; and when
 * a request or resize anywhere in its tree is refused for want of room: that is then tried again.
 *
 * Until then the block counts towards limits. (Some calls do not make the owner look before a limit
 * refuses them: promotions, copies of objects, imports, ebb_tensor_take(); in shared memory also
 * tensors without elements, and composing.) And its first word is the library's, except in shared
 * memory: so to pass anything but a live block of the region is a mistake, as with free(). One that
 * is noticed is counted (ebb_site_stats.strays); blocks handed in before it may stay unreleased.
 *
 * No lock. Any thread, while the region stays open.
 * NULL: 0, nothing. EBB_E_FOREIGN: not memory of ebb. EBB_E_STALE: the region is closed; or it was
 * handed over (ebb/handoff.h), and the block lives on: release it by the new handle.
 * EBB_E_DEVICE, EBB_E_MEASURING: its blocks have no first word on the host.
 */
EBB_API int ebb_region_release_remote(ebb_region region, void *block);

#ifdef __cplusplus
}
#endif

#endif
