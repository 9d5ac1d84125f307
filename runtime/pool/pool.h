// SPDX-License-Identifier: Apache-2.0
/*
 * pool.h - a pool: a page heap with limits, counters, and a memory of recent steps.
 *
 * The lock protects everything but what never changes, and the atomics: what is charged to the
 * limit on used bytes, and the spare slots. Regions come here when they grow and when they close,
 * if they had pages; the fast paths never do.
 *
 * Laws, checked by pool_check_locked(), the others by whoever sums up the regions:
 *     pages.run_bytes + pages.hot_bytes = reserved.current
 *     sum over open regions of their runs + held_bytes = pages.run_bytes
 *     sum over those of ebb's own work of all bytes that they got = work_bytes
 */
#ifndef EBB_POOL_POOL_H
#define EBB_POOL_POOL_H

#include "pool/meter.h"
#include "pool/pages.h"

#include <pthread.h>
#include <stdatomic.h>

#define POOL_NAME_BYTES 32
#define POOL_RECENT 16 /* steps that the moving peak looks back on */

/* What the pool remembers of recent steps (see shrink.c). */
struct recent {
    size_t peaks[POOL_RECENT]; /* owned bytes at their highest, per step */
    size_t found[POOL_RECENT]; /* owned bytes when it began: at the end of the one before */
    unsigned count, next;
    unsigned given_left;  /* steps for which pages that were given back may still be wanted again */
    size_t given_from;    /* before that, reserved bytes above what was owned all the time */
    unsigned wanted_left; /* steps for which `wanted` is still kept */
    size_t wanted;        /* peak of a step that wanted such pages above that, no more than they
                           * were; or 0 */
    size_t now;       /* highest owned bytes since the last boundary */
    size_t before;    /* owned bytes at the last boundary */
    size_t new_bytes; /* pages made resident since the last boundary */
    size_t described; /* bytes of bookkeeping that may go, for their pages have gone */
    uint64_t boundaries; /* so far */
};

/* What there was before a region got pages. */
struct growth {
    size_t peak;         /* highest owned bytes since the last boundary */
    uint64_t boundaries;
};

struct region; /* of the layer above; a pool only keeps its slots */
struct shared; /* shared memory, see shared.h */

#define POOL_KINDS 16 /* of objects */

/* Objects of one kind in all closed regions (see kinds.h). */
struct kind_totals {
    uint64_t created[2], ended[2]; /* [0]: in regions with a parent, [1]: in roots */
    uint64_t attached, detached, moved, copied, relinked, joined;
};

/* A slot that was closed last by some thread, hot. */
struct spare_slot {
    _Alignas(64) _Atomic(struct region *) region; /* no processor takes the line of another */
};

#define POOL_SPARES 8u

struct ebb_pool {
    pthread_mutex_t lock;
    struct pages pages;
    struct ebb_meter reserved;
    struct recent recent;
    size_t given_back;
    size_t levelled; /* bytes that went so that `reserved` has no higher peak */
    size_t held_bytes; /* runs that outlived their regions, for exports (region/hold.h) */
    size_t work_bytes; /* that regions of ebb's own work got, see shrink.c */
    atomic_size_t limit_reserved; /* changes under the lock */
    size_t limit_used;          /* 0: none; as the pool was made, for it shuts the inline path */
    atomic_size_t charged;      /* used bytes of all regions, kept only where there is that limit */
    const void *taker; /* thread that took an arena last, while it has it; NULL: none */
    uint64_t meetings; /* times that another thread took one meanwhile */
    unsigned keep_margin_percent;
    bool keep_all;
    uint64_t trim_ns; /* that a step's end may spend on giving back; 0: small parts, see shrink.c */
    bool alive;
    bool inner; /* its regions are ebb's own, for what the program mallocs: no address leads the
                 * program to their handles */
    char name[POOL_NAME_BYTES];
    /* filled by the regions layer under the lock */
    struct ebb_meter closed_blocks, closed_requested, closed_used; /* totals of closed regions, and
                                                                  the highest peak at a close */
    struct shared *shared;    /* of a shared pool, and of the hidden pools of its slots */
    struct shared_slot *slot; /* of a hidden one */
    struct ebb_pool *next; /* list of all pools */
    /* from here on: of all pools that had this record */
    struct kind_totals closed_kinds[POOL_KINDS];
    struct region *free_slots; /* closed ones, but for the spare ones */
    struct region *slots;      /* all slots of this pool, open or not */
    uint64_t opened_before;    /* regions that had been opened in the slots when the pool was made,
                                * or got them from another */
    uint64_t opened_gone;      /* in slots that other pools have now, see slots.c */
    void (*drop_spares_locked)(struct ebb_pool *pool); /* NULL: no slot was ever taken */
    struct spare_slot spare_slots[POOL_SPARES]; /* taken without the lock, see slots.c */
};

