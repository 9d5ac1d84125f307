// SPDX-License-Identifier: Apache-2.0
/*
 * shared_state.c - the words of a shared pool's slots: claiming, freeing, reclaiming.
 *
 * Which slot a new region gets matters: pages that are in this process's page table already cost
 * nothing. So a process first looks at the slots it had, the latest first; then at those that a
 * process had which is gone, among them what the dead wrote to and held; then at those that nobody
 * had, since growing costs less than taking turns on pages that each process has to map; then at
 * any. What the dead sent comes last, for a message may be under way still; who waits for a slot
 * takes it when the time is over.
 *
 * Invariant: words are changed by compare-and-swap from what was read and checked, by who owns the
 * slot, or from FREE, or from what a dead owner left. A lost race means: look elsewhere.
 */
#include "base/error.h"
#include "base/os.h"
#include "pool/shared.h"

static uint64_t read_word(const struct shared_slot *slot) {
    /* acquire: what the one who wrote the word did before it is seen */
    return atomic_load_explicit(&shared_record(slot)->word, memory_order_acquire);
}

static bool change(struct shared_slot *slot, uint64_t from, uint64_t to) {
    /* release: what we did to the slot is seen by who reads the word; acquire: the other way */
    return atomic_compare_exchange_strong_explicit(&shared_record(slot)->word, &from, to,
                                                   memory_order_acq_rel, memory_order_acquire);
}

bool shared_may_claim(const struct shared_slot *slot) {
    return slot->use == SLOT_IDLE && !atomic_load(&slot->leased);
}

bool shared_claim(struct shared_slot *slot) {
    struct shared *shared = slot->shared;
    uint64_t word = read_word(slot);
    if (word_state(word) != SLOT_FREE || !shared_may_claim(slot))
        return false;
    uint64_t next = word_make(SLOT_WRITING, word_generation(word) + 1, shared->me);
    os.pass("claim: swap");
    if (!change(slot, word, next))
        return false;
    os.pass("claim: done");
    atomic_store_explicit(&shared_record(slot)->last, shared->me, memory_order_relaxed);
    slot->word = next;
    slot->use = SLOT_OPEN;
    return true;
}

/*
 * Sequentially consistent with shared_region.c: who announces that he waits, and then finds `frees`
 * as it was, is seen here. What is taken back is an announcement of before: who made it does not
 * fall asleep, or is woken. One that comes later may be of somebody who has looked since, and waits
 * for the next slot: it stays.
 */
static void ring(struct shared_control *control) {
    bool waits = atomic_load(&control->waiting) && atomic_exchange(&control->waiting, 0);
    atomic_fetch_add(&control->frees, 1);
    os.pass("free: ring");
    if (waits || atomic_load(&control->waiting))
        os.wake(&control->frees);
}

bool shared_free(struct shared_slot *slot, uint64_t word) {
    os.pass("free: swap");
    if (!change(slot, word, word_make(SLOT_FREE, word_generation(word), 0)))
        return false;
    ring(slot->shared->control);
    return true;
}

/* ---- which slot ---- */

void shared_note_mine(const struct shared_slot *slot) {
    struct shared *shared = slot->shared;
    uint32_t at = 0, index = slot->index;
    while (at < shared->mine_count && shared->mine[at] != index)
        at++;
    shared->mine_count += at == shared->mine_count;
    for (; at > 0; at--)
        shared->mine[at] = shared->mine[at - 1];
    shared->mine[0] = index;
}

static struct shared_slot *claim_mine(struct shared *shared) {
    for (uint32_t i = 0; i < shared->mine_count; i++)
        if (shared_claim(&shared->slots[shared->mine[i]]))
            return &shared->slots[shared->mine[i]];
    return NULL;
}

/* What a slot looks like to one who has not had it. */
enum liking { ORPHANED, FRESH, ANY };

static bool is_liked(const struct shared *shared, const struct shared_slot *slot,
                     enum liking liking, struct shared_living *living) {
    const struct shared_record *record = shared_record(slot);
    if (liking == ANY)
        return true;
    bool backed = atomic_load_explicit(&record->backed, memory_order_relaxed) != 0;
    if (liking == FRESH)
        return !backed;
    uint32_t last = atomic_load_explicit(&record->last, memory_order_relaxed);
    return backed && !shared_is_alive(shared, last, living);
}

