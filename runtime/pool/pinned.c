// SPDX-License-Identifier: Apache-2.0
/*
 * pinned.c - the kind of memory that stays where it is, so that a device can read it by itself (see
 * kind.h, whole.c).
 *
 * Where there is a CUDA driver with a device, slabs are registered with it: copies go without a
 * detour, and other libraries of the process (torch) see that they may. Where there is none, they
 * are locked, which takes of RLIMIT_MEMLOCK. Which of both is settled when the pool is made, and
 * never changes.
 *
 * What a forked child has of them is a copy that is neither: a slab remembers how many forks led to
 * the process that pinned it, and no other counts it or ends it.
 */
#include "base/error.h"
#include "base/os.h"
#include "pool/chunk.h"
#include "pool/fork.h"
#include "pool/pinned.h"
#include "pool/shared.h"

#include <ebb/device.h>
#include <string.h>
#include <sys/resource.h>

static atomic_size_t locked; /* by all pools of this process */

int pin_begin(struct cuda_hold *hold, int device) {
    error_mute();
    bool driver = cuda_start() == 0;
    error_unmute();
    return driver ? cuda_take(hold, device) : 0;
}

static int report_lock(size_t bytes, int reason) {
    struct rlimit limit = {.rlim_cur = 0};
    size_t others = atomic_load_explicit(&locked, memory_order_relaxed);
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    return error_set(EBB_E_MEMORY, "%zu bytes of pages cannot be locked: %s; RLIMIT_MEMLOCK is "
                     "%llu bytes, pinned pools of this process have locked %zu (no CUDA driver%s: "
                     "pages are locked, not registered)", bytes, strerror(reason),
                     (unsigned long long)limit.rlim_cur, others,
                     cuda_is_inherited() ? " in a fork of who has one" : "");
}

int pin_pages(const struct cuda_hold *hold, void *addr, size_t bytes) {
    if (hold->context)
        return cuda_register(hold, addr, bytes);
    int reason = os.lock(addr, bytes);
    if (reason)
        return report_lock(bytes, reason);
    atomic_fetch_add_explicit(&locked, bytes, memory_order_relaxed);
    return 0;
}

static bool read_limit(const struct cuda_hold *hold, struct rlimit *limit) {
    return !hold->context && getrlimit(RLIMIT_MEMLOCK, limit) == 0 &&
           limit->rlim_cur != RLIM_INFINITY;
}

size_t pin_room(const struct cuda_hold *hold) {
    struct rlimit limit;
    size_t now = atomic_load_explicit(&locked, memory_order_relaxed);
    return read_limit(hold, &limit) ? limit.rlim_cur - size_smaller(limit.rlim_cur, now) : 0;
}

bool pin_is_limited(const struct cuda_hold *hold) {
    struct rlimit limit;
    return read_limit(hold, &limit);
}

bool unpin_pages(const struct cuda_hold *hold, void *addr, size_t bytes) {
    if (hold->context)
        return cuda_unregister(hold, addr) == 0;
    os.unlock(addr, bytes);
    atomic_fetch_sub_explicit(&locked, bytes, memory_order_relaxed);
    return true;
}

void pin_fork_child(void) {
    atomic_store_explicit(&locked, 0, memory_order_relaxed); /* it has no other threads yet */
}

static int begin(struct pages *pages, const struct ebb_pool_options *options) {
    return pin_begin(&pages->cuda, options->device);
}

static int warm(struct pages *pages, uintptr_t addr, size_t bytes) {
    pages_slab_at(pages, addr)->slab.forks = fork_count();
    return pin_pages(&pages->cuda, (void *)addr, bytes);
}

static bool cool(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given) {
    bool is_here = pages_slab_at(pages, addr)->slab.forks == fork_count();
    if (is_here && !unpin_pages(&pages->cuda, (void *)addr, bytes))
        return false;
    *given += bytes;
    return true;
}

const struct kind kind_pinned = {.name = "pinned",
                                 .whole = true,
                                 .begin = begin,
                                 .take = kind_take_exactly,
                                 .warm = warm,
                                 .cool = cool,
                                 .give = kind_give_chunk};

static uintptr_t take_huge(struct pages *pages, size_t least, size_t *bytes) {
    uintptr_t addr = kind_take_exactly(pages, least, bytes);
    if (addr)
        os.advise_huge((void *)addr, *bytes);
    return addr;
}

const struct kind kind_pinned_huge = {.name = "pinned, huge",
                                      .whole = true,
                                      .begin = begin,
                                      .take = take_huge,
                                      .warm = warm,
                                      .cool = cool,
                                      .give = kind_give_anew};

/* Bytes that are pinned now, and how in *hold; false: the pool is not. Lock held. */
static bool look(const struct ebb_pool *pool, size_t *bytes, const struct cuda_hold **hold) {
    const struct pages *pages = &pool->pages;
    *bytes = 0;
    *hold = &pages->cuda;
    if (pages->kind != &kind_pinned && pages->kind != &kind_pinned_huge)
        return false;
    for (const struct ebb_piece *slab = pages->slabs; slab; slab = slab->next)
        *bytes += slab->slab.forks == fork_count() ? slab->bytes : 0;
    return !pages->cuda.context || cuda_is_here(&pages->cuda);
}

int ebb_pool_pinning(struct ebb_pool *pool, size_t *bytes) {
    const struct cuda_hold *hold;
    size_t now;
    if (!pool)
        return error_set(EBB_E_ARGUMENT, "how is a NULL pool pinned?");
    pthread_mutex_t *lock = pool_is_shared(pool) ? &pool->shared->lock : &pool->lock;
    fork_settle();
    pthread_mutex_lock(lock);
    bool pinned = pool_is_shared(pool) ? shared_is_pinned(pool->shared, &now, &hold)
                                       : look(pool, &now, &hold);
    bool registered = hold->context != NULL;
    pthread_mutex_unlock(lock);
    if (bytes)
        *bytes = pinned ? now : 0;
    return !pinned ? EBB_PINNING_NONE : registered ? EBB_PINNING_REGISTERED : EBB_PINNING_LOCKED;
}