/* The device of the options is one that there can be, of a kind that has one. 0, or
 * EBB_E_ARGUMENT. */
int pool_check_device(const struct ebb_pool_options *options);

/* A pool of that kind on the list of all, with these options; NULL with EBB_E_MEMORY. */
struct ebb_pool *pool_make(const struct ebb_pool_options *options, const struct kind *kind);

/* The pool whose regions have addresses but no memory. NULL with EBB_E_MEMORY. */
struct ebb_pool *pool_for_measuring(void);

/* True for the default pool and the measuring one, which live as long as the process. */
bool pool_is_built_in(const struct ebb_pool *pool);

/* Ends a pool without open regions: pages go back, the record waits to be used again. */
void pool_retire(struct ebb_pool *pool);

/* Takes the locks of all pools before a fork, and gives them back after. */
void pool_fork(bool before);

/* Calls back for each pool of the process, the measuring one not included. */
void pool_each(void (*visit)(void *context, struct ebb_pool *pool), void *context);

/* The same, and for those that are gone: their locks work and `closed_kinds` is what it was. */
void pool_each_ever(void (*visit)(void *context, struct ebb_pool *pool), void *context);

/* Walks the page heap and checks the laws. Lock held. */
void pool_check_locked(const struct ebb_pool *pool);

/* ---- take.c ---- */

/*
 * Pages for the region `owner` (PIECE_OWNER): grows `run` in place if it is not NULL and can be,
 * else takes a new run. Hot pages are preferred to cold ones. On return *gained tells how far
 * `run` grew, or the result is a new run. NULL and *gained 0: error set, nothing changed. *growth
 * tells what there was before.
 */
struct ebb_piece *pool_take(struct ebb_pool *pool, struct ebb_piece *run, uint64_t owner,
                            const struct pages_wish *wish, size_t *gained, struct growth *growth);

/* True if so many bytes have room in hot pages that nobody has now, in one piece. Any thread. */
bool pool_can_spare(struct ebb_pool *pool, size_t bytes);

/* Pages that its limit, or slot, leaves beside those of regions, if all others are given back. */
size_t pool_room(struct ebb_pool *pool);

/* True if it had so many pages in one piece were the run its own, too: around it, or as its limit
 * leaves cold ones, *cold in all. Without a limit those of a slot alone count, as nobody knows what
 * the system, or a device, has left. */
bool pool_could_serve(struct ebb_pool *pool, const struct ebb_piece *run, size_t bytes,
                      size_t *cold);

/* False: there is no place for as many, whatever is given back. `free`: of what regions own. */
bool pool_could_have(struct ebb_pool *pool, size_t bytes, size_t free);

/* pool_take() with the lock held, without notice in the counters, and the owner not set. */
struct ebb_piece *pool_take_locked(struct ebb_pool *pool, struct ebb_piece *run,
                                   const struct pages_wish *wish, size_t *gained);

/* Cold pages that the limit still allows to be made resident. Lock held. */
size_t pool_most_cold(const struct ebb_pool *pool);

