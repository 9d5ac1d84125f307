// SPDX-License-Identifier: Apache-2.0
/*
 * plan.c - the users of a plan, and the pool that what is learnt lives in.
 *
 * A plan lies in a region of its own, which its last user closes, in whatever thread. Invariant:
 * nobody writes to a plan once it has two users, but to its counts of these and what is wanted.
 */
#include "region/plan.h"

#include "base/error.h"

#define SPARE_BYTES ((size_t)64 << 10) /* for what serving needs now and then */
#define WANTED_MOST ((size_t)2 << 20)  /* that nobody may come for */

/* No lock: one that a thread held at a fork would be held for ever in the child. */
static _Atomic(ebb_pool *) learnt;

ebb_pool *plan_pool(void) {
    /* acquire, and release below: the pool is seen as it was made */
    ebb_pool *pool = atomic_load_explicit(&learnt, memory_order_acquire);
    if (pool)
        return pool;
    ebb_pool *made = pool_make(EBB_POOL_OPTIONS(.name = "learnt"), &kind_short);
    if (!made) /* for this thread; perhaps there was memory for another's */
        return atomic_load_explicit(&learnt, memory_order_acquire);
    if (atomic_compare_exchange_strong_explicit(&learnt, &pool, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    (void)ebb_pool_destroy(made); /* another thread was first */
    return pool;
}

void *plan_pool_take(const char *name, size_t bytes, ebb_region *memory) {
    ebb_pool *pool = plan_pool();
    size_t pages;
    if (!pool)
        return NULL;
    if (!size_round_up(bytes, EBB_PAGE, &pages)) {
        error_set(EBB_E_SIZE, "%zu bytes for a %s overflow", bytes, name);
        return NULL;
    }
    ebb_region taken =
        ebb_region_open(EBB_REGION_OPTIONS(.name = name, .pool = pool, .hint_bytes = pages));
    if (!ebb_region_is_open(taken))
        return NULL;
    void *block = ebb_region_alloc(taken, pages, EBB_UNIT);
    if (block)
        *memory = taken;
    else
        ebb_region_close(taken);
    return block;
}

void plan_pool_rest(size_t wanted) {
    ebb_pool *pool = plan_pool();
    if (pool)
        pool_keep_hot(pool, size_larger(SPARE_BYTES, size_smaller(wanted, WANTED_MOST)));
}

void plan_share(struct plan *plan) {
    /* relaxed: who shares a plan is a user of it */
    atomic_fetch_add_explicit(&plan->users, 1, memory_order_relaxed);
}

void plan_drop(struct plan *plan) {
    /* release: what this user did with it comes before its end; acquire: in whose thread it ends */
    if (plan && atomic_fetch_sub_explicit(&plan->users, 1, memory_order_acq_rel) == 1)
        ebb_region_close(plan->memory);
}

void plan_want(struct plan *plan, uint32_t slot, uint32_t bytes) {
    uint32_t most = plan_wanted(plan, slot);
    while (bytes > most &&
           !atomic_compare_exchange_weak_explicit(&plan->wanted[slot], &most, bytes,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

void plan_follow(struct plan *plan) {
    plan_share(plan);
    atomic_fetch_add_explicit(&plan->followers, 1, memory_order_relaxed); /* as users */
}

void plan_leave(struct plan *plan) {
    if (plan) /* relaxed: it still has this user */
        atomic_fetch_sub_explicit(&plan->followers, 1, memory_order_relaxed);
    plan_drop(plan);
}

/* relaxed, one after the other: where a track leaves in between this may be so too early. Then who
 * asked has to follow the plan again, some day. */
bool plan_is_forgotten(const struct plan *plan) {
    unsigned followers = atomic_load_explicit(&plan->followers, memory_order_relaxed);
    return atomic_load_explicit(&plan->users, memory_order_relaxed) == followers;
}
