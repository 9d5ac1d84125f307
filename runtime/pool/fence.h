// SPDX-License-Identifier: Apache-2.0
/* fence.h - what the library itself asks of fences (see ebb/device.h, fence.c). */
#ifndef EBB_POOL_FENCE_H
#define EBB_POOL_FENCE_H

#include "pool/cuda.h"

#include <ebb/device.h>

/* What the stream is asked from now on waits for what the fence was recorded behind: a fence that
 * is recorded then is about both. 0, or EBB_E_DEVICE. */
int fence_await(const struct ebb_fence *fence, void *stream);

/* What is not to wait for the driver with a lock held: a hold that the caller has taken becomes an
 * unused fence's, with an event that was never recorded; and the event goes, so that the hold is
 * the caller's to leave. Both: 0, or EBB_E_DEVICE, and all is as it was. */
int fence_begin(struct ebb_fence *fence, struct cuda_hold *hold);
int fence_end_event(struct ebb_fence *fence, struct cuda_hold *hold);

/* True for one that was never recorded, or has ended. */
bool fence_is_unused(const struct ebb_fence *fence);

#endif
