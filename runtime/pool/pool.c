// SPDX-License-Identifier: Apache-2.0
/*
 * pool.c - pools: made, limited, found and ended; the list of all of them.
 *
 * The record of a pool is never unmapped: a pool that has ended leaves it to the next one, and its
 * lock works still. A pool is made by who checks what was asked for, ebb_pool_create(), or by
 * another file of ebb; the default pool and the measuring one are made when they are first needed.
 *
 * Invariant: each pool but the measuring one is in one of two lists, of those alive or of records
 * to use again. Both change under the lock `registry`.
 */
#include "pool/pool.h"
#include "base/check.h"
#include "base/error.h"
#include "base/name.h"
#include "base/os.h"
#include "pool/range.h"
#include "pool/shared.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct ebb_pool) <= RANGE_POOL_BYTES, "a pool fits its place in the range");

#define MARGIN_MOST (1u << 28) /* percent: so much of all addresses is less than 2^62 */

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct ebb_pool *all_pools;   /* alive, newest first */
static struct ebb_pool *spare_pools; /* records to use again */
static _Atomic(struct ebb_pool *) default_pool, measuring_pool;

static const struct ebb_pool_options defaults = {.size = sizeof(struct ebb_pool_options)};

/* ---- making and ending ---- */

/* The lock of a record is made once: who kept pages of a pool that has ended still asks there. */
static struct ebb_pool *new_record(void) {
    struct ebb_pool *pool = range_carve_pool();
    if (pool)
        pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

static struct ebb_pool *take_record(void) {
    if (!os.allow(OS_POOL))
        return NULL;
    struct ebb_pool *pool = spare_pools;
    if (!pool)
        return new_record();
    spare_pools = pool->next;
    return pool;
}

/* Everything behind the lock that is of this pool alone. */
static void clear(struct ebb_pool *pool) {
    size_t from = offsetof(struct ebb_pool, pages), to = offsetof(struct ebb_pool, closed_kinds);
    memset((char *)pool + from, 0, to - from);
}

static void set_up(struct ebb_pool *pool, const struct ebb_pool_options *options,
                   const struct kind *kind) {
    struct piece_store store = pool->pages.store;
    clear(pool);
    pool->pages.store = store;
    pages_init(&pool->pages, kind);
    name_copy(pool->name, sizeof pool->name, options->name ? options->name : "pool");
    pool->limit_reserved = options->limit_reserved_bytes;
    pool->limit_used = options->limit_used_bytes;
    unsigned usual_margin = kind->whole ? 100 : 25; /* slabs are dear, and never full */
    unsigned margin = options->keep_margin_percent ? options->keep_margin_percent : usual_margin;
    pool->keep_margin_percent = margin < MARGIN_MOST ? margin : MARGIN_MOST;
    pool->keep_all = options->keep_all;
    pool->alive = true;
}

static void say_no_record(void) {
    size_t left = range_pools_left();
    if (left)
        error_set(EBB_E_MEMORY, "no memory for the record of another pool: %zu of %zu are left",
                  left, range.pool_count);
    else
        error_set(EBB_E_MEMORY,
                  "no place for another pool: %zu exist, shared slots that this process wrote to "
                  "among them", range.pool_count);
}

struct ebb_pool *pool_make(const struct ebb_pool_options *options, const struct kind *kind) {
    if (range_prepare() != 0)
        return NULL;
    pthread_mutex_lock(&registry);
    struct ebb_pool *pool = take_record();
    if (pool) {
        set_up(pool, options, kind);
        if (kind != &kind_phantom) {
            pool->next = all_pools;
            all_pools = pool;
        }
    }
    pthread_mutex_unlock(&registry);
    if (!pool)
        say_no_record();
    return pool;
}

/* Apart, as it needs kilobytes of stack: a thread that has hardly any may make pools of the host's
 * memory, in the malloc() with which the first turn begins. */
static __attribute__((noinline)) struct ebb_pool *begin(const struct ebb_pool_options *options,
                                                        const struct kind *kind) {
    struct pages begun = {.source = NULL};
    if (kind->begin(&begun, options) != 0)
        return NULL;
    struct ebb_pool *pool = pool_make(options, kind);
    if (pool)
        pool->pages.cuda = begun.cuda;
    else
        cuda_leave(&begun.cuda);
    return pool;
}

/* Of a kind that has a table of its own. */
static struct ebb_pool *create(const struct ebb_pool_options *options) {
    const struct kind *kind = kind_find(options->kind);
    if (!kind)
        return NULL;
    return kind->begin ? begin(options, kind) : pool_make(options, kind);
}

int pool_check_device(const struct ebb_pool_options *options) {
    if (options->device < 0)
        return error_set(EBB_E_ARGUMENT, "pool options: there is no device %d", options->device);
    if (options->device && !(options->kind & (EBB_KIND_PINNED | EBB_KIND_DEVICE)))
        return error_set(EBB_E_ARGUMENT, "pool options: device %d is for pinned pools and those "
                         "of devices, the kind is %#x", options->device, options->kind);
    return 0;
}

/* What this kind of pool has no use for is refused: it would be ignored. */
static int check_options(const struct ebb_pool_options *options, bool shared) {
    if (options->size != sizeof *options)
        return error_set(EBB_E_ARGUMENT, "pool options: size field is %zu, expected %zu",
                         options->size, sizeof *options);
    if (!shared && (options->slots || options->slot_bytes || options->wait_ns))
        return error_set(EBB_E_ARGUMENT, "pool options: %u slots of %zu bytes, a wait of %llu ns: "
                         "are for shared pools, the kind is %#x", options->slots,
                         options->slot_bytes, (unsigned long long)options->wait_ns,
                         options->kind);
    if (!shared && options->go_on)
        return error_set(EBB_E_ARGUMENT, "pool options: go_on is for who waits for a slot of a "
                         "shared pool, the kind is %#x", options->kind);
    return pool_check_device(options);
}

struct ebb_pool *ebb_pool_create(const struct ebb_pool_options *options) {
    if (!options)
        options = &defaults;
    bool shared = (options->kind & ~(unsigned)EBB_KIND_PINNED) == EBB_KIND_SHARED;
    if (check_options(options, shared) != 0)
        return NULL;
    return shared ? shared_create(options) : create(options);
}

/* NULL, or the pool that another thread was faster with. Under the lock that a fork takes first: it
 * takes those of pools that are published by then, and nobody may take another one's meanwhile,
 * which would be held in the child for ever. */
static struct ebb_pool *publish(_Atomic(struct ebb_pool *) *place, struct ebb_pool *pool) {
    struct ebb_pool *other = NULL;
    pthread_mutex_lock(&registry);
    (void)atomic_compare_exchange_strong_explicit(place, &other, pool, memory_order_acq_rel,
                                                  memory_order_acquire);
    pthread_mutex_unlock(&registry);
    return other;
}

/* Makes the pool behind `place` once; losers of a race give theirs back. */
static struct ebb_pool *make_once(_Atomic(struct ebb_pool *) *place, const char *name,
                                  const struct kind *kind) {
    /* acquire: pairs with the exchange above, the pool is seen complete */
    struct ebb_pool *pool = atomic_load_explicit(place, memory_order_acquire);
    if (pool)
        return pool;
    struct ebb_pool_options options = defaults;
    options.name = name;
    options.keep_all = kind->phantom;
    struct ebb_pool *mine = pool_make(&options, kind), *other = mine ? publish(place, mine) : NULL;
    if (!other)
        return mine;
    pool_retire(mine);
    return other;
}

struct ebb_pool *ebb_pool_default(void) {
    return make_once(&default_pool, "default", &kind_host);
}

struct ebb_pool *pool_for_measuring(void) {
    return make_once(&measuring_pool, "measuring", &kind_phantom);
}

bool pool_is_built_in(const struct ebb_pool *pool) {
    return pool == atomic_load_explicit(&default_pool, memory_order_relaxed) ||
           pool == atomic_load_explicit(&measuring_pool, memory_order_relaxed);
}

void pool_retire(struct ebb_pool *pool) {
    struct ebb_pool **link = &all_pools;
    pthread_mutex_lock(&pool->lock);
    pages_fini(&pool->pages);
    pool_trim_bookkeeping(0);
    pool->alive = false;
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_lock(&registry);
    while (*link && *link != pool)
        link = &(*link)->next;
    if (*link)
        *link = pool->next;
    pool->next = spare_pools;
    spare_pools = pool;
    pthread_mutex_unlock(&registry);
}

static void visit_list(struct ebb_pool *first,
                       void (*visit)(void *context, struct ebb_pool *pool), void *context) {
    for (struct ebb_pool *pool = first; pool; pool = pool->next)
        visit(context, pool);
}

void pool_each(void (*visit)(void *context, struct ebb_pool *pool), void *context) {
    pthread_mutex_lock(&registry);
    visit_list(all_pools, visit, context);
    pthread_mutex_unlock(&registry);
}

void pool_each_ever(void (*visit)(void *context, struct ebb_pool *pool), void *context) {
    pthread_mutex_lock(&registry);
    visit_list(all_pools, visit, context);
    visit_list(spare_pools, visit, context);
    pthread_mutex_unlock(&registry);
}

static void fork_list(struct ebb_pool *first, bool before) {
    for (struct ebb_pool *pool = first; pool; pool = pool->next)
        (before ? pthread_mutex_lock : pthread_mutex_unlock)(&pool->lock);
}

void pool_fork(bool before) {
    if (before)
        pthread_mutex_lock(&registry);
    /* relaxed: the lock orders it */
    struct ebb_pool *measuring = atomic_load_explicit(&measuring_pool, memory_order_relaxed);
    fork_list(all_pools, before);
    fork_list(spare_pools, before);
    if (measuring)
        (before ? pthread_mutex_lock : pthread_mutex_unlock)(&measuring->lock);
    if (!before)
        pthread_mutex_unlock(&registry);
}

int ebb_pool_set_reserved_limit(struct ebb_pool *pool, size_t bytes) {
    if (!pool)
        return error_set(EBB_E_ARGUMENT, "limit of %zu bytes for a NULL pool", bytes);
    pthread_mutex_lock(&pool->lock);
    atomic_store_explicit(&pool->limit_reserved, bytes, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

void pool_check_locked(const struct ebb_pool *pool) {
    pages_check(&pool->pages);
    CHECK_ALWAYS(pool->reserved.current == pool->pages.run_bytes + pool->pages.hot_bytes);
    CHECK_ALWAYS(pool->reserved.peak >= pool->reserved.current);
}
