// SPDX-License-Identifier: Apache-2.0
/*
 * tray.h - trays: chunks of small blocks, with a count of those that are alive.
 *
 *     | struct tray | head block | head block | head  block | ... free |
 *     ^ multiple of TRAY_SPAN                                ^ used to
 *
 * A tray has TRAY_BYTES of the TRAY_SPAN of addresses to the next one.
 *
 * The blocks of a scope are bumped in its trays. A free finds the tray by its address and marks
 * the block's head. While the scope is open only the frees of other threads are counted, in
 * `balance`; when the scope ends the tray is sealed: the blocks that its thread has not freed are
 * counted by their heads and added to the balance, and all count there. Who brings the balance of
 * a sealed tray to zero gives the tray back. So a tray goes when its last block goes, not earlier
 * and not later, whichever threads free.
 *
 * A thread that is not the owner changes a head from alive to freed atomically, so that of several
 * that free a block at once one succeeds and the others notice. The owner does not, since its frees
 * would cost twice as much; a balance below what the heads say reveals such a double free before it
 * does harm.
 *
 * Invariants: before a tray is sealed its balance is not above zero, so nobody else can bring it
 * from one to zero; a head says which threads' free it was, so what is counted at the seal does
 * not depend on frees that others are in the middle of; the balance of a sealed tray is never used
 * again by its first owner.
 *
 * The balance has the blocks in its low half and their bytes, in granules, in the high one.
 *
 * A pinned tray is thinned at times: neighbouring dead blocks become one, of which only the head
 * stays, and its whole pages are given back.
 */
#ifndef EBB_MALLOC_TRAY_H
#define EBB_MALLOC_TRAY_H

#include "base/hidden.h"
#include "base/zone.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAY_SPAN ((size_t)64 << 10)  /* a power of two */
#define TRAY_BYTES ((size_t)56 << 10) /* jemalloc adds a page to such a block; still one a span */
#define TRAY_MOST ((size_t)8 << 10) /* larger blocks are not put in trays */
#define TRAY_GRANULE ((size_t)16)
#define TRAY_SEALED ((struct heap *)1) /* owner of sealed trays: nobody */

struct heap;
struct holding;
struct scope;

struct tray {
    _Atomic(struct heap *) owner; /* the open scope's heap; or TRAY_SEALED */
    _Atomic(int64_t) balance;
    struct tray *next, *prev;     /* pinned: all pinned trays; else next: those of the scope */
    struct scope *scope;          /* of the owner */
    uintptr_t used_to;            /* where the next head would be; set when the tray is left */
    struct holding *holding;      /* of the owner's site, while it is pinned */
    _Atomic(uint64_t) seal;       /* a number of its own while it is pinned; else 0 */
    _Atomic(uint32_t) held;       /* hardened: blocks that are held back (quarantine.h) */
    uint16_t seen;                /* granules alive when it was last thinned; 0: it never was */
    uint16_t gone_bytes;          /* of whole pages that thinning has given back */
};

/* In front of each block, whose address is a multiple of 16; the head's is 8 less. The key comes
 * first: a write one byte past the block before hits it, which does no harm. */
struct tray_head {
    uint32_t key;  /* who allocated it, see leaks.h; or TRAY_NO_KEY */
    uint32_t mark; /* high half: the state, TRAY_LIVE or another; low half: the step, bytes to the
                    * next head; after thinning, from a dead head to the next live one */
};

#define TRAY_LIVE 0xEB1E0000u
#define TRAY_FREED 0xEBF10000u  /* by its owner */
#define TRAY_PASSED 0xEBF20000u /* freed by another thread, or after its tray was sealed */
#define TRAY_GAP 0xEB6A0000u
#define TRAY_NO_KEY UINT32_MAX /* the program has freed the block, which is held back */

_Static_assert(TRAY_BYTES <= UINT16_MAX, "the low half of a mark has room for each step");

/* The addresses of all trays; no bytes: there are none. Set once, by tray_prepare(). */
extern HIDDEN struct zone tray_zone;

/* True if the address is a tray's, or of what jemalloc may make one of: it can be read. relaxed:
 * whoever has a block of a tray got it from a thread that saw the tray carved. */
static inline bool tray_holds(uintptr_t addr) {
    return addr - tray_zone.base < atomic_load_explicit(&tray_zone.carved, memory_order_relaxed);
}

/* True if it is a tray's now or may be later: nobody else's. */
static inline bool tray_reserves(uintptr_t addr) {
    return addr - tray_zone.base < tray_zone.bytes;
}

static inline struct tray *tray_of(uintptr_t addr) {
    return (struct tray *)(addr & ~(TRAY_SPAN - 1));
}

