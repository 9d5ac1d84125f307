// SPDX-License-Identifier: Apache-2.0
/*
 * shared_owner.c - the processes at a shared pool, and which of them are alive.
 *
 * Each has an opening of the file that nobody else has, and with it a lock on one byte of the
 * file, which the kernel drops when the process is gone, however it went. The byte is its index;
 * an incarnation is counted up each time that an index is taken, and both together, the owner,
 * stand in the words of slots. Who looks finds an owner dead if its byte is not locked, or if the
 * incarnation is another one by now.
 *
 * Between a lock and the new incarnation the owner before looks alive still: that is a slot freed
 * later, never one freed early. A pid would not do: it is used again, and means something else in
 * each container.
 */
#include "base/error.h"
#include "base/os.h"
#include "pool/shared.h"

#include <errno.h>

static uint32_t index_of(uint32_t owner) {
    return owner >> OWNER_INCARNATION_BITS;
}

/* The first byte that nobody has locked; SHARED_OWNERS: there is none, or *reason. */
static uint32_t take_index(const struct shared *shared, int *reason) {
    uint32_t index = 0;
    do
        *reason = os.file_lock(shared->life, index);
    while (*reason == EAGAIN && ++index < SHARED_OWNERS);
    return *reason ? SHARED_OWNERS : index;
}

static void take_incarnation(struct shared *shared, uint32_t index) {
    _Atomic uint32_t *word = &shared->control->incarnations[index];
    /* release: who sees it sees the lock; nobody else writes here while we have that */
    uint32_t last = atomic_load_explicit(word, memory_order_relaxed) % OWNER_INCARNATIONS;
    uint32_t next = last + 1 < OWNER_INCARNATIONS ? last + 1 : 1;
    atomic_store_explicit(word, next, memory_order_release);
    shared->me = index << OWNER_INCARNATION_BITS | next;
}

/* Nobody else has the place: its byte is locked by this process's opening. A program that closed
 * that has lost the lock, and the next process may have taken the index. */
static bool has_place(const struct shared *shared) {
    return shared_has(shared, shared->life) &&
           os.file_lock(shared->life, index_of(shared->me)) == 0;
}

/* Another number there comes of a wild write, and would make this process look dead as long as it
 * lives; or it is that of who has the place by now, whom the old one would make look dead. */
static int keep_incarnation(const struct shared *shared) {
    _Atomic uint32_t *word = &shared->control->incarnations[index_of(shared->me)];
    uint32_t mine = shared->me % OWNER_INCARNATIONS;
    if (atomic_load_explicit(word, memory_order_relaxed) == mine)
        return 0;
    if (!has_place(shared))
        return error_set(EBB_E_SHARED, "pool '%s': this process has no place there any more: "
                         "descriptor %d, which locked it, was closed, not by the pool",
                         shared->pool->name, shared->life);
    atomic_store_explicit(word, mine, memory_order_release);
    return 0;
}

static int cannot_open_again(const struct shared *shared, int reason) {
    const char *why = reason == ENOENT ? ": that takes /proc, which is not mounted" : "";
    return error_set(EBB_E_MEMORY, "pool '%s': its file cannot be opened once more, error %d%s",
                     shared->pool->name, reason, why);
}

int shared_identify(struct shared *shared) {
    int reason = ENOMEM;
    if (shared->me)
        return keep_incarnation(shared);
    if (shared_check_file(shared) != 0)
        return error_latest();
    if (!os.allow(OS_OWNER) || (reason = os.file_again(shared->fd, &shared->life)) != 0) {
        shared->life = -1;
        return cannot_open_again(shared, reason);
    }
    os.pass("owner: lock");
    uint32_t index = take_index(shared, &reason);
    if (index == SHARED_OWNERS) {
        os.file_close(shared->life);
        shared->life = -1;
        return error_set(EBB_E_MEMORY, "pool '%s': no place for another process: %u have one, "
                         "error %d", shared->pool->name, SHARED_OWNERS, reason);
    }
    os.pass("owner: incarnation");
    take_incarnation(shared, index);
    os.pass("owner: done");
    return 0;
}

bool shared_is_alive(const struct shared *shared, uint32_t owner, struct shared_living *living) {
    uint32_t index = index_of(owner), incarnation = owner % OWNER_INCARNATIONS;
    uint64_t *found = &living->found[index / 64], bit = (uint64_t)1 << index % 64;
    bool locked = (*found & bit) != 0;
    if (index == index_of(shared->me))
        return owner == shared->me || !has_place(shared);
    if (!locked && (!shared_has(shared, shared->life) ||
                    os.file_is_locked(shared->life, index, &locked) != 0))
        return true; /* not known */
    if (locked)
        *found |= bit;
    /* acquire: pairs with take_incarnation() */
    return locked && incarnation == atomic_load_explicit(&shared->control->incarnations[index],
                                                         memory_order_acquire);
}

void shared_forget_owner(struct shared *shared, bool closes) {
    if (closes)
        shared_close(shared, shared->life); /* a parent has it still, and with it the lock */
    shared->life = -1;
    shared->me = 0;
}
