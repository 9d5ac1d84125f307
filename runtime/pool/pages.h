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
    struct ebb_piece *kept, *longest_kept; /* newest first; the last of them, or NULL */
    struct piece_store store;
    struct ebb_piece *slabs; /* linked by next; run.first is the first piece inside,
                                see pages_claim_before() */
    size_t run_bytes;
    size_t hot_bytes;
    size_t kept_bytes;       /* of hot_bytes */
    bool welcomes_huge;      /* of the kind's own: the system was told so of some pages */
    bool leaving;            /* others are to read what is kept: it serves nobody here */
    bool undoing;            /* a call that fails gives back what it took: nobody is to read that */
    const struct kind *kind; /* where slabs come from and what is behind their pages */
    void *source;            /* of the kind's own: what it takes slabs from; NULL: nothing */
    struct cuda_hold cuda;   /* of kinds that a device has to do with */
    uint64_t misfit;         /* what the device gave for no slab, and did not take back; or 0 */
};

/* What a taker wants. All sizes are multiples of the page size. */
struct pages_wish {
    size_t least;     /* a new run has at least this */
    size_t extend;    /* growing in place must gain at least this */
    size_t want;      /* take up to this where pages are hot */
    size_t want_cold; /* take up to this where pages are cold */
    size_t most_cold; /* pages that may be made resident: what the pool's limit leaves */
    size_t room;      /* what it leaves once cached pages are given back: a refusal names it */
    bool whole;       /* the run need not grow, but there is no other way than one piece */
    bool exact;       /* it will hardly need more than this */
    bool work;        /* it is for ebb's own work: no step needs it */
    bool keeper;      /* keeps out of the hot pages that steps take turns on, if it can */
    const struct ebb_piece *near; /* a run: cold pages behind it are preferred to others */
};

void pages_init(struct pages *pages, const struct kind *kind);

/* Gives every slab back. No run may be left. */
void pages_fini(struct pages *pages);

/*
 * Forgets what is known of pages, none of which is in a run: there is one slab, whose first `hot`
 * bytes are hot. For who knows better, such as slots that other processes use in between. False:
 * no entries; there is no slab then.
 */
bool pages_restart(struct pages *pages, uintptr_t addr, size_t bytes, size_t hot);

/* A run of at least wish->least bytes from hot pages alone, or NULL. Changes nothing then. */
struct ebb_piece *pages_take_hot(struct pages *pages, const struct pages_wish *wish);

/* The same from any pages, getting a new slab if need be. NULL: EBB_E_MEMORY or _POOL_LIMIT. */
struct ebb_piece *pages_take(struct pages *pages, const struct pages_wish *wish);

/* Grows a run in place; returns the bytes gained, 0 if fewer than wish->extend would be. */
size_t pages_extend(struct pages *pages, struct ebb_piece *run, const struct pages_wish *wish);

/* True if the pages behind a run are such that it could grow by so much, hot ones or cold. */
bool pages_may_extend(const struct ebb_piece *run, size_t bytes);

/* Bytes that are free around a run, or would be without the run `other`: hot ones right in front of
 * it, and behind, where no more is looked at once there are `most`; how many of those come before
 * any cold one, and how many of the first `most` are cold. */
struct pages_around {
    size_t before, behind, hot_behind, cold_behind;
};
struct pages_around pages_around(const struct ebb_piece *run, const struct ebb_piece *other,
                                 size_t most);

/* Takes hot pages right behind a run into it, at most `most` bytes, which is a multiple of pages;
 * returns their bytes, 0 if there are none. */
size_t pages_claim(struct pages *pages, struct ebb_piece *run, size_t most);

/* The same for the hot pages right in front of the run. */
size_t pages_claim_before(struct pages *pages, struct ebb_piece *run, size_t most);

/* The run right behind `run` becomes part of it. Both belong to the same region. */
void pages_join(struct pages *pages, struct ebb_piece *run);

