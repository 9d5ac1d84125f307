// SPDX-License-Identifier: Apache-2.0
/* fence.h - what the library itself asks of fences (see ebb/device.h, fence.c). */
#ifndef EBB_POOL_FENCE_H
#define EBB_POOL_FENCE_H

#include <ebb/device.h>

/* What the stream is asked from now on waits for what the fence was recorded behind: a fence that
 * is recorded then is about both. 0, or EBB_E_DEVICE. */
int fence_await(const struct ebb_fence *fence, void *stream);

#endif