/* Those that there are besides, if it is of a slot, which ends somewhere. Lock held. */
size_t pool_cold_left(const struct ebb_pool *pool);

/* Notes in the counters that runs or hot pages have grown, runs of ebb's own work by so many bytes.
 * Returns what there was before. Lock held. */
struct growth pool_note_growth_locked(struct ebb_pool *pool, size_t work_bytes);

/* Bytes of runs without those of ebb's own work: what steps need is among them. Lock held. */
size_t pool_owned_locked(const struct ebb_pool *pool);

/* Gives one run back. */
void pool_give(struct ebb_pool *pool, struct ebb_piece *run);

/* The same with the lock held; all runs of a list linked by next. */
void pool_give_list_locked(struct ebb_pool *pool, struct ebb_piece *runs);

/* ---- shared_heap.c ---- */

/* poison_released() for pages of the pool. By who has the region there. */
void pool_poison(const struct ebb_pool *pool, uintptr_t addr, size_t bytes);

/* ---- keep.c ---- */

/* A run that its last user may have again. */
struct kept {
    struct ebb_pool *pool;
    struct ebb_piece *run; /* NULL: none */
    uint64_t ticket;
    const void *taker; /* thread that took it last */
    uint64_t meetings; /* of the pool, then */
    bool met;          /* since then another thread had one of the pool, too, as far as is seen */
};

/* Keeps a run that is on no list for who has the ticket. */
void pool_keep(struct ebb_pool *pool, struct ebb_piece *run, struct kept *kept);
void pool_keep_locked(struct ebb_pool *pool, struct ebb_piece *run, struct kept *kept);

/* The run that was taken is not kept: it goes the way of its region's others. */
void pool_leave(struct ebb_pool *pool, struct kept *kept);

/* Its pages become hot like any others, if they are still kept. The ticket is void. */
void pool_unkeep(struct kept *kept);

/*
 * A run of at least `bytes`, whole pages: the kept one if it is still there, in this pool, and is
 * at most an eighth longer (*same: nobody used it since) or, too short, can grow in place; else
 * another. It is marked as an arena (`pins`): it is not joined with others. The ticket is void.
 * NULL, without an error: there is none.
 */
struct ebb_piece *pool_retake(struct ebb_pool *pool, struct kept *kept, uint64_t owner,
                              size_t bytes, bool *same);

/* ---- shrink.c ---- */

/* Pages became resident though others are hot, which did not fit: in the first steps those that
 * would make a new peak go in return, as long as that costs less than what there is. Lock held,
 * before it is noted. */
void pool_level_locked(struct ebb_pool *pool);

/* Of its pages that nobody has so many stay hot, others are given back, and what described them. */
void pool_keep_hot(struct ebb_pool *pool, size_t bytes);

/* Bookkeeping that no region needs any more, of all pools: gives it back, until the clock passes
 * `deadline_ns` (0: none); is there any? Any thread. */
void pool_trim_bookkeeping(uint64_t deadline_ns);
bool pool_bookkeeping_is_left(void);

/* Gives all cached pages back, those kept too; false: some stay, error set. Lock held. */
bool pool_give_all_locked(struct ebb_pool *pool);

/* A step has ended, which had `untouched` bytes from `growth` on that it never used: notes its peak
 * and gives back what recent steps did not need; returns the bytes. Lock held. */
size_t pool_step_ended_locked(struct ebb_pool *pool, size_t untouched,
                              const struct growth *growth);

/* A region of ebb's own work got so many bytes in all, and has given them back. Lock held. */
void pool_work_ended_locked(struct ebb_pool *pool, size_t bytes);

/* So many bytes that recent steps found owned are nobody's any more. Lock held. */
void pool_needs_less_locked(struct ebb_pool *pool, size_t bytes);

/* What the pool keeps for: the moving peak of recent steps. Lock held. */
size_t pool_recent_peak_locked(const struct ebb_pool *pool);

#endif
