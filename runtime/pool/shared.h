// SPDX-License-Identifier: Apache-2.0
/*
 * shared.h - pools of shared memory: a memory file, mapped by several processes.
 *
 *     file    | control | slot 0 .......... | slot 1 .......... | ...      sparse
 *                         ^ who writes: a chunk of his range, wherever that has room
 *                         ^ who only reads: a view, wherever the process has room
 *
 * Each root region of such a pool has a slot of its own, with its children. In the slot works an
 * ordinary page heap, that of a hidden pool which only this process knows: pages that the file
 * has are hot, the others are cold and get their backing when they become resident. So everything
 * above, from lanes to plans, works as in any pool.
 *
 *     shared_area.c    the file, its mappings, making, attaching and ending
 *     shared_owner.c   who is alive
 *     shared_state.c   the words of the slots                  the protocol between processes
 *     shared_heap.c    the page heap in a slot                 this process's side
 *     shared_region.c  a region in a slot: enters, leaves, is sent
 *     shared_trim.c    what free slots give back
 *     shared_pin.c     pages that devices read
 *
 * What is in the control part may be changed by any process at any time, by a broken one to
 * anything. So each word of it is read once and checked, nothing in it is an address, and what
 * this process needs to know of itself is in its own memory. A peer that lies can make contents
 * wrong and slots unusable, no more.
 *
 * A slot's word is changed by compare-and-swap only:
 *
 *     FREE --claim--> WRITING --send--> SENT --open--> HELD --release--> FREE
 *                        `---close----------------------------------------^
 *     and from HELD to SENT if what was opened cannot be read here
 *     and back to FREE from each of them once its owner is dead
 *
 * The generation grows with each claim: a parcel of an earlier one opens nothing.
 */
#ifndef EBB_POOL_SHARED_H
#define EBB_POOL_SHARED_H

#include "base/hidden.h"
#include "base/os.h"
#include "pool/fork.h"
#include "pool/pool.h"

#define SHARED_MAGIC UINT64_C(0x31646572616873eb)
#define SHARED_LAYOUT 1u /* of the control part; another one is refused */
#define SHARED_SLOTS_MOST 4096u
#define SHARED_OWNERS 1024u /* processes at once */

/* ---- the control part of the file ---- */

enum slot_state { SLOT_FREE, SLOT_WRITING, SLOT_SENT, SLOT_HELD, SLOT_STATES };

/* | state: 8 bits | generation: 24 | owner: 32 | */
#define WORD_OWNER_BITS 32
#define WORD_GENERATION_BITS 24
#define WORD_STATE_SHIFT (WORD_OWNER_BITS + WORD_GENERATION_BITS)
#define WORD_GENERATIONS ((uint32_t)1 << WORD_GENERATION_BITS)
#define OWNER_INCARNATION_BITS 22 /* below its index */
#define OWNER_INCARNATIONS ((uint32_t)1 << OWNER_INCARNATION_BITS)

struct shared_record {
    _Alignas(64) _Atomic uint64_t word;
    _Atomic uint64_t backed; /* bytes from the slot's start that the file has pages for */
    _Atomic uint64_t sent;   /* bytes from there that were sent */
    _Atomic uint32_t last;   /* who claimed it last */
    _Atomic uint32_t trims;  /* grows when the pages go */
};

struct shared_head {
    uint64_t magic;
    uint32_t layout, slots;
    uint64_t slot_bytes, identity;
};

struct shared_control {
    struct shared_head head; /* written once */
    _Alignas(64) _Atomic uint32_t frees; /* grows when a slot becomes free: waited for */
    _Atomic uint32_t waiting;            /* somebody waits for that */
    _Alignas(64) _Atomic uint32_t incarnations[SHARED_OWNERS]; /* byte i of the file is the lock of
                                                                  owner i */
    struct shared_record records[];
};

static inline uint64_t word_make(enum slot_state state, uint32_t generation, uint32_t owner) {
    return (uint64_t)state << WORD_STATE_SHIFT |
           (uint64_t)(generation % WORD_GENERATIONS) << WORD_OWNER_BITS | owner;
}

static inline unsigned word_state(uint64_t word) {
    return (unsigned)(word >> WORD_STATE_SHIFT);
}

static inline uint32_t word_generation(uint64_t word) {
    return (uint32_t)(word >> WORD_OWNER_BITS) % WORD_GENERATIONS;
}

static inline uint32_t word_owner(uint64_t word) {
    return (uint32_t)word;
}