static inline struct tray_head *tray_head_of(void *block) {
    return (struct tray_head *)block - 1;
}

static inline uint32_t tray_mark(const struct tray_head *head) {
    return __atomic_load_n(&head->mark, __ATOMIC_RELAXED); /* who frees may be another thread */
}

static inline uint32_t tray_state(const struct tray_head *head) {
    return tray_mark(head) & ~(uint32_t)UINT16_MAX;
}

/* True if this looks like a head; one that was overwritten hardly ever does. */
static inline bool tray_is_marked(const struct tray_head *head) {
    return (tray_mark(head) & (0xFF000000u | (TRAY_GRANULE - 1))) == (TRAY_LIVE & 0xFF000000u);
}

static inline uint32_t tray_step_of(const struct tray_head *head) {
    return tray_mark(head) & UINT16_MAX;
}

/* The step of a live block; above TRAY_MOST: it is not alive. */
static inline uint32_t tray_live_step(const struct tray_head *head) {
    return tray_mark(head) - TRAY_LIVE;
}

static inline int64_t tray_weight(uint32_t step) {
    return (int64_t)(step / TRAY_GRANULE) << 32 | 1;
}

static inline uint32_t tray_balance_blocks(int64_t balance) {
    return (uint32_t)(balance & UINT32_MAX);
}

static inline uint64_t tray_balance_bytes(int64_t balance) {
    return (uint64_t)(balance >> 32) * TRAY_GRANULE;
}

/* The step of a block of so many bytes: what it takes, with its head. */
static inline size_t tray_step(size_t bytes) {
    return (bytes + sizeof(struct tray_head) + TRAY_GRANULE - 1) & ~(TRAY_GRANULE - 1);
}

static inline uintptr_t tray_first(const struct tray *tray) {
    return (uintptr_t)(tray + 1);
}

_Static_assert((sizeof(struct tray) + sizeof(struct tray_head)) % TRAY_GRANULE == 0,
               "the first block lies at a multiple of 16");

/* Reserves the zone on the first call, before the first scope; false: it could not. */
bool tray_prepare(void);

/* True if nothing in the tray is alive. `left`: what the owner has not freed of it (tray_count()),
 * which others have freed then. */
bool tray_is_empty(const struct tray *tray, int64_t left);

/* An empty tray with that owner, or NULL. Any thread. */
struct tray *tray_take(struct heap *owner);

/* Gives an owner to an empty tray that has been in use. */
void tray_begin(struct tray *tray, struct heap *owner);

/* Gives the tray back. Any thread. */
void tray_give(struct tray *tray);

/* The head behind `head`, or the first one if that is NULL, of a tray that is not in use; NULL:
 * there is none, or the step was overwritten and leads nowhere. */
const struct tray_head *tray_next(const struct tray *tray, const struct tray_head *head);

/* The blocks that the owner has not freed, as a balance. Ends the process where a step leads
 * nowhere (misuse.h). */
int64_t tray_count(const struct tray *tray);

/*
 * The owner is done with the tray, of which it has not freed `left`. If any of that is alive the
 * tray is pinned until it is not, counts in `holding`, and has the seal that is returned. 0: it is
 * empty and the caller's.
 */
uint64_t tray_seal(struct tray *tray, int64_t left, struct holding *holding);

/* True if the tray still has that seal: then its heads may be read until tray_let(), though blocks
 * may be freed meanwhile. Do nothing else with trays in between. Not in the hardened library. Any
 * thread. */
bool tray_hold(const struct tray *tray, uint64_t seal);
void tray_let(void);

/* A block of a tray that is not the caller's own is freed. True: it was the last one of a sealed
 * tray, which is empty and the caller's now. */
bool tray_release_other(struct tray *tray, int64_t weight);

/*
 * Gives pages of pinned trays in which nothing is alive back to the system, for `limit_ns` at most,
 * and adds their bytes. It goes in rounds, tray after tray; a tray is done again once less of it is
 * alive: anything less if `is_asked`, else a page or half. Asked and unasked calls have rounds of
 * their own. Holds a lock that whoever frees the last block of a tray waits for. True: this round
 * goes on; else the next call begins another. Not in the hardened library. Any thread.
 */
bool tray_thin(uint64_t limit_ns, bool is_asked, size_t *bytes);

/* What survivors pin. */
struct tray_pinned {
    size_t trays, bytes; /* count; their bytes, without pages that are gone */
    size_t blocks, live; /* alive in them; their bytes */
};

struct tray_pinned tray_read_pinned(void);

/* The lock of pinned trays before a fork, and after. */
void tray_fork(bool before);

#endif