static struct shared_slot *claim_other(struct shared *shared, enum liking liking,
                                       struct shared_living *living) {
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        struct shared_slot *slot = &shared->slots[i];
        if (word_state(read_word(slot)) == SLOT_FREE && is_liked(shared, slot, liking, living) &&
            shared_claim(slot))
            return slot;
    }
    return NULL;
}

/* One that costs no new pages. */
static struct shared_slot *claim_used(struct shared *shared, struct shared_living *living) {
    struct shared_slot *slot = claim_mine(shared);
    return slot ? slot : claim_other(shared, ORPHANED, living);
}

void shared_say_taken(const struct shared *shared) {
    unsigned counts[SLOT_STATES] = {0}, broken = 0;
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        unsigned state = word_state(read_word(&shared->slots[i]));
        if (state < SLOT_STATES)
            counts[state]++;
        else
            broken++;
    }
    error_set(EBB_E_SLOTS, "pool '%s': no slot left of %u: %u are written to, %u sent, %u held, "
              "%u free but in use here, %u damaged", shared->pool->name, shared->slot_count,
              counts[SLOT_WRITING], counts[SLOT_SENT], counts[SLOT_HELD], counts[SLOT_FREE],
              broken);
}

/* ---- the dead ---- */

/* What no living process answers for. This one knows what it has; a state that is none, or a slot
 * that is said to be ours and is not, comes of a wild write. */
static bool is_left(const struct shared_slot *slot, uint64_t word, bool sent_too,
                    struct shared_living *living) {
    const struct shared *shared = slot->shared;
    unsigned state = word_state(word);
    bool ours = slot->use != SLOT_IDLE || atomic_load(&slot->leased);
    if (state == SLOT_FREE || (state == SLOT_SENT && !sent_too))
        return false;
    if (state >= SLOT_STATES)
        return !ours;
    if (word_owner(word) == shared->me)
        return !ours && state != SLOT_SENT;
    return !shared_is_alive(shared, word_owner(word), living);
}

/*
 * Who was killed while his slot grew, or was trimmed, left pages that nothing counts. They go while
 * the slot is this process's, so that nobody else is in it.
 */
static bool free_written(struct shared_slot *slot, uint64_t word) {
    uint64_t mine = word_make(SLOT_WRITING, word_generation(word), slot->shared->me);
    os.pass("reclaim: swap");
    if (!change(slot, word, mine))
        return false;
    shared_drop_uncounted(slot);
    return shared_free(slot, mine);
}

static size_t reclaim(struct shared *shared, bool sent_too, struct shared_living *living) {
    size_t count = 0;
    for (uint32_t i = 0; i < shared->slot_count; i++) {
        struct shared_slot *slot = &shared->slots[i];
        uint64_t word = read_word(slot);
        if (!is_left(slot, word, sent_too, living))
            continue;
        bool written = word_state(word) == SLOT_WRITING;
        count += written ? free_written(slot, word) : shared_free(slot, word);
    }
    return count;
}

size_t shared_reclaim(struct shared *shared, bool sent_too) {
    struct shared_living living = {{0}};
    return reclaim(shared, sent_too, &living);
}

/* ---- all of it ---- */

static struct shared_slot *claim_any(struct shared *shared, struct shared_living *living) {
    struct shared_slot *slot = claim_used(shared, living);
    if (!slot && reclaim(shared, false, living))
        slot = claim_used(shared, living);
    if (!slot)
        slot = claim_other(shared, FRESH, living);
    return slot ? slot : claim_other(shared, ANY, living);
}

struct shared_slot *shared_find(struct shared *shared, bool sent_too) {
    struct shared_living living = {{0}};
    struct shared_slot *slot = claim_any(shared, &living);
    if (!slot && sent_too && reclaim(shared, true, &living))
        slot = claim_any(shared, &living);
    return slot;
}