/* ---- this process's side ---- */

enum slot_use {
    SLOT_IDLE,
    SLOT_OPEN,    /* a region of this process is in it */
    SLOT_LINGERS, /* that closed, but exports are out: its pages are held */
    SLOT_LOST,    /* a region of the process that this one was forked from is */
    SLOT_LOST_LINGERS /* the same, closed here or there, but exports are out here */
};

struct shared_slot {
    struct shared *shared;
    uint32_t index;
    _Atomic uintptr_t addr; /* where it is mapped in the range; 0: not yet */
    _Atomic uintptr_t view; /* the same outside of it, where there is no region; until the end */
    _Atomic(struct ebb_pool *) pool; /* of its regions; NULL: none so far. Made under the lock */
    _Atomic enum slot_use use; /* changes under the lock of the shared pool */
    bool sending;           /* the region that closes now leaves its bytes */
    uint64_t word;          /* while a region is in it */
    size_t backed;          /* as far as this process knows */
    size_t populated;       /* bytes from shared_start() in this process's page table */
    uint32_t trims;         /* then */
    size_t pinned;          /* bytes from pinned_at, by this process; see shared_pin.c */
    uintptr_t pinned_at;    /* where shared_start() was then */
    uint32_t pinned_trims;  /* then */
    _Atomic uint32_t leased; /* the holder of a lease of it is this process: see handoff/lease.h */
};

/* What the layer above wants to be asked. */
struct shared_hooks {
    bool (*settle)(struct shared *shared); /* frees what waited for a device; true: some does */
    bool (*part)(struct shared *shared);   /* no lease is out: devices get back what is theirs;
                                              false: one refused, error set */
    void (*end)(struct shared *shared);    /* the same, the pool ends */
    void (*inherit)(struct shared *shared); /* this is a forked child: it has what was held */
};

struct shared {
    pthread_mutex_t lock; /* claims, mappings, the identity. Before all locks of pools */
    struct ebb_pool *pool; /* that the user knows */
    struct shared_control *control;
    size_t control_bytes, slot_bytes, own_bytes; /* of this struct and what follows it */
    uint64_t identity, wait_ns;
    bool (*go_on)(void *context); /* or NULL, see ebb/pool.h */
    void *go_on_context;
    uint32_t slot_count;
    int fd;
    int life;            /* an opening of the file that only this process has; -1: none so far */
    struct os_file_identity file; /* that both are of, unless the program closed them */
    uint32_t me;         /* index and incarnation of this process; 0: not yet */
    uint32_t mine_count; /* slots that this process claimed, the latest first */
    uint32_t *mine;
    uint32_t lingering;
    bool pins;               /* what it opens is pinned, */
    bool pinning_is_settled; /* and how is known: */
    int device;
    struct cuda_hold cuda;   /* by this device, or locked */
    atomic_size_t leases_out; /* of this process, inherited ones too */
    const struct shared_hooks *_Atomic hooks;
    _Atomic(void *) above; /* of the layer above; changes under the lock */
    struct shared *next; /* all of the process */
    struct shared_slot slots[];
};

static inline struct shared_record *shared_record(const struct shared_slot *slot) {
    return &slot->shared->control->records[slot->index];
}

/* Where this process reads the slot: where it writes, if it ever did. 0: it is not mapped. Lock
 * held. */
static inline uintptr_t shared_start(const struct shared_slot *slot) {
    uintptr_t addr = atomic_load_explicit(&slot->addr, memory_order_relaxed);
    return addr ? addr : atomic_load_explicit(&slot->view, memory_order_relaxed);
}

/* Where in the file the slot begins. */
static inline size_t shared_offset(const struct shared_slot *slot) {
    return slot->shared->control_bytes + slot->index * slot->shared->slot_bytes;
}

/* True for a pool that users know as shared, as opposed to the hidden ones of slots. */
static inline bool pool_is_shared(const struct ebb_pool *pool) {
    return pool->shared && !pool->slot;
}

/* What is known under it is known of this process, whatever made that. */
static inline void shared_lock(struct shared *shared) {
    fork_settle();
    pthread_mutex_lock(&shared->lock);
}

static inline void shared_unlock(struct shared *shared) {
    pthread_mutex_unlock(&shared->lock);
}

/* What this process has in the slot. By who has something there, or with the lock. */
static inline enum slot_use shared_use(const struct shared_slot *slot) {
    fork_settle();
    return slot->use;
}

