// SPDX-License-Identifier: Apache-2.0
/*
 * plan.c - the users of a plan, and the pool that what is learnt lives in.
 *
 * A plan lies in a region of its own, which its last user closes, in whatever thread. Invariant:
 * nobody writes to a plan once it has two users.
 */
#include "region/plan.h"

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static ebb_pool *learnt;

ebb_pool *plan_pool(void) {
    pthread_mutex_lock(&making);
    if (!learnt)
        learnt = ebb_pool_create(EBB_POOL_OPTIONS(.name = "learnt"));
    pthread_mutex_unlock(&making);
    return learnt;
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
