// SPDX-License-Identifier: Apache-2.0
/*
 * lease.c - parcels are opened, leases held and dropped (see lease.h).
 *
 * Opening takes the pool's lock; holding and dropping never do, since that happens wherever the
 * last user of a tensor happens to be. Everything in a parcel and in the control part of the file
 * is another process's word: it is read once, and an opening is refused unless all of it lies in
 * the slot. A slot is held before anything is done in it, and sent again if that is refused.
 */
#include "handoff/guard.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/poison.h"
#include "base/size.h"

/* ---- ending ---- */

/* The slot is free, unless it was taken away. Nothing of the lease is looked at after the count. */
static void let_go(struct ebb_lease *lease) {
    struct shared *shared = lease->table->shared;
    struct shared_slot *slot = &shared->slots[lease->slot];
    uint64_t word = lease->word;
    os.pass("drop: last");
    atomic_store(&lease->count, 0);
    atomic_store(&slot->leased, 0);
    (void)shared_free(slot, word);
    atomic_fetch_sub(&shared->leases_out, 1); /* the pool may end from here on */
}

static bool is_inherited(const struct lease_table *table) {
    return table->forks != fork_count();
}

/* A parent's goes: it changes nothing but the counts. */
static void forget(struct ebb_lease *lease) {
    atomic_store(&lease->count, 0);
    atomic_fetch_sub(&lease->table->shared->leases_out, 1);
}

/* What the program says. Nobody else ends the lease, and the pool may be locked. */
static bool passes_check(struct ebb_lease *lease) {
    const struct lease_table *table = lease->table;
    if (!table->check)
        return true;
    int cancels = cancel_defer();
    bool passes = table->check(table->context, lease);
    cancel_restore(cancels);
    return passes;
}

/* True: no device reads it any more. */
static bool is_over(struct ebb_lease *lease) {
    return guard_is_passed(lease) && passes_check(lease);
}

/* The count is ENDING: this thread alone has the lease. Unless the check forks: its child goes on
 * here, and inherit() has seen to it that nobody has it there. */
static void end(struct ebb_lease *lease) {
    struct lease_table *table = lease->table;
    if (is_inherited(table)) {
        forget(lease);
        return;
    }
    bool over = is_over(lease);
    if (is_inherited(table))
        return;
    if (!over) {
        atomic_fetch_add(&table->pending, 1);
        atomic_store(&lease->count, LEASE_PENDING); /* others may end it, and the pool, from now */
    } else {
        let_go(lease);
    }
}

static void settle_one(struct ebb_lease *lease) {
    uint32_t pending = LEASE_PENDING;
    if (!atomic_compare_exchange_strong(&lease->count, &pending, LEASE_ENDING))
        return;
    atomic_fetch_sub(&lease->table->pending, 1);
    end(lease);
}

/* The newest table of the pool; NULL: there is none. Any thread: some look for a lease. */
static struct lease_table *newest(const struct shared *shared) {
    /* acquire: pairs with make_table(), the table is seen complete */
    return atomic_load_explicit(&shared->above, memory_order_acquire);
}

/* Leases that wait for a device are asked about again. True if some go on waiting. */
static bool settle(struct shared *shared) {
    struct lease_table *table = newest(shared);
    if (!table || !atomic_load(&table->pending))
        return false;
    for (uint32_t i = 0; i < shared->slot_count; i++)
        settle_one(&table->leases[i]);
    return atomic_load(&table->pending) != 0;
}

/* ---- tables ---- */

static void end_tables(struct shared *shared) {
    struct lease_table *table = newest(shared), *older;
    atomic_store(&shared->above, NULL);
    for (; table; table = older) {
        older = table->older;
        os.release(table, table->bytes);
    }
}

static bool part(struct shared *shared) {
    bool all = true;
    for (struct lease_table *table = newest(shared); table; table = table->older)
        all = guard_end(table) && all;
    return all;
}

/* What another thread was ending at the fork, or what waits for a device, ends in the parent: in
 * the child nobody has it. */
static void inherit(struct shared *shared) {
    size_t out = 0;
    for (struct lease_table *table = newest(shared); table; table = table->older) {
        for (uint32_t i = 0; i < shared->slot_count; i++) {
            uint32_t count = atomic_load(&table->leases[i].count);
            if (count >= LEASE_PENDING)
                atomic_store(&table->leases[i].count, 0);
            else
                out += count != 0;
        }
        atomic_store(&table->pending, 0);
    }
    atomic_store(&shared->leases_out, out);
}

