// SPDX-License-Identifier: Apache-2.0
/*
 * shared_pin.c - slots of a shared pool are pinned by who opens what was sent in them.
 *
 *     slot     |      pages that the file has       |          none          |
 *               <- pinned by this process, as one ->
 *
 * A consumer pins a slot when it first opens a parcel of it, with all pages that the file has there
 * by then: so a loop that goes round pins nothing. If that is refused, what was sent must do: there
 * may be many more. A slot that has got more pages since is pinned anew. So is one that was
 * trimmed: its old pages are not the file's any more, and a device would go on reading those. If
 * another process did that, a trim here lets go of them, too. Who only sends pins nothing, and
 * needs no driver.
 *
 * A slot that is mapped once more, for a region, stays pinned where it was until the next parcel of
 * it is opened: what writes needs nothing of the driver, which may refuse.
 *
 * Invariant: slot->pinned bytes from slot->pinned_at are pinned as one stretch, in this process
 * only. A slot is not pinned anew, nor elsewhere, while a lease of it is out. All under the lock of
 * the shared pool, but what the driver does to start.
 */
#include "base/error.h"
#include "base/size.h"
#include "pool/pinned.h"
#include "pool/shared.h"

bool shared_unpin(struct shared_slot *slot) {
    void *at = (void *)slot->pinned_at;
    if (slot->pinned && !unpin_pages(&slot->shared->cuda, at, slot->pinned))
        return false;
    slot->pinned = 0;
    return true;
}

static bool unpin_all(struct shared *shared) {
    bool all = true;
    for (uint32_t i = 0; i < shared->slot_count; i++)
        all = shared_unpin(&shared->slots[i]) && all;
    if (all) {
        cuda_leave(&shared->cuda);
        shared->pinning_is_settled = false;
    }
    return all;
}

/* Others have trimmed it: a device has the old pages, which nobody reads there any more. */
static bool is_outdated(const struct shared_slot *slot) {
    uint32_t trims = atomic_load_explicit(&shared_record(slot)->trims, memory_order_relaxed);
    return slot->pinned && slot->pinned_trims != trims && shared_may_claim(slot);
}

void shared_unpin_outdated(struct shared *shared, uint64_t deadline_ns) {
    bool over = false;
    for (uint32_t i = 0; i < shared->slot_count && !over; i++) {
        struct shared_slot *slot = &shared->slots[i];
        if (is_outdated(slot) && shared_unpin(slot)) /* what is refused stays for the next time */
            over = deadline_ns && os.now_ns() >= deadline_ns;
    }
}

bool shared_part(struct shared *shared) {
    const struct shared_hooks *hooks = atomic_load(&shared->hooks);
    shared_lock(shared);
    bool all = (!hooks || hooks->part(shared)) && unpin_all(shared);
    shared_unlock(shared);
    return all;
}

void shared_forget_pins(struct shared *shared) {
    for (uint32_t i = 0; i < shared->slot_count; i++)
        shared->slots[i].pinned = 0;
    shared->cuda = (struct cuda_hold){.context = NULL};
    shared->pinning_is_settled = false;
}

bool shared_is_pinned(const struct shared *shared, size_t *bytes, const struct cuda_hold **hold) {
    *bytes = 0;
    *hold = &shared->cuda;
    for (uint32_t i = 0; i < shared->slot_count; i++)
        *bytes += shared->slots[i].pinned;
    return shared->pinning_is_settled;
}

/* What the file has pages for, and no less than `bytes`. */
static size_t stretch_of(struct shared_slot *slot, size_t bytes) {
    uint64_t backed = atomic_load_explicit(&shared_record(slot)->backed, memory_order_relaxed);
    size_t all = size_align_down(size_smaller(backed, slot->shared->slot_bytes), EBB_PAGE);
    return shared_confirm(slot, &all) == 0 ? size_larger(bytes, all) : bytes;
}

static int pin(struct shared_slot *slot, size_t bytes) {
    uintptr_t at = shared_start(slot);
    int result = bytes ? pin_pages(&slot->shared->cuda, (void *)at, bytes) : 0;
    if (!result) {
        slot->pinned = bytes;
        slot->pinned_at = at;
        slot->pinned_trims = slot->trims;
    }
    return result;
}

/* More than is needed now; false: there is no more, or it was refused, which is no error. */
static bool pin_all(struct shared_slot *slot, size_t bytes) {
    error_mute();
    size_t all = stretch_of(slot, bytes);
    bool done = all > bytes && pin(slot, all) == 0;
    error_unmute();
    return done;
}

/* The first bytes are, where they are read, and as the file has them. */
static bool is_pinned(const struct shared_slot *slot, size_t bytes) {
    return bytes <= slot->pinned && slot->pinned_at == shared_start(slot) &&
           slot->pinned_trims == slot->trims;
}

static bool is_settled(struct shared *shared) {
    shared_lock(shared);
    bool settled = shared->pinning_is_settled;
    shared_unlock(shared);
    return settled;
}

/* The driver starts without the lock: see cuda_start(). No device reads what a child opens whose
 * forefather started it, so that goes on unsettled, and asks each time. */
int shared_settle_pinning(struct shared *shared) {
    struct cuda_hold hold = {.context = NULL};
    if (!shared->pins || is_settled(shared) || cuda_is_inherited())
        return 0;
    int result = pin_begin(&hold, shared->device);
    if (result || cuda_is_inherited()) /* as the driver may have said only now */
        return result;
    shared_lock(shared);
    if (!shared->pinning_is_settled) {
        shared->cuda = hold;
        shared->pinning_is_settled = true;
        hold.context = NULL;
    }
    shared_unlock(shared);
    cuda_leave(&hold); /* another thread was first */
    return 0;
}

int shared_pin(struct shared_slot *slot, size_t bytes) {
    if (!slot->shared->pinning_is_settled || is_pinned(slot, bytes) || cuda_is_inherited())
        return 0;
    if (!shared_unpin(slot))
        return error_latest();
    return pin_all(slot, bytes) ? 0 : pin(slot, bytes);
}
