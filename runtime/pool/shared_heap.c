// SPDX-License-Identifier: Apache-2.0
/*
 * shared_heap.c - the page heap in a slot of a shared pool.
 *
 *     slot     | run | run |   hot    |          cold            |
 *               <------- backed ------>
 *
 * The hidden pool of a slot has one slab, the slot. Its first `backed` bytes have pages in the
 * file; more are allocated, then touched, when the heap grows: so a system that refuses them is an
 * error in the middle of an allocation, and no signal in the middle of a write. Pages stay when the
 * slot goes round; how many there are stands in its record, for whoever claims it next.
 *
 * Invariant: a hidden pool's heap is looked at only by who has the slot: while a region of this
 * process is in it, or under the lock of the shared pool when it is claimed.
 */
#include "base/error.h"
#include "base/os.h"
#include "base/poison.h"
#include "base/size.h"
#include "pool/shared.h"

#include <errno.h>

/* ---- what a heap in a slot does ---- */

static uintptr_t take_no_more(struct pages *pages, size_t least, size_t *bytes) {
    const struct shared_slot *slot = pages->source;
    if (slot)
        error_set(EBB_E_POOL_LIMIT, "%zu bytes of pages asked in slot %u of pool '%s', which has "
                  "%zu, %zu of them in use", least, slot->index, slot->shared->pool->name,
                  slot->shared->slot_bytes, pages->run_bytes);
    else
        error_set(EBB_E_ARGUMENT, "%zu bytes of pages asked of a shared pool itself", least);
    *bytes = 0;
    return 0;
}

/* Pages behind the first bytes of a slot go. 0, or an errno code. */
static int punch(const struct shared_slot *slot, size_t from) {
    const struct shared *shared = slot->shared;
    if (from == shared->slot_bytes)
        return 0;
    if (!shared_has(shared, shared->fd))
        return EBADF;
    return os.file_punch(shared->fd, shared_offset(slot) + from, shared->slot_bytes - from);
}

bool shared_is_ours(const struct shared_slot *slot) {
    if (shared_use(slot) == SLOT_OPEN && atomic_load(&shared_record(slot)->word) == slot->word)
        return true;
    error_set(EBB_E_STALE, "slot %u of pool '%s' is not this process's: %s", slot->index,
              slot->shared->pool->name,
              slot->use == SLOT_LOST ? "its region was opened before a fork"
                                     : "its word was changed by another");
    return false;
}

/* All up to the end of these pages is backed from now on; if some cannot be had, none of them. Who
 * has the slot no more does not know what is backed by now, and would take others' pages away. */
static int back(struct pages *pages, uintptr_t addr, size_t bytes) {
    struct shared_slot *slot = pages->source;
    struct shared *shared = slot->shared;
    size_t to = addr + bytes - atomic_load_explicit(&slot->addr, memory_order_relaxed);
    int reason = ENOMEM;
    if (to <= slot->backed)
        return 0;
    if (!shared_is_ours(slot) || shared_check_file(shared) != 0)
        return error_latest();
    os.pass("back: allocate");
    if (!os.allow(OS_BACKING) ||
        (reason = os.file_back(shared->fd, shared_offset(slot) + slot->backed,
                               to - slot->backed)) != 0) {
        (void)punch(slot, slot->backed); /* the record may be another's word */
        return error_set(EBB_E_NO_SPACE, "slot %u of pool '%s' has pages for %zu bytes, the system "
                         "has none for %zu more, error %d", slot->index, shared->pool->name,
                         slot->backed, to - slot->backed, reason);
    }
    if (shared_populate(slot, to) != 0) { /* before it is noted: see shared_confirm() */
        (void)punch(slot, slot->backed);
        return error_latest();
    }
    os.pass("back: note");
    slot->backed = to;
    atomic_store_explicit(&shared_record(slot)->backed, to, memory_order_relaxed);
    return 0;
}

static bool stay(struct pages *pages, uintptr_t addr, size_t bytes, size_t *given) {
    (void)pages, (void)addr, (void)bytes, (void)given;
    return false; /* others may be reading */
}

static void keep_mapped(struct pages *pages, uintptr_t addr, size_t bytes) {
    (void)pages, (void)addr, (void)bytes;
}

const struct kind kind_slot = {.name = "shared",
                               .dense = true,
                               .take = take_no_more,
                               .warm = back,
                               .cool = stay,
                               .give = keep_mapped};

/* Bytes that are in this process's page table, unless the file lost them since then. */
static size_t count_populated(struct shared_slot *slot) {
    uint32_t trims = atomic_load_explicit(&shared_record(slot)->trims, memory_order_relaxed);
    if (trims != slot->trims)
        slot->populated = 0;
    slot->trims = trims;
    return slot->populated;
}

int shared_confirm(struct shared_slot *slot, size_t *bytes) {
    const struct shared *shared = slot->shared;
    size_t known = count_populated(slot), start = shared_offset(slot), hole = 0;
    if (*bytes <= known)
        return 0;
    if (shared_check_file(shared) != 0)
        return error_latest();
    int reason = os.file_hole(shared->fd, start + known, &hole);
    if (reason)
        return error_set(EBB_E_SHARED, "slot %u of pool '%s': the file does not tell what pages it "
                         "has, error %d", slot->index, shared->pool->name, reason);
    *bytes = size_smaller(*bytes, hole - start);
    return 0;
}