static const struct shared_hooks hooks = {settle, part, end_tables, inherit};

static struct lease_table *make_table(struct shared *shared) {
    size_t bytes = sizeof(struct lease_table) + shared->slot_count * sizeof(struct ebb_lease);
    struct lease_table *table = os.allow(OS_LEASES) ? os_pages(bytes) : NULL;
    if (!table) {
        error_set(EBB_E_MEMORY, "no memory for the leases of %u slots", shared->slot_count);
        return NULL;
    }
    table->bytes = bytes;
    table->shared = shared;
    table->forks = fork_count();
    table->older = newest(shared);
    if (table->older) { /* nothing waits there: inherit() was first */
        table->check = table->older->check;
        table->context = table->older->context;
    }
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        table->leases[i].table = table;
        table->leases[i].slot = i;
    }
    atomic_store_explicit(&shared->above, table, memory_order_release);
    atomic_store(&shared->hooks, &hooks);
    import_know_counted(lease_is_lent);
    return table;
}

/* The table of this process. Lock held. NULL: error set. */
static struct lease_table *table_of(struct shared *shared) {
    struct lease_table *table = newest(shared);
    return table && !is_inherited(table) ? table : make_table(shared);
}

/* ---- opening ---- */

static int refuse(const struct shared *shared, const struct ebb_parcel *parcel, const char *why) {
    return error_set(EBB_E_PARCEL, "parcel (slot %u, generation %u, root %llu + %llu) is not for "
                     "pool '%s' of %u slots of %zu bytes: %s", parcel->slot, parcel->generation,
                     (unsigned long long)parcel->root, (unsigned long long)parcel->bytes,
                     shared->pool->name, shared->slot_count, shared->slot_bytes, why);
}

static bool root_is_within(const struct ebb_parcel *parcel, size_t bytes) {
    if (parcel->root == UINT64_MAX)
        return parcel->bytes == 0;
    return parcel->root <= bytes && parcel->bytes <= bytes - parcel->root;
}

static int check_parcel(const struct shared *shared, const struct ebb_parcel *parcel) {
    if (parcel->pool != shared->identity)
        return refuse(shared, parcel, "it is of another pool");
    if (parcel->slot >= shared->slot_count)
        return refuse(shared, parcel, "there is no such slot");
    if (parcel->generation >= WORD_GENERATIONS)
        return refuse(shared, parcel, "there is no such generation");
    if (!root_is_within(parcel, shared->slot_bytes))
        return refuse(shared, parcel, "its root is not in the slot");
    return 0;
}

static int refuse_stale(const struct shared_slot *slot, const struct ebb_parcel *parcel,
                        uint64_t word) {
    return error_set(EBB_E_STALE, "parcel of generation %u: slot %u of pool '%s' is %s, generation "
                     "%u", parcel->generation, slot->index, slot->shared->pool->name,
                     word_state(word) == SLOT_FREE      ? "free"
                     : word_state(word) == SLOT_WRITING ? "written to"
                     : word_state(word) == SLOT_SENT    ? "sent"
                     : word_state(word) == SLOT_HELD    ? "held"
                                                        : "damaged",
                     word_generation(word));
}

/* Bytes that the sender says it sent, as far as that can be. */
static size_t read_sent(const struct shared_slot *slot) {
    uint64_t sent = atomic_load_explicit(&shared_record(slot)->sent, memory_order_relaxed);
    return size_align_down(size_smaller(sent, slot->shared->slot_bytes), EBB_PAGE);
}

/* SENT -> HELD, by this process; 0 or the error. *sent is what the word was, *held what it is. */
static int take(struct shared_slot *slot, const struct ebb_parcel *parcel, uint64_t *sent,
                uint64_t *held) {
    struct shared_record *record = shared_record(slot);
    /* acquire: what the sender wrote is seen */
    *sent = atomic_load_explicit(&record->word, memory_order_acquire);
    *held = word_make(SLOT_HELD, word_generation(*sent), slot->shared->me);
    os.pass("open: swap");
    if (word_state(*sent) != SLOT_SENT || word_generation(*sent) != parcel->generation ||
        !atomic_compare_exchange_strong_explicit(&record->word, sent, *held,
                                                 memory_order_acq_rel, memory_order_acquire))
        return refuse_stale(slot, parcel, *sent);
    os.pass("open: done");
    return 0;
}

