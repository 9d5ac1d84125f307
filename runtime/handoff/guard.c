// SPDX-License-Identifier: Apache-2.0
/*
 * guard.c - fences of streams that read what is in a lease.
 *
 *     copy to the device; ebb_lease_guard(lease, device, stream); ebb_lease_drop(lease)
 *                                                                   '-> the slot waits
 *
 * One fence for each stream, recorded again when the same stream reads once more. What is the same
 * is a handle's word: one stands for a stream of each thread, and that of a stream that was
 * destroyed with work to do may be another's. So the stream first waits for what the fence was
 * about, which the same one has done by then, and the fence is about both.
 *
 * Guarding takes the pool's lock; looking whether they are passed does not, since the thread that
 * ends a lease has it alone. To hold a device may take the driver long, and so may to leave it:
 * neither is done with the lock. Invariant: a lease that is not held has no guards; its fences keep
 * their events, so a steady loop makes none.
 */
#include "handoff/guard.h"
#include "base/error.h"
#include "pool/fence.h"

#define PER_THREAD ((void *)2) /* CU_STREAM_PER_THREAD, cudaStreamPerThread */

static bool is_about(const struct lease_guard *guard, int device, void *stream) {
    return guard->device == device && guard->stream == stream &&
           (stream != PER_THREAD || pthread_equal(guard->thread, pthread_self()));
}

static struct lease_guard *find_guard(struct ebb_lease *lease, int device, void *stream) {
    for (uint32_t i = 0; i < lease->guarded; i++)
        if (is_about(&lease->guards[i], device, stream))
            return &lease->guards[i];
    if (lease->guarded < LEASE_GUARDS)
        return &lease->guards[lease->guarded];
    for (uint32_t i = 0; i < lease->guarded; i++)
        if (ebb_fence_is_done(&lease->guards[i].fence) == 1)
            return &lease->guards[i];
    error_set(EBB_E_BUSY, "%d streams read slot %u already, none of them is done", LEASE_GUARDS,
              lease->slot);
    return NULL;
}

/* What is taken before the lock, and left after it. */
struct holds {
    struct cuda_hold taken, left;
};

#define NEEDS_HOLD 1

/* A fence that was about another device is done. */
static int begin_fence(struct lease_guard *guard, int device, struct holds *holds) {
    int result =
        fence_is_unused(&guard->fence) ? 0 : fence_end_event(&guard->fence, &holds->left);
    if (!result)
        result = fence_begin(&guard->fence, &holds->taken);
    if (!result)
        guard->device = device;
    return result;
}

/* 0, NEEDS_HOLD, or the error. */
static int guard_locked(struct ebb_lease *lease, int device, void *stream, struct holds *holds) {
    struct lease_guard *guard = find_guard(lease, device, stream);
    if (!guard)
        return error_latest();
    bool begins = guard->device != device || fence_is_unused(&guard->fence);
    if (begins && !holds->taken.context)
        return NEEDS_HOLD;
    bool is_new = guard == &lease->guards[lease->guarded];
    int result = begins   ? begin_fence(guard, device, holds)
                 : is_new ? 0
                          : fence_await(&guard->fence, stream);
    if (!result)
        result = ebb_fence_record(&guard->fence, device, stream);
    if (result)
        return result;
    lease->guarded += is_new;
    guard->stream = stream;
    guard->thread = pthread_self();
    return 0;
}

static int guard_with(struct ebb_lease *lease, int device, void *stream, struct holds *holds) {
    struct shared *shared = lease->table->shared;
    shared_lock(shared);
    (void)shared_settle_locked(shared); /* this may be all that the process does for long */
    int result = guard_locked(lease, device, stream, holds);
    shared_unlock(shared);
    return result;
}

int ebb_lease_guard(struct ebb_lease *lease, int device, void *stream) {
    struct holds holds = {{.context = NULL}, {.context = NULL}};
    if (!lease)
        return error_set(EBB_E_ARGUMENT, "no lease for device %d to read", device);
    if (lease->table->forks != fork_count())
        return error_set(EBB_E_STALE, "the lease of slot %u is of the process that this one was "
                         "forked from", lease->slot);
    int result = cuda_start(); /* with no lock held */
    if (!result)
        result = guard_with(lease, device, stream, &holds);
    if (result == NEEDS_HOLD)
        result = cuda_take(&holds.taken, device);
    if (!result && holds.taken.context)
        result = guard_with(lease, device, stream, &holds);
    cuda_leave(&holds.taken);
    cuda_leave(&holds.left);
    return result;
}

bool guard_is_passed(struct ebb_lease *lease) {
    error_mute();
    while (lease->guarded && ebb_fence_is_done(&lease->guards[lease->guarded - 1].fence) == 1)
        lease->guarded--;
    error_unmute();
    return lease->guarded == 0;
}

bool guard_end(struct lease_table *table) {
    bool all = true;
    for (uint32_t i = 0; i < table->shared->slot_count; i++)
        for (unsigned guard = 0; guard < LEASE_GUARDS; guard++)
            all = ebb_fence_end(&table->leases[i].guards[guard].fence) == 0 && all;
    return all;
}
