// SPDX-License-Identifier: Apache-2.0
/*
 * shared_heap.c - regions in the slots of a shared pool.
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
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/poison.h"
#include "base/size.h"
#include "pool/shared.h"

#include <errno.h>

/* Nanoseconds, then the dead are looked for again; or devices, while something waits for them. */
#define WAIT_MOST ((uint64_t)100000000)
#define WAIT_DEVICE ((uint64_t)1000000)

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

/* True if the region in the slot is this process's still; else error set. By who has the region. */
static bool is_ours(const struct shared_slot *slot) {
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
    if (!is_ours(slot) || shared_check_file(shared) != 0)
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

/* ---- entering ---- */

static int make_pool(struct shared_slot *slot) {
    const struct ebb_pool *outer = slot->shared->pool;
    struct ebb_pool_options options = {
        .size = sizeof options, .name = outer->name, .keep_all = true};
    if (slot->pool)
        return 0;
    options.limit_used_bytes = outer->limit_used;
    slot->pool = pool_make(&options, &kind_slot);
    if (!slot->pool)
        return error_latest();
    pthread_mutex_lock(&slot->pool->lock); /* others look at all pools that there are */
    slot->pool->shared = slot->shared;
    slot->pool->slot = slot;
    slot->pool->pages.source = slot;
    pthread_mutex_unlock(&slot->pool->lock);
    return 0;
}

/* What the file has pages for, as the record says, as far as that can be. */
static size_t read_backed(const struct shared_slot *slot) {
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
    size_t said = read_backed(slot);
    slot->backed = said;
    int result = shared_confirm(slot, &slot->backed);
    if (!result && slot->backed != said)
        atomic_store_explicit(&shared_record(slot)->backed, slot->backed, memory_order_relaxed);
    return result;
}

static int prepare(struct shared_slot *slot) {
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

static void give_up(struct shared_slot *slot) {
    shared_free(slot, slot->word);
    slot->use = SLOT_IDLE;
}

/* Exports of a region that was in the slot are out. */
static bool is_held(const struct shared_slot *slot) {
    pthread_mutex_lock(&slot->pool->lock);
    bool held = slot->pool->held_bytes != 0;
    pthread_mutex_unlock(&slot->pool->lock);
    return held;
}

/* Regions that closed while exports were out: their slots are free once these are given back. */
static void settle_lingering(struct shared *shared) {
    for (uint32_t i = 0; shared->lingering && i < shared->slot_count; i++) {
        struct shared_slot *slot = &shared->slots[i];
        bool lost = slot->use == SLOT_LOST_LINGERS;
        if ((slot->use != SLOT_LINGERS && !lost) || is_held(slot))
            continue;
        shared->lingering--;
        if (lost)
            slot->use = SLOT_IDLE; /* its word is the parent's still */
        else
            give_up(slot);
    }
}

bool shared_settle_locked(struct shared *shared) {
    const struct shared_hooks *hooks = atomic_load(&shared->hooks);
    settle_lingering(shared);
    return hooks && hooks->settle(shared);
}

/* What the program says. A step that begins has its lane. */
static bool may_go_on(const struct shared *shared) {
    if (!shared->go_on)
        return true;
    int cancels = cancel_defer();
    bool goes_on = shared->go_on(shared->go_on_context);
    cancel_restore(cancels);
    return goes_on;
}

/* Waits until a slot has become free since `seen`, a signal has come, or so long. False: whoever
 * waits is to give up, which is asked first: he may not want to wait at all. The lock is not held
 * meanwhile. */
static bool wait_for_slot(struct shared *shared, uint32_t seen, uint64_t ns) {
    shared_unlock(shared);
    bool goes_on = may_go_on(shared);
    if (goes_on) {
        atomic_store(&shared->control->waiting, 1);
        (void)os.wait(&shared->control->frees, seen, ns);
    }
    shared_lock(shared);
    return goes_on;
}

/* What the dead have sent is taken when the time is over: until then it may still be opened, and
 * its slot free. */
static struct shared_slot *find_or_wait(struct shared *shared) {
    uint64_t began = shared->wait_ns ? os.now_ns() : 0;
    for (;;) {
        uint32_t seen = atomic_load(&shared->control->frees);
        uint64_t most = shared_settle_locked(shared) ? WAIT_DEVICE : WAIT_MOST;
        uint64_t waited = shared->wait_ns ? os.now_ns() - began : 0;
        bool is_over = waited >= shared->wait_ns;
        struct shared_slot *slot = shared_find(shared, is_over);
        if (slot)
            return slot;
        if (is_over ||
            !wait_for_slot(shared, seen, size_smaller(shared->wait_ns - waited, most))) {
            shared_say_taken(shared);
            return NULL;
        }
        if (shared_identify(shared) != 0)
            return NULL;
    }
}

static struct ebb_pool *enter_locked(struct shared *shared) {
    if (shared_identify(shared) != 0)
        return NULL;
    struct shared_slot *slot = find_or_wait(shared);
    if (!slot)
        return NULL;
    slot->sending = false;
    if (prepare(slot) != 0) {
        give_up(slot);
        return NULL;
    }
    shared_note_mine(slot); /* not before: one that cannot serve would be looked at first */
    return slot->pool;
}

struct ebb_pool *shared_enter(struct ebb_pool *pool) {
    struct shared *shared = pool->shared;
    shared_lock(shared);
    struct ebb_pool *inner = enter_locked(shared);
    shared_unlock(shared);
    return inner;
}

/* ---- leaving ---- */

void shared_leave(struct ebb_pool *inner) {
    struct shared_slot *slot = inner->slot;
    struct shared *shared = slot->shared;
    if (slot->sending)
        return;
    shared_lock(shared);
    bool lost = slot->use == SLOT_LOST;
    if ((lost || slot->use == SLOT_OPEN) && is_held(slot)) {
        slot->use = lost ? SLOT_LOST_LINGERS : SLOT_LINGERS;
        shared->lingering++;
    } else if (lost) {
        slot->use = SLOT_IDLE; /* its word is the parent's still */
    } else if (slot->use == SLOT_OPEN) {
        give_up(slot);
    }
    shared_unlock(shared);
}

bool shared_may_send(const struct ebb_pool *inner) {
    const struct shared_slot *slot = inner->slot;
    struct shared *shared = slot->shared;
    shared_lock(shared);
    bool ours = is_ours(slot);
    shared_unlock(shared);
    return ours;
}

void shared_begin_sending(struct shared_slot *slot) {
    struct ebb_pool *pool = slot->pool;
    slot->sending = true;
    pthread_mutex_lock(&pool->lock);
    pool->pages.leaving = true;
    pthread_mutex_unlock(&pool->lock);
}

bool shared_send(struct shared_slot *slot, size_t bytes) {
    struct shared *shared = slot->shared;
    struct shared_record *record = shared_record(slot);
    uint64_t word = slot->word;
    shared_lock(shared);
    os.pass("send: note");
    atomic_store_explicit(&record->sent, bytes, memory_order_relaxed);
    os.pass("send: swap");
    /* release: all that was written in the slot is seen by who opens it */
    bool sent = slot->use == SLOT_OPEN &&
                atomic_compare_exchange_strong_explicit(
                    &record->word, &word,
                    word_make(SLOT_SENT, word_generation(word), word_owner(word)),
                    memory_order_acq_rel, memory_order_acquire);
    os.pass("send: done");
    if (slot->use == SLOT_OPEN || slot->use == SLOT_LOST) /* a cleanup forked, this is the child */
        slot->use = SLOT_IDLE;
    slot->sending = false;
    shared_unlock(shared);
    return sent;
}

/* What a child lets go of in its parent's slot is the parent's still, or another block by now; or
 * was sent, and is read here. */
void pool_poison(const struct ebb_pool *pool, uintptr_t addr, size_t bytes) {
    if (!pool_is_lost(pool))
        poison_released(addr, bytes);
    else if (!pool_is_leased(pool))
        poison_unused(addr, bytes);
}

/* ---- trimming and walking ---- */

void shared_drop_uncounted(const struct shared_slot *slot) {
    (void)punch(slot, read_backed(slot));
}

/* Pages of a slot that is free go. Before that they are counted nowhere, and old to who has them in
 * his table: who is killed here leaves nothing wrong. */
static size_t trim_slot(struct shared_slot *slot) {
    struct shared_record *record = shared_record(slot);
    size_t backed = read_backed(slot);
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

/* Bytes in free slots. Those that stay are in slots that are still something else for this
 * process, as after a fork, or that the system did not take. */
struct cached {
    size_t all, staying;
};

static struct cached count_cached(const struct shared *shared) {
    struct cached cached = {0, 0};
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        const struct shared_slot *slot = &shared->slots[i];
        size_t bytes = read_backed(slot);
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
        size_t backed = read_backed(slot);
        if (!backed || !shared_claim(slot))
            continue;
        size_t bytes = trim_slot(slot);
        give_up(slot);
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

size_t shared_settle(struct shared *shared) {
    size_t open = 0;
    shared_lock(shared);
    (void)shared_settle_locked(shared);
    for (uint32_t i = 0; i < shared->slot_count; i++)
        open += shared->slots[i].use == SLOT_OPEN;
    shared_unlock(shared);
    return open;
}

void shared_each(const struct shared *shared, void (*visit)(void *context, struct ebb_pool *pool),
                 void *context) {
    for (uint32_t i = 0; i < shared->slot_count; i++)
        if (shared->slots[i].pool)
            visit(context, shared->slots[i].pool);
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