/* HELD -> SENT, of its sender as before: the parcel was not opened, and may be once more. */
static void put_back(struct shared_slot *slot, uint64_t held, uint64_t sent) {
    os.pass("open: put back");
    /* release: what we did in the slot comes before what others do there. If the word is not what
     * we made of it, another took the slot away */
    (void)atomic_compare_exchange_strong_explicit(&shared_record(slot)->word, &held, sent,
                                                  memory_order_acq_rel, memory_order_acquire);
}

/* Something of this process is in the slot, as far as this process knows. By who has something
 * there, or with the lock. */
static bool is_ours_already(const struct shared_slot *slot) {
    enum slot_use use = shared_use(slot);
    return use == SLOT_OPEN || use == SLOT_LINGERS || atomic_load(&slot->leased);
}

/* The same, or it was of the process that this one was forked from, and of none before. */
static bool was_used(const struct shared_slot *slot) {
    return shared_use(slot) != SLOT_IDLE || atomic_load(&slot->leased);
}

/* What was sent is here to be read. The slot is held: in one that is only sent others might write
 * by now, or trim it, and pages would get where nobody counts them. */
static int enter(struct shared_slot *slot, const struct ebb_parcel *parcel, size_t *bytes) {
    *bytes = read_sent(slot);
    int result = shared_confirm(slot, bytes);
    if (!result && !root_is_within(parcel, *bytes))
        result = refuse(slot->shared, parcel, "its root is not in what was sent");
    if (!result)
        result = shared_map_to_read(slot);
    if (!result)
        result = shared_populate(slot, *bytes);
    return result ? result : shared_pin(slot, *bytes);
}

/* The slot is held and can be read; 0, or the error, and it is sent as before. */
static int take_to_read(struct shared_slot *slot, const struct ebb_parcel *parcel, uint64_t *held,
                        size_t *bytes) {
    uint64_t sent;
    if (is_ours_already(slot))
        return refuse_stale(slot, parcel, atomic_load(&shared_record(slot)->word));
    int result = take(slot, parcel, &sent, held);
    if (result)
        return result;
    result = enter(slot, parcel, bytes);
    if (result)
        put_back(slot, *held, sent);
    return result;
}

static struct ebb_lease *open_locked(struct shared *shared, const struct ebb_parcel *parcel) {
    struct shared_slot *slot = &shared->slots[parcel->slot];
    struct lease_table *table = table_of(shared);
    size_t bytes = 0;
    uint64_t word;
    if (!table || shared_identify(shared) != 0 ||
        take_to_read(slot, parcel, &word, &bytes) != 0)
        return NULL;
    struct ebb_lease *lease = &table->leases[parcel->slot];
    atomic_store(&slot->leased, 1);
    atomic_fetch_add(&shared->leases_out, 1);
    lease->word = word;
    lease->start = (char *)shared_start(slot);
    lease->bytes = bytes;
    lease->root = parcel->root;
    lease->root_bytes = parcel->bytes;
    poison_opened((uintptr_t)lease->start, bytes);
    atomic_store(&lease->count, 1);
    return lease;
}

/* The shared pool and the parcel, copied; or NULL with an error. */
static struct shared *begin(struct ebb_pool *pool, const struct ebb_parcel *parcel,
                            struct ebb_parcel *copy) {
    if (!pool || !pool_is_shared(pool)) {
        error_set(EBB_E_KIND, "pool '%s' is not shared: it gets no parcels",
                  pool ? pool->name : "NULL");
        return NULL;
    }
    if (!parcel) {
        error_set(EBB_E_ARGUMENT, "no parcel for pool '%s'", pool->name);
        return NULL;
    }
    *copy = *parcel;
    return check_parcel(pool->shared, copy) == 0 ? pool->shared : NULL;
}

struct ebb_lease *ebb_parcel_open(struct ebb_pool *pool, const struct ebb_parcel *parcel) {
    struct ebb_parcel copy;
    struct shared *shared = begin(pool, parcel, &copy);
    if (!shared || shared_settle_pinning(shared) != 0)
        return NULL;
    shared_lock(shared);
    (void)shared_settle_locked(shared);
    struct ebb_lease *lease = open_locked(shared, &copy);
    shared_unlock(shared);
    return lease;
}

int ebb_parcel_discard(struct ebb_pool *pool, const struct ebb_parcel *parcel) {
    struct ebb_parcel copy;
    struct shared *shared = begin(pool, parcel, &copy);
    uint64_t sent, held;
    if (!shared)
        return error_latest();
    struct shared_slot *slot = &shared->slots[copy.slot];
    shared_lock(shared);
    int result = shared_identify(shared);
    if (!result && (result = take(slot, &copy, &sent, &held)) == 0)
        (void)shared_free(slot, held);
    shared_unlock(shared);
    return result;
}

