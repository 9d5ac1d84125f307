// SPDX-License-Identifier: Apache-2.0
/*
 * slots.c - the slots that regions live in.
 *
 * A slot belongs to one pool and is on its list of slots, open or not; walkers go over that list.
 * Each of `spare_slots` is a place where the slot waits that was closed last of those that were
 * opened from there, and opening takes it with one exchange and without the lock. Each thread has a
 * place, so that a slot and its lines stay with one processor. Only spare ones keep their batches
 * of bookkeeping, until the pool is trimmed or ends.
 *
 * Once all slots there can be are made, those that wait in other pools change hands, half of what
 * one has at a time: that takes time linear in all slots of that pool. Shared pools and that for
 * measuring take and do not give.
 *
 * Invariant: a closed slot is a spare one or on the list of free slots, never both. A region is
 * refused only where no slot is closed of those that may change hands.
 */
#include "base/error.h"
#include "base/os.h"
#include "pool/shared.h"
#include "region/region.h"

/* That of the calling thread: threads get them in turn, so eight that begin one after the other
 * have one each. */
static unsigned own_place(void) {
    static atomic_uint threads;
    static _Thread_local unsigned own; /* and one more; 0: none yet */
    unsigned *place = &own;
    if (!*place) /* relaxed: only that they take turns matters */
        *place = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % POOL_SPARES;
    return *place - 1;
}

static struct region *take_spare(struct ebb_pool *pool, unsigned place) {
    /* acquire: pairs with the exchange of the thread that closed here, its writes are seen */
    return atomic_exchange_explicit(&pool->spare_slots[place].region, NULL, memory_order_acquire);
}

/* All of them become free slots like others, without bookkeeping. */
static void drop_spares_locked(struct ebb_pool *pool) {
    for (unsigned i = 0; i < POOL_SPARES; i++) {
        struct region *region = take_spare(pool, i);
        if (!region)
            continue;
        piece_give_up(&region->store);
        starts_give_up(&region->starts);
        region->free_next = pool->free_slots;
        pool->free_slots = region;
    }
}

/* One that never had a region, or NULL. */
static struct region *carve(void) {
    struct region *region = range_carve_region();
    if (region)
        region->mark_serial = (uint64_t)region_slot(region) << REGION_MARK_BITS;
    return region;
}

static void list_locked(struct ebb_pool *pool, struct region *region) {
    region->home = pool;
    region->list_next = pool->slots;
    pool->slots = region;
    pool->drop_spares_locked = drop_spares_locked;
}

static struct region *take_locked(struct ebb_pool *pool) {
    struct region *region = pool->free_slots;
    if (region) {
        pool->free_slots = region->free_next;
        return region;
    }
    region = carve();
    if (region)
        list_locked(pool, region);
    for (unsigned i = 0; !region && i < POOL_SPARES; i++) /* other threads' */
        region = take_spare(pool, i);
    return region;
}

/* ---- slots of other pools ---- */

static uint64_t times_opened(const struct region *region) {
    return (region->lane.generation + 1) / 2;
}

/* Half of a list, at least one: that is cut off. */
static struct region *cut_half(struct region **list) {
    struct region *half = *list, *last = half;
    for (struct region *at = half->free_next; at && at->free_next; at = at->free_next->free_next)
        last = last->free_next;
    *list = last->free_next;
    last->free_next = NULL;
    return half;
}

/* The counts of what was opened stay as they are, here and there. */
static void unlist_locked(struct ebb_pool *pool, struct region *leaving) {
    for (; leaving; leaving = leaving->free_next) {
        leaving->home = NULL;
        pool->opened_gone += times_opened(leaving);
    }
    for (struct region **link = &pool->slots; *link;)
        if ((*link)->home)
            link = &(*link)->list_next;
        else
            *link = (*link)->list_next;
}

/* A shared pool's slots have a hidden pool each. */
static bool may_leave(const struct ebb_pool *pool) {
    return !pool->slot || !pool->alive;
}

static struct region *cut_off(struct ebb_pool *pool) {
    struct region *half = NULL;
    pthread_mutex_lock(&pool->lock);
    bool may = may_leave(pool);
    if (may && !pool->free_slots)
        drop_spares_locked(pool);
    if (may && pool->free_slots) {
        half = cut_half(&pool->free_slots);
        unlist_locked(pool, half);
    }
    pthread_mutex_unlock(&pool->lock);
    return half;
}

/* All but the first wait there for their turn. */
static void add_all(struct ebb_pool *pool, struct region *first) {
    struct region *next;
    pthread_mutex_lock(&pool->lock);
    for (struct region *region = first; region; region = next) {
        next = region->free_next;
        list_locked(pool, region);
        pool->opened_before += times_opened(region);
        if (region == first)
            continue;
        region->free_next = pool->free_slots;
        pool->free_slots = region;
    }
    pthread_mutex_unlock(&pool->lock);
}

