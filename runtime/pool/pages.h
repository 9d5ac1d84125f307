// SPDX-License-Identifier: Apache-2.0
/*
 * pages.h - the page heap of one pool: runs of pages, split and merged inside slabs.
 *
 *     slab (a chunk)  | run | hot | run | run |      cold       | run |   cold    |
 *
 * A run belongs to a region. Free pages are hot (they were used and kept their memory) or cold
 * (no memory behind them). Only equal neighbours merge, so both sums are exact:
 *
 *     reserved = bytes in runs + bytes hot
 *
 * Kept pages (see keep.c) count as hot, but merge with nothing and are given to nobody else.
 *
 * A region grows in place into the pages behind its run where it can; the first run in cold
 * pages is put where it has room to grow, later ones as near behind it as possible: so what a
 * region and its successors use stays together and merges again. The pool's lock protects
 * everything here.
 */
#ifndef EBB_POOL_PAGES_H
#define EBB_POOL_PAGES_H

#include "pool/cuda.h"
#include "pool/fit.h"
#include "pool/kind.h"

struct pages {
    struct fit hot, cold;
    struct ebb_piece *kept, *longest_kept; /* newest first; the oldest of them, or NULL */
    struct piece_store store;
    struct ebb_piece *slabs; /* linked by next; run.first is the first piece inside,
                                see pages_claim_before() */
    size_t run_bytes;
    size_t hot_bytes;
    size_t kept_bytes;       /* of hot_bytes */
    bool welcomes_huge;      /* used by the kind: some pages were advised to be huge */
    uintptr_t small_from, small_to; /* where that was taken back last, since any were */
    bool leaving;            /* what is kept is for other processes: it serves nobody here */
    bool undoing;            /* a failing call gives back what it took: that is not for others */
    const struct kind *kind; /* where slabs come from and what is behind their pages */
    void *source;            /* used by the kind: what it takes slabs from, or NULL */
    struct cuda_hold cuda;   /* used by kinds that involve a device */
    uint64_t misfit;         /* memory of the device that suits no slab and was not taken back; or
                                0 */
};

/* What a taker of pages wants. All sizes are multiples of the page size. */
struct pages_wish {
    size_t least;     /* a new run has at least this */
    size_t extend;    /* growing in place must gain at least this */
    size_t want;      /* take up to this where pages are hot */
    size_t want_cold; /* take up to this where pages are cold */
    size_t most_cold; /* bytes that may be made resident: what the pool's limit leaves */
    size_t room;      /* what the limit leaves once cached pages are given back, for error texts */
    size_t limit;     /* for these, too: the limit, and whose it is */
    const char *pool;
    bool whole;       /* the run need not grow later, but must be one piece */
    bool exact;       /* more will hardly be needed */
    bool work;        /* for ebb's own work: no step needs it */
    bool keeper;      /* avoid the hot pages that steps take turns on, if possible */
    const struct ebb_piece *near; /* a run: prefer the cold pages behind it, or NULL */
};

void pages_init(struct pages *pages, const struct kind *kind);

/* Gives every slab back. No run may be left. */
void pages_fini(struct pages *pages);

/*
 * Replaces all that is known of pages, none of which is in a run, by one slab whose first `hot`
 * bytes are hot: for slots, which other processes use in between. False: no entries, and no slab.
 */
bool pages_restart(struct pages *pages, uintptr_t addr, size_t bytes, size_t hot);

/* A run of at least wish->least bytes from hot pages alone; or NULL, and nothing has changed. */
struct ebb_piece *pages_take_hot(struct pages *pages, const struct pages_wish *wish);

/* The same from any pages, getting a new slab if need be. NULL: EBB_E_MEMORY or _POOL_LIMIT. */
struct ebb_piece *pages_take(struct pages *pages, const struct pages_wish *wish);

/* Grows a run in place; returns the bytes gained, 0 if fewer than wish->extend would be. */
size_t pages_extend(struct pages *pages, struct ebb_piece *run, const struct pages_wish *wish);

/* True if the run could grow by `bytes` into the free pages behind it, hot or cold. */
bool pages_may_extend(const struct ebb_piece *run, size_t bytes);

/* Free bytes around a run, counting the run `other` as free: hot ones right in front of it
 * (before); those behind it, up to `most` or a little more (behind); of these the hot ones before
 * any cold one (hot_behind), and the cold ones among the first `most` (cold_behind). */
struct pages_around {
    size_t before, behind, hot_behind, cold_behind;
};
struct pages_around pages_around(const struct ebb_piece *run, const struct ebb_piece *other,
                                 size_t most);

/* Adds hot pages right behind a run to it, at most `most` bytes, a multiple of pages; returns their
 * bytes, 0 if there are none. */
size_t pages_claim(struct pages *pages, struct ebb_piece *run, size_t most);

/* The same for the hot pages right in front of the run. */
size_t pages_claim_before(struct pages *pages, struct ebb_piece *run, size_t most);

/* Joins the run right behind `run` into it. Both belong to the same region. */
void pages_join(struct pages *pages, struct ebb_piece *run);

/*
 * Cuts [from, to) out of a run and returns it as a run. `run` keeps what lies before (if nothing
 * does it is the result), *right is a run of what lies behind, or NULL. Needs two entries, see
 * pages_prepare_cut(). Only the result is named in run_at.
 */