/* True for the hidden pool of a region that is open in the process that this one was forked from:
 * what lies in it is in use there. By who has the region. */
static inline bool pool_is_lost(const struct ebb_pool *pool) {
    return pool->slot && shared_use(pool->slot) == SLOT_LOST;
}

/* True in a forked child that has opened what was sent from the slot in the meantime: whatever it
 * ends of what it inherited there, the pages are in use. Any thread. */
static inline bool pool_is_leased(const struct ebb_pool *pool) {
    if (!pool->slot)
        return false;
    fork_settle();
    return atomic_load_explicit(&pool->slot->leased, memory_order_relaxed);
}

/* The pool that users know of the one that a region is in. */
static inline struct ebb_pool *pool_outside(struct ebb_pool *pool) {
    return pool->slot ? pool->shared->pool : pool;
}

/* Where to open regions for bookkeeping about one of that pool: a slot is too good for that. */
static inline struct ebb_pool *pool_for_work(struct ebb_pool *pool) {
    return pool->slot ? ebb_pool_default() : pool;
}

/* ---- shared_file.c ---- */

/* The pool has that descriptor from now on, which is closed if that fails. 0, or EBB_E_MEMORY. */
int shared_take_file(struct shared *shared, int fd);

/* False: the program has closed the descriptor, and what has its number now is its own. */
bool shared_has(const struct shared *shared, int fd);

/* The same of the file itself; 0, or EBB_E_SHARED. */
int shared_check_file(const struct shared *shared);

/* Closes a descriptor of the pool's file, if it still is one; -1: none. */
void shared_close(const struct shared *shared, int fd);

/* ---- shared_area.c ---- */

/* A pool of kind EBB_KIND_SHARED; NULL: error set. */
struct ebb_pool *shared_create(const struct ebb_pool_options *options);

/* Maps the slot for a region, in the range, if it is not yet. Nothing of this process is in it.
 * Lock held. 0, EBB_E_MEMORY or EBB_E_SHARED. */
int shared_map(struct shared_slot *slot);

/* Maps it for a lease, wherever there is room, if it is not yet. The same. */
int shared_map_to_read(struct shared_slot *slot);

/* The slot of any pool that an address lies in, mapped here; NULL: none. It stays while something
 * of this process is in it. Takes the lock of the list of pools. */
struct shared_slot *shared_slot_at(const void *address);

/* False for most addresses that are in no slot, without a lock; those in the range aside. */
bool shared_may_view(const void *address);

/* Ends a pool of which no region is open, no lease out and no hidden pool left. */
void shared_end(struct shared *shared);

/* Waits for all locks before a fork; gives them back after. */
void shared_fork(bool before);

/* A child forgets its parent. It has one thread, which may have any lock. What it closes its parent
 * has still, unless both share their descriptors. */
void shared_be_child(bool shares_files);

/* ---- shared_owner.c ---- */

/* This process gets a place among the owners, if it has none. Lock held. 0, EBB_E_MEMORY or
 * EBB_E_SHARED. */
int shared_identify(struct shared *shared);

/* Indices that a look at the slots has found locked, a bit each: it asks the system about each of
 * them once, however many slots are in one hand. Who dies meanwhile is found by the next look. What
 * is not locked is not remembered: a new process may take the index, and a slot. */
struct shared_living {
    uint64_t found[SHARED_OWNERS / 64];
};

/* False if the owner's process is gone for sure. Lock held, identified. */
bool shared_is_alive(const struct shared *shared, uint32_t owner, struct shared_living *living);

/* A forked child: the place is its parent's, and so may be the descriptor. Or the pool ends. */
void shared_forget_owner(struct shared *shared, bool closes);

/* ---- shared_state.c ---- */

/* FREE -> WRITING, if it is and nothing of this process is in it. Lock held, identified. */
bool shared_claim(struct shared_slot *slot);

/* True if it can be, as far as this process goes: nothing that it has or had lies there. */
bool shared_may_claim(const struct shared_slot *slot);

/* The slot, which serves, is the latest of this process's from now on. Lock held. */
void shared_note_mine(const struct shared_slot *slot);

/* `word`, if it still is the slot's, becomes FREE; who waits for that wakes up. */
bool shared_free(struct shared_slot *slot, uint64_t word);

/* The slot that a new region had best have, claimed; one that the dead sent only if asked, and if
 * there is no other. NULL: none is left, which is no error as long as somebody waits for one. Lock
 * held, identified. */
struct shared_slot *shared_find(struct shared *shared, bool sent_too);

