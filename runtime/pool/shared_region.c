// SPDX-License-Identifier: Apache-2.0
/*
 * shared_region.c - regions in the slots of a shared pool: they enter, leave, and are sent.
 *
 *     IDLE --enter--> OPEN --leave, send--> IDLE
 *                       `---leave, exports are out--> LINGERS --given back--> IDLE
 *     and in a forked child from OPEN to LOST, from LINGERS to LOST_LINGERS, which end alike
 *
 * That is the slot's `use`, which this process alone knows; its word is for all (shared.h). Who
 * finds no free slot waits for one as long as the pool says, asks the program whether to go on, and
 * looks for dead owners meanwhile.
 *
 * Invariant: a slot that is not idle was claimed by this process, or is lost: then its word is the
 * parent's, and is not touched.
 */
#include "base/cancel.h"
#include "base/os.h"
#include "base/size.h"
#include "pool/shared.h"

/* Nanoseconds, then the dead are looked for again; or devices, while something waits for them. */
#define WAIT_MOST ((uint64_t)100000000)
#define WAIT_DEVICE ((uint64_t)1000000)

/* ---- what is free again ---- */

void shared_give_up(struct shared_slot *slot) {
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
            shared_give_up(slot);
    }
}

bool shared_settle_locked(struct shared *shared) {
    const struct shared_hooks *hooks = atomic_load(&shared->hooks);
    settle_lingering(shared);
    return hooks && hooks->settle(shared);
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
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        /* acquire: without the lock another thread may be making it */
        struct ebb_pool *pool = atomic_load_explicit(&shared->slots[i].pool, memory_order_acquire);
        if (pool)
            visit(context, pool);
    }
}

/* ---- entering ---- */

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
    if (shared_prepare(slot) != 0) {
        shared_give_up(slot);
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
        shared_give_up(slot);
    }
    shared_unlock(shared);
}

/* ---- sending ---- */

bool shared_may_send(const struct ebb_pool *inner) {
    const struct shared_slot *slot = inner->slot;
    struct shared *shared = slot->shared;
    shared_lock(shared);
    bool ours = shared_is_ours(slot);
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