struct ebb_piece *pages_cut_out(struct pages *pages, struct ebb_piece *run, uintptr_t from,
                                uintptr_t to, struct ebb_piece **right);
bool pages_prepare_cut(struct pages *pages);

/* Cuts a run at `addr`, inside of it, and returns a run of what lies behind, of the same owner.
 * Needs one entry. Pages are named in run_at as they change hands, since other threads may look. */
struct ebb_piece *pages_split(struct pages *pages, struct ebb_piece *run, uintptr_t addr);

/* The same, but the result is the run of what lies before. */
struct ebb_piece *pages_split_before(struct pages *pages, struct ebb_piece *run, uintptr_t addr);

/* Adds a slab of at least `least` bytes in front of the list; returns its one piece, which is cold.
 * NULL: error set. */
struct ebb_piece *pages_add_slab(struct pages *pages, size_t least);

/* The slab around an address, which must be in one. */
struct ebb_piece *pages_slab_at(const struct pages *pages, uintptr_t addr);

/* ---- whole.c: kinds whose slabs have memory as a whole ---- */

/* The least that becomes resident if hot pages do not suffice for a run of `least` bytes. */
size_t pages_step(const struct pages *pages, size_t least);

/* As pages_take(), from a new slab. */
struct ebb_piece *pages_take_whole(struct pages *pages, const struct pages_wish *wish);

/* Hot bytes above the target that can still be made cold; of kinds that have memory by the slab
 * only those of slabs that are wholly free, and none of slots in use. */
size_t pages_left(const struct pages *pages, size_t target);

/* Gives back a slab that is wholly hot; false: the device refused, and it stays. */
bool pages_drop_whole(struct pages *pages, struct ebb_piece *slab);

/* Gives the device's `misfit` back, if there is one; false: it refused, error set. */
bool pages_clear(struct pages *pages);

/* True if a slab of `bytes` may be had once all wholly free ones are dropped: their bytes suffice,
 * together with what the device says is free, or what the limit on locked pages leaves. */
bool pages_may_fit(const struct pages *pages, size_t bytes);

/* True if such a slab is known to be refused even then, before anybody is asked. */
bool pages_are_scarce(const struct pages *pages, size_t bytes);

/* Drops wholly free slabs without memory, whose addresses would be lost for ever, except a few of
 * the usual length for the next measuring regions. Returns their bytes. */
size_t pages_drop_phantoms(struct pages *pages);

/* ---- */

/* Gives a run back: its pages become hot and free. */
void pages_give(struct pages *pages, struct ebb_piece *run);

/* Keeps a run under this ticket; makes a kept one a run again, or free hot pages. */
void pages_keep(struct pages *pages, struct ebb_piece *run, uint64_t ticket);
void pages_retake(struct pages *pages, struct ebb_piece *run);
void pages_unkeep(struct pages *pages, struct ebb_piece *piece);

/* pages_unkeep() of all that are kept, unless they are for other processes. */
void pages_unkeep_all(struct pages *pages);

/* True if that could serve the wish, for `run` or, if it is NULL, a new run; cold pages behind are
 * counted in. */
bool pages_kept_fit(const struct pages *pages, const struct ebb_piece *run,
                    const struct pages_wish *wish);

/*
 * Makes hot pages cold, highest addresses first, until at most `target` are hot or `most` bytes
 * were cooled or the clock passes `deadline_ns` (0: none). Returns the bytes that were resident.
 */
size_t pages_cool(struct pages *pages, size_t target, size_t most, uint64_t deadline_ns);

/* The least that is worth cooling at once, since each time the highest hot piece must be found. */
size_t pages_cool_least(const struct pages *pages);

/* Walks all slabs; aborts if an invariant does not hold. */
void pages_check(const struct pages *pages);

/* ---- shared by the files of the page heap: pages.c, slabs.c, grow.c, cut.c ---- */

/* A piece without neighbours, whatever its entry was before. */
static inline void pages_begin_piece(struct ebb_piece *piece, uintptr_t addr, size_t bytes,
                                     enum piece_state state) {
    piece_put_word(piece, 0);
    piece_put_addr(piece, addr);
    piece_put_bytes(piece, bytes);
    piece_put_state(piece, state);
    piece->before = piece->after = piece->next = piece->prev = NULL;
}

static inline void pages_become_run(struct ebb_piece *piece) {
    piece_put_state(piece, PIECE_RUN);
    piece->flag = false;
    piece->pins = 0;
    piece->run.first = piece->run.end = NULL;
}

static inline struct fit *pages_fit_of(struct pages *pages, const struct ebb_piece *piece) {
    return piece->state == PIECE_HOT ? &pages->hot : &pages->cold;
}

/* Cold pages are about to become part of a run; false: error set. */
static inline bool pages_warm(struct pages *pages, uintptr_t addr, size_t bytes) {
    return !pages->kind->warm || pages->kind->warm(pages, addr, bytes) == 0;
}

/* If `old` was the first piece of its slab, `piece` is now. */
void pages_fix_slab(struct pages *pages, const struct ebb_piece *old, struct ebb_piece *piece);

#endif