int shared_populate(struct shared_slot *slot, size_t bytes) {
    size_t known = count_populated(slot);
    if (bytes <= known)
        return 0;
    int reason = os.populate((void *)(shared_start(slot) + known), bytes - known);
    if (reason)
        return error_set(EBB_E_NO_SPACE, "slot %u of pool '%s': no pages behind %zu bytes, "
                         "error %d", slot->index, slot->shared->pool->name, bytes, reason);
    slot->populated = bytes;
    return 0;
}

/* ---- as a region finds it ---- */

static int make_pool(struct shared_slot *slot) {
    const struct ebb_pool *outer = slot->shared->pool;
    struct ebb_pool_options options = {
        .size = sizeof options, .name = outer->name, .keep_all = true};
    if (slot->pool)
        return 0;
    options.limit_used_bytes = outer->limit_used;
    struct ebb_pool *pool = pool_make(&options, &kind_slot);
    if (!pool)
        return error_latest();
    pthread_mutex_lock(&pool->lock); /* others look at all pools that there are */
    pool->shared = slot->shared;
    pool->slot = slot;
    pool->pages.source = slot;
    pthread_mutex_unlock(&pool->lock);
    /* release: pairs with shared_each() */
    atomic_store_explicit(&slot->pool, pool, memory_order_release);
    return 0;
}

size_t shared_backed(const struct shared_slot *slot) {
    uint64_t backed =
        atomic_load_explicit(&shared_record(slot)->backed, memory_order_relaxed);
    return size_align_down(size_smaller(backed, slot->shared->slot_bytes), EBB_PAGE);
}

/* As it is now: any thread may change it. */
static size_t read_limit(struct ebb_pool *outer) {
    pthread_mutex_lock(&outer->lock);
    size_t limit = outer->limit_reserved;
    pthread_mutex_unlock(&outer->lock);
    return limit;
}

/* Pages that a region finds hot: what is backed, as far as the limit goes, whoever backed it. */
static size_t hot_within(const struct shared_slot *slot, size_t limit) {
    size_t most = limit ? size_align_down(limit, EBB_PAGE) : SIZE_MAX;
    return size_smaller(slot->backed, most);
}

/* Counts what is hot now, which is all that there is: an increase by what is more than before. */
static void note_hot(struct ebb_pool *pool) {
    uint64_t before = pool->reserved.current, now = pool->pages.hot_bytes;
    if (now > before)
        meter_add(&pool->reserved, now - before);
    else
        meter_subtract(&pool->reserved, before - now);
}

/* The heap knows what is backed by now: another process may have been here. No run is in it. */
static int restart(struct shared_slot *slot) {
    struct ebb_pool *pool = slot->pool;
    uintptr_t addr = atomic_load_explicit(&slot->addr, memory_order_relaxed);
    size_t limit = read_limit(slot->shared->pool), hot = hot_within(slot, limit);
    int result = 0;
    pthread_mutex_lock(&pool->lock);
    pool->limit_reserved = limit;
    pool->pages.leaving = false;
    pages_unkeep_all(&pool->pages);
    if (!pool->pages.slabs || pool->pages.hot_bytes != hot) {
        if (!pages_restart(&pool->pages, addr, slot->shared->slot_bytes, hot))
            result = error_set(EBB_E_MEMORY, "no bookkeeping left for slot %u", slot->index);
        note_hot(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return result;
}

/* What the file has pages for, which the record says from now on, whatever it said. */
static int learn_backed(struct shared_slot *slot) {
    size_t said = shared_backed(slot);
    slot->backed = said;
    int result = shared_confirm(slot, &slot->backed);
    if (!result && slot->backed != said)
        atomic_store_explicit(&shared_record(slot)->backed, slot->backed, memory_order_relaxed);
    return result;
}

int shared_prepare(struct shared_slot *slot) {
    int result = shared_map(slot);
    if (!result)
        result = make_pool(slot);
    if (!result)
        result = learn_backed(slot);
    if (!result)
        result = shared_populate(slot, slot->backed);
    if (result)
        return result;
    poison_unused(atomic_load_explicit(&slot->addr, memory_order_relaxed), slot->backed);
    return restart(slot);
}

/* ---- as it is left ---- */

void shared_drop_uncounted(const struct shared_slot *slot) {
    (void)punch(slot, shared_backed(slot));
}

/* Before they go pages are counted nowhere, and old to who has them in his table: who is killed
 * here leaves nothing wrong. */
size_t shared_cool_slot(struct shared_slot *slot) {
    struct shared_record *record = shared_record(slot);
    size_t backed = shared_backed(slot);
    if (!shared_unpin(slot))
        return 0;
    atomic_fetch_add_explicit(&record->trims, 1, memory_order_relaxed);
    /* release: in this order, also where we are killed between the two */
    atomic_store_explicit(&record->backed, 0, memory_order_release);
    os.pass("trim: punch");
    if (punch(slot, 0) != 0) {
        atomic_store_explicit(&record->backed, backed, memory_order_relaxed);
        return 0;
    }
    slot->backed = 0;
    if (slot->pool)
        (void)restart(slot); /* counters say so at once; without memory, at the next opening */
    return backed;
}

/* What a child lets go of in its parent's slot is the parent's still, or another block by now; or
 * was sent, and is read here. */
void pool_poison(const struct ebb_pool *pool, uintptr_t addr, size_t bytes) {
    if (!pool_is_lost(pool))
        poison_released(addr, bytes);
    else if (!pool_is_leased(pool))
        poison_unused(addr, bytes);
}
