// SPDX-License-Identifier: Apache-2.0
/*
 * fence.c - fences: an event of a stream, and the hold on the device that it needs.
 *
 * Invariant: a fence has both, or is all zero.
 */
#include "pool/fence.h"
#include "base/error.h"
#include "pool/cuda.h"

#include <assert.h>
#include <string.h>

struct fence {
    struct cuda_hold hold;
    void *event;
};

static_assert(sizeof(struct fence) == sizeof(struct ebb_fence), "a fence fits what callers keep");

static struct fence fence_of(const struct ebb_fence *place) {
    struct fence fence;
    memcpy(&fence, place, sizeof fence);
    return fence;
}

int fence_begin(struct ebb_fence *place, struct cuda_hold *hold) {
    struct fence fence = {.hold = *hold};
    int result = cuda_event_new(&fence.hold, &fence.event);
    if (result)
        return result;
    memcpy(place, &fence, sizeof fence);
    hold->context = NULL;
    return 0;
}

int fence_end_event(struct ebb_fence *place, struct cuda_hold *hold) {
    struct fence fence = fence_of(place);
    int result = cuda_event_end(&fence.hold, fence.event);
    if (result)
        return result;
    *hold = fence.hold;
    memset(place, 0, sizeof *place);
    return 0;
}

bool fence_is_unused(const struct ebb_fence *place) {
    return !fence_of(place).event;
}

/* An event that was never recorded is done, so the fence says what it said if recording fails. */
static int record_first(struct ebb_fence *place, int device, void *stream) {
    struct cuda_hold hold = {.context = NULL};
    int result = cuda_take(&hold, device);
    if (!result)
        result = fence_begin(place, &hold);
    cuda_leave(&hold);
    return result ? result : ebb_fence_record(place, device, stream);
}

int ebb_fence_record(struct ebb_fence *place, int device, void *stream) {
    if (!place)
        return error_set(EBB_E_ARGUMENT, "a NULL fence on device %d", device);
    struct fence fence = fence_of(place);
    if (!fence.event)
        return record_first(place, device, stream);
    if (fence.hold.ordinal != device)
        return error_set(EBB_E_DEVICE, "a fence of device %d is asked to be of device %d: end it "
                         "first", fence.hold.ordinal, device);
    return cuda_event_record(&fence.hold, fence.event, stream);
}

int fence_await(const struct ebb_fence *place, void *stream) {
    struct fence fence = fence_of(place);
    return fence.event ? cuda_event_await(&fence.hold, fence.event, stream) : 0;
}

int ebb_fence_is_done(struct ebb_fence *place) {
    bool done = true;
    if (!place)
        return error_set(EBB_E_ARGUMENT, "is a NULL fence done?");
    struct fence fence = fence_of(place);
    int result = fence.event ? cuda_event_query(&fence.hold, fence.event, &done) : 0;
    return result ? result : done;
}

int ebb_fence_end(struct ebb_fence *place) {
    if (!place)
        return error_set(EBB_E_ARGUMENT, "the end of a NULL fence");
    struct cuda_hold hold = {.context = NULL};
    int result = fence_is_unused(place) ? 0 : fence_end_event(place, &hold);
    cuda_leave(&hold);
    return result;
}

int ebb_device_count(void) {
    int count;
    int result = cuda_count(&count);
    return result ? result : count;
}