/* ---- using ---- */

/* False for what ebb_parcel_open() returns when it fails. */
static bool is_given(const struct ebb_lease *lease) {
    if (!lease)
        error_set(EBB_E_ARGUMENT, "no lease to look into");
    return lease != NULL;
}

void *ebb_lease_root(const struct ebb_lease *lease, size_t *bytes) {
    if (bytes)
        *bytes = 0;
    if (!is_given(lease))
        return NULL;
    if (bytes)
        *bytes = lease->root_bytes;
    return lease->root == SIZE_MAX ? NULL : lease->start + lease->root;
}

void *ebb_lease_at(const struct ebb_lease *lease, size_t offset, size_t bytes) {
    if (!is_given(lease))
        return NULL;
    if (offset <= lease->bytes && bytes <= lease->bytes - offset)
        return lease->start + offset;
    error_set(EBB_E_PARCEL, "%zu bytes at %zu of slot %u, of which %zu were sent", bytes, offset,
              lease->slot, lease->bytes);
    return NULL;
}

size_t ebb_lease_bytes(const struct ebb_lease *lease) {
    return is_given(lease) ? lease->bytes : 0;
}

/* So many are held that nobody counts them any more: it never ends. */
static bool is_full(uint32_t count) {
    return count >= LEASE_MOST && count < LEASE_PENDING;
}

void ebb_lease_hold(struct ebb_lease *lease) {
    if (!lease)
        return;
    /* relaxed: the caller has a reference, so nothing can end meanwhile; and what is full stays so,
     * whoever holds or drops it */
    if (is_full(atomic_fetch_add_explicit(&lease->count, 1, memory_order_relaxed)))
        atomic_store_explicit(&lease->count, LEASE_MOST, memory_order_relaxed);
}

/* One more reference, if anybody has one. */
static bool join(struct ebb_lease *lease) {
    uint32_t count = atomic_load(&lease->count);
    do
        if (count == 0 || count == LEASE_ENDING || count == LEASE_PENDING)
            return false;
    while (!is_full(count) && !atomic_compare_exchange_weak(&lease->count, &count, count + 1));
    return true;
}

struct ebb_lease *ebb_lease_of(const void *address) {
    const struct shared_slot *slot = shared_slot_at(address);
    /* older tables: a forked child looks at what its parent opened, unless there has been something
     * of its own in the slot since, or of a process between: the parent had let go of it then,
     * whatever is still counted here */
    for (struct lease_table *table = slot ? newest(slot->shared) : NULL; table;
         table = table->older)
        if (!(is_inherited(table) && was_used(slot)) && join(&table->leases[slot->index]))
            return &table->leases[slot->index];
    error_set(EBB_E_FOREIGN, "%p lies in nothing that this process holds a lease of", address);
    return NULL;
}

void ebb_lease_drop(struct ebb_lease *lease) {
    if (!lease)
        return;
    fork_settle(); /* before this thread ends it: a child takes that for another's doing */
    uint32_t count = atomic_load_explicit(&lease->count, memory_order_relaxed), less;
    do
        less = count == 1 ? LEASE_ENDING : is_full(count) ? count : count - 1;
    /* release: what we read and wrote comes before the end; acquire: of all others, if we end it */
    while (!atomic_compare_exchange_weak_explicit(&lease->count, &count, less,
                                                  memory_order_acq_rel, memory_order_relaxed));
    if (less == LEASE_ENDING)
        end(lease);
}

int ebb_pool_set_release_check(struct ebb_pool *pool, ebb_release_check *check, void *context) {
    if (!pool || !pool_is_shared(pool))
        return error_set(EBB_E_KIND, "pool '%s' is not shared: it has no leases",
                         pool ? pool->name : "NULL");
    struct shared *shared = pool->shared;
    shared_lock(shared);
    size_t out = atomic_load(&shared->leases_out);
    struct lease_table *table = out ? NULL : table_of(shared);
    int result = table ? 0 : error_latest();
    if (out)
        result = error_set(EBB_E_BUSY, "pool '%s' has %zu leases that were not dropped",
                           pool->name, out);
    if (table) {
        table->check = check;
        table->context = context;
    }
    shared_unlock(shared);
    return result;
}