/* Sets EBB_E_SLOTS: who has them. */
void shared_say_taken(const struct shared *shared);

/* Frees what dead owners left; what they sent, too, if asked. How many. Lock held, identified. */
size_t shared_reclaim(struct shared *shared, bool sent_too);

/* ---- shared_heap.c ---- */

/* A claimed slot becomes what a region finds: mapped, with a hidden pool whose hot pages are those
 * that the file has. Nothing of this process is in it. Lock held. 0, or the error. */
int shared_prepare(struct shared_slot *slot);

/* True if the region in the slot is this process's still; else error set. By who has the region. */
bool shared_is_ours(const struct shared_slot *slot);

/* Bytes from the slot's start that the file has pages for, as the record says, as far as that can
 * be. */
size_t shared_backed(const struct shared_slot *slot);

/* Pages of a claimed slot that no region is in go; returns their bytes. 0: none could. Lock
 * held. */
size_t shared_cool_slot(struct shared_slot *slot);

/* Pages of the file behind those that the slot's record counts go; nobody else is in the slot. */
void shared_drop_uncounted(const struct shared_slot *slot);

/* Bytes from the slot's start that another process says are there become no more than the file has
 * pages for, as to enter others would make them. Asks the system only about more than this process
 * has entered. To the system pages that were never touched are none: so what is backed is entered
 * before it is noted. Lock held. 0, or EBB_E_SHARED. */
int shared_confirm(struct shared_slot *slot, size_t *bytes);

/* The first bytes of a mapped slot are in the page table, and backed. 0, or EBB_E_NO_SPACE. */
int shared_populate(struct shared_slot *slot, size_t bytes);

extern HIDDEN const struct kind kind_slot;

/* ---- shared_region.c ---- */

/* The hidden pool for a root region of a shared pool, its slot claimed; NULL: error set. */
struct ebb_pool *shared_enter(struct ebb_pool *pool);

/* The root region in that pool is closed, or was never opened. */
void shared_leave(struct ebb_pool *inner);

/* True if the region that is open in it is of this process and may be sent; else error set. */
bool shared_may_send(const struct ebb_pool *inner);

/* The region in the slot closes next, and is sent: from here on no page that it had serves anybody,
 * and `sending` is set. By who has the region. */
void shared_begin_sending(struct shared_slot *slot);

/* WRITING -> SENT: the region closed with `sending` set. False: the word is not ours any more. */
bool shared_send(struct shared_slot *slot, size_t bytes);

/* What was claimed is free again: nothing of this process is in it. Lock held. */
void shared_give_up(struct shared_slot *slot);

/* What waited for devices and exports, and need not any more, is given back. Lock held. True if
 * something goes on waiting for a device. */
bool shared_settle_locked(struct shared *shared);

/* The same; takes the lock. How many slots this process has regions in, those included that another
 * thread has closed and is about to leave. */
size_t shared_settle(struct shared *shared);

/* Calls back for the hidden pools. */
void shared_each(const struct shared *shared, void (*visit)(void *context, struct ebb_pool *pool),
                 void *context);

/* ---- shared_trim.c ---- */

/* Pages of free slots go, until so many bytes are cached or the clock passes `deadline_ns` (0:
 * never). Returns their bytes; *left: those above `target` that could still go. Takes the lock. */
size_t shared_trim(struct ebb_pool *pool, size_t target, uint64_t deadline_ns, size_t *left);

/* ---- shared_pin.c ---- */

/* How the pool pins is known from here on, if it does. Takes the lock; 0, or the error. */
int shared_settle_pinning(struct shared *shared);

/* The first bytes of a slot are pinned, if the pool pins. Lock held. 0, or the error. */
int shared_pin(struct shared_slot *slot, size_t bytes);

/* Ends that; false: the driver refused, error set. Lock held. */
bool shared_unpin(struct shared_slot *slot);

/* The same for what others have trimmed; once the time has come (0: never), for one at most. */
void shared_unpin_outdated(struct shared *shared, uint64_t deadline_ns);

/* The pool is about to end: devices get back what they gave for it. The same; takes the lock. */
bool shared_part(struct shared *shared);

/* A forked child: what is pinned is its parent's. */
void shared_forget_pins(struct shared *shared);

/* Bytes that are pinned, and by whom; false: nothing was so far. Lock held. */
bool shared_is_pinned(const struct shared *shared, size_t *bytes, const struct cuda_hold **hold);

#endif