/*
 * Cuts [from, to) out of a run: the result is that run. `run` keeps what lies before (it is the
 * result itself if nothing does), *right is a run of what lies behind, or NULL. Needs two
 * entries, see pages_prepare_cut(). Only the result is named in run_at.
 */
struct ebb_piece *pages_cut_out(struct pages *pages, struct ebb_piece *run, uintptr_t from,
                                uintptr_t to, struct ebb_piece **right);
bool pages_prepare_cut(struct pages *pages);

/* Cuts a run at `addr`, inside of it: the result is a run of what lies behind, of the same owner.
 * Needs one entry. Pages are named in run_at as they change hands: others may look. */
struct ebb_piece *pages_split(struct pages *pages, struct ebb_piece *run, uintptr_t addr);

/* The same, but the result is the run of what lies before. */
struct ebb_piece *pages_split_before(struct pages *pages, struct ebb_piece *run, uintptr_t addr);

/* A new slab of at least `least` bytes, the first of the list: its one piece, cold. NULL: error. */
struct ebb_piece *pages_add_slab(struct pages *pages, size_t least);

/* The slab around an address, which must be in one. */
struct ebb_piece *pages_slab_at(const struct pages *pages, uintptr_t addr);

/* ---- whole.c: kinds whose slabs have memory as a whole ---- */

/* What becomes resident at least, where hot pages do not do for a run of `least` bytes. */
size_t pages_step(const struct pages *pages, size_t least);

/* As pages_take(), from a new slab. */
struct ebb_piece *pages_take_whole(struct pages *pages, const struct pages_wish *wish);

/* Hot bytes above the target that may still be made cold: not those of slabs, of kinds that have
 * their memory as a whole, and of slots that are in use. */
size_t pages_left(const struct pages *pages, size_t target);

/* Gives a slab back, all of which is hot; false: the device refused, and it stays. */
bool pages_drop_whole(struct pages *pages, struct ebb_piece *slab);

/* The device has back what it gave for no slab; false: it refused, error set. */
bool pages_clear(struct pages *pages);

/* Whether a slab may be had once all that are free all over are dropped: they have as many bytes,
 * with what the device says is free, or what the limit on locked pages leaves. */
bool pages_may_fit(const struct pages *pages, size_t bytes);

/* Whether it is known before anybody is asked that there is none even then. */
bool pages_are_scarce(const struct pages *pages, size_t bytes);

/* Slabs without memory that are free all over go, but for a few of the usual length that the next
 * who measures have at once: else their addresses were nobody's for ever. Returns their bytes. */
size_t pages_drop_phantoms(struct pages *pages);

/* ---- */

/* The run's pages become hot and free. */
void pages_give(struct pages *pages, struct ebb_piece *run);

/* A run becomes kept, with this number; a kept one is a run again, or hot like any other pages. */
void pages_keep(struct pages *pages, struct ebb_piece *run, uint64_t ticket);
void pages_retake(struct pages *pages, struct ebb_piece *run);
void pages_unkeep(struct pages *pages, struct ebb_piece *piece);

/* The same of all that are kept, unless they are for others to read. */
void pages_unkeep_all(struct pages *pages);

/* Whether that serves a wish, for a run that may be NULL, with so many cold pages behind it. */
bool pages_kept_fit(const struct pages *pages, const struct ebb_piece *run,
                    const struct pages_wish *wish);

/*
 * Makes hot pages cold, highest addresses first, until at most `target` are hot or `most` bytes
 * were cooled or the clock passes `deadline_ns` (0: none). Returns the bytes that were resident.
 */
size_t pages_cool(struct pages *pages, size_t target, size_t most, uint64_t deadline_ns);

/* The least worth cooling at once: the highest of all hot pieces has to be found each time. */
size_t pages_cool_least(const struct pages *pages);

/* Walks all slabs; aborts if an invariant does not hold. */
void pages_check(const struct pages *pages);

#endif
