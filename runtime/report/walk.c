// SPDX-License-Identifier: Apache-2.0
/*
 * walk.c - the conservation laws of a whole pool: its regions one by one, then its pages.
 */
#include "base/check.h"
#include "base/error.h"
#include "pool/shared.h"
#include "region/region.h"

#include <ebb/report.h>

static void check_pool(void *context, struct ebb_pool *pool) {
    size_t owned = 0, work = 0, lent = 0, guests = 0;
    (void)context;
    pthread_mutex_lock(&pool->lock);
    for (struct region *region = pool->slots; region; region = region->list_next) {
        if (!region_is_live(region))
            continue;
        region_check(region);
        owned += region->reserved.current;
        work += region->uncounted ? region->reserved.total : 0;
        lent += region->lent;
        guests += region->guests;
    }
    CHECK_ALWAYS(owned + pool->held_bytes == pool->pages.run_bytes);
    CHECK_ALWAYS(work == pool->work_bytes);
    CHECK_ALWAYS(lent == guests); /* so what is owned is what is used, and waste */
    pool_check_locked(pool);
    pthread_mutex_unlock(&pool->lock);
}

int ebb_check_pool(struct ebb_pool *pool) {
    if (!pool && !(pool = ebb_pool_default()))
        return EBB_E_MEMORY;
    check_pool(NULL, pool);
    if (pool_is_shared(pool))
        shared_each(pool->shared, check_pool, NULL);
    return 0;
}