struct change {
    struct ebb_pool *to;
    struct region *taken;
};

/* With the registry of pools locked, so no other pool's lock is held; and until all are listed
 * again, so that neither a fork nor another thread that looks for slots finds them nowhere. */
static void take_from(void *context, struct ebb_pool *pool) {
    struct change *change = context;
    if (change->taken)
        return;
    change->taken = cut_off(pool);
    add_all(change->to, change->taken);
}

static struct region *take_elsewhere(struct ebb_pool *pool) {
    struct change change = {.to = pool};
    pool_each_ever(take_from, &change);
    return change.taken;
}

/* ---- */

struct region *slot_take(struct ebb_pool *pool) {
    if (!os.allow(OS_SLOT))
        return NULL;
    unsigned place = pool->slot ? 0 : own_place(); /* in a slot of a shared one there is one root */
    struct region *region = take_spare(pool, place);
    if (region)
        return region;
    pthread_mutex_lock(&pool->lock);
    region = take_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    if (!region)
        region = take_elsewhere(pool);
    if (region)
        region->place = place;
    return region;
}

void slot_give(struct ebb_pool *pool, struct region *region) {
    /* release: what this thread wrote is seen by the next owner; acquire: of the one we get */
    struct region *older = atomic_exchange_explicit(&pool->spare_slots[region->place].region,
                                                    region, memory_order_acq_rel);
    if (!older)
        return;
    piece_give_up(&older->store);
    starts_give_up(&older->starts);
    pthread_mutex_lock(&pool->lock);
    older->free_next = pool->free_slots;
    pool->free_slots = older;
    pthread_mutex_unlock(&pool->lock);
}

void slot_begin_uncounted(struct region *region) {
    struct ebb_pool *pool = region->pool;
    pthread_mutex_lock(&pool->lock);
    region->uncounted = true;
    region->lane.generation++;
    pool->opened_before++;
    pthread_mutex_unlock(&pool->lock);
}

/* Those of ebb's own work, too: while one is open its pool cannot end. */
static uint64_t count_open(const struct ebb_pool *pool) {
    uint64_t open = 0;
    for (const struct region *region = pool->slots; region; region = region->list_next)
        open += region_is_live(region);
    return open;
}

uint64_t slot_count_opened(const struct ebb_pool *pool) {
    uint64_t opened = 0;
    for (const struct region *region = pool->slots; region; region = region->list_next)
        opened += times_opened(region);
    return opened + pool->opened_gone - pool->opened_before;
}

/* ---- the end of a pool ---- */

/* What keeps a pool from ending, the hidden ones of a shared pool's slots included. */
struct use {
    uint64_t open;
    size_t held, leases;
};

static void look(void *context, struct ebb_pool *pool) {
    struct use *use = context;
    pthread_mutex_lock(&pool->lock);
    use->open += count_open(pool);
    use->held += pool->held_bytes;
    pthread_mutex_unlock(&pool->lock);
}

static int refuse_use(const struct ebb_pool *pool, const struct use *use) {
    if (use->open)
        return error_set(EBB_E_BUSY, "pool '%s' has %llu open regions", pool->name,
                         (unsigned long long)use->open);
    if (use->held)
        return error_set(EBB_E_BUSY, "pool '%s' has %zu bytes of pages under exports", pool->name,
                         use->held);
    if (use->leases)
        return error_set(EBB_E_BUSY, "pool '%s' has %zu leases that were not dropped", pool->name,
                         use->leases);
    return 0;
}

static void retire(void *context, struct ebb_pool *pool) {
    (void)context;
    pthread_mutex_lock(&pool->lock);
    pool->opened_before += slot_count_opened(pool);
    drop_spares_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    pool_retire(pool);
}

static bool give_all(struct ebb_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    bool all = pool_give_all_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    return all;
}

int ebb_pool_destroy(struct ebb_pool *pool) {
    if (!pool || !pool->alive || pool_is_built_in(pool))
        return error_set(EBB_E_ARGUMENT, "pool %p cannot be destroyed: %s", (void *)pool,
                         !pool         ? "it is NULL"
                         : pool->alive ? "it is the default pool"
                                       : "it was destroyed before");
    struct use use = {0};
    look(&use, pool);
    if (pool->shared) {
        size_t open = shared_settle(pool->shared);
        shared_each(pool->shared, look, &use);
        use.open = size_larger(use.open, open);
        use.leases = atomic_load(&pool->shared->leases_out);
    }
    if (refuse_use(pool, &use) != 0)
        return EBB_E_BUSY;
    if ((pool->pages.kind->whole && !give_all(pool)) ||
        (pool->shared && !shared_part(pool->shared)))
        return error_latest(); /* the device's: it still has what was not given back */
    if (pool->shared) {
        shared_each(pool->shared, retire, NULL);
        shared_end(pool->shared);
    }
    retire(NULL, pool);
    return 0;
}
