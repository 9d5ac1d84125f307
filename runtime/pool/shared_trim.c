// SPDX-License-Identifier: Apache-2.0
/*
 * shared_trim.c - what free slots of a shared pool have goes back, and slots of the dead are free.
 *
 * Pages of a slot go while this process has it claimed, so that nobody else is in it: from the last
 * slot on, as who looks for one begins with the first. Slots that others have stay as they are.
 *
 * Invariant: what is said to be left are pages that the next call could give.
 */
#include "base/error.h"
#include "base/os.h"
#include "base/size.h"
#include "pool/shared.h"

/* Bytes in free slots. Those that stay are in slots that are still something else for this
 * process, as after a fork, or that the system did not take. */
struct cached {
    size_t all, staying;
};

static struct cached count_cached(const struct shared *shared) {
    struct cached cached = {0, 0};
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        const struct shared_slot *slot = &shared->slots[i];
        size_t bytes = shared_backed(slot);
        if (word_state(atomic_load(&shared_record(slot)->word)) != SLOT_FREE)
            continue;
        cached.all += bytes;
        cached.staying += shared_may_claim(slot) ? 0 : bytes;
    }
    return cached;
}

/* What is refused takes no time of the bound: else it would be all that is ever tried. */
static size_t trim_locked(struct shared *shared, size_t target, uint64_t deadline_ns,
                          struct cached *cached) {
    size_t given = 0;
    for (uint32_t i = shared->slot_count; i > 0 && cached->all > target; i--) {
        struct shared_slot *slot = &shared->slots[i - 1];
        size_t backed = shared_backed(slot);
        if (!backed || !shared_claim(slot))
            continue;
        size_t bytes = shared_cool_slot(slot);
        shared_give_up(slot);
        given += bytes;
        cached->all -= size_smaller(bytes, cached->all);
        cached->staying += bytes ? 0 : backed;
        if (bytes && deadline_ns && os.now_ns() >= deadline_ns)
            break;
    }
    return given;
}

size_t shared_trim(struct ebb_pool *pool, size_t target, uint64_t deadline_ns, size_t *left) {
    struct shared *shared = pool->shared;
    struct cached cached = {0, 0}; /* that can be given: nothing without the file */
    size_t given = 0;
    shared_lock(shared);
    if (shared_identify(shared) == 0 && shared_check_file(shared) == 0) {
        (void)shared_settle_locked(shared);
        shared_unpin_outdated(shared, deadline_ns);
        cached = count_cached(shared);
        given = trim_locked(shared, target, deadline_ns, &cached);
    }
    pthread_mutex_lock(&pool->lock); /* who reads counters has that alone */
    pool->given_back += given;
    pthread_mutex_unlock(&pool->lock);
    size_t above = cached.all > target ? cached.all - target : 0;
    *left = size_smaller(above, cached.all - size_smaller(cached.staying, cached.all));
    shared_unlock(shared);
    return given;
}

size_t ebb_pool_reclaim(struct ebb_pool *pool, bool sent_too) {
    size_t count = 0;
    if (!pool || !pool_is_shared(pool)) {
        error_set(EBB_E_KIND, "pool '%s' is not shared: nothing to reclaim",
                  pool ? pool->name : "NULL");
        return 0;
    }
    struct shared *shared = pool->shared;
    shared_lock(shared);
    if (shared_identify(shared) == 0) {
        (void)shared_settle_locked(shared);
        count = shared_reclaim(shared, sent_too);
    }
    shared_unlock(shared);
    return count;
}
