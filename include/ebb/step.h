// SPDX-License-Identifier: Apache-2.0
/*
 * ebb/step.h - steps that learn: sites, their steps, rings of regions, planned placement.
 *
 * A site is a named scope that a program passes again and again: a training step, a collate call,
 * a request. A step is one pass. It has a region of its own, and the site learns from its steps:
 *
 *     first steps    the allocations are recorded: sizes, order, who is released when, who survives
 *     then           a plan packs the recorded lifetimes, so each block has its place in advance
 *     later steps    a block is served from the plan by a few comparisons, as long as it fits;
 *                    everything else goes where blocks of an ordinary region go
 *
 * A step need not be as the plan expects: whatever comes, in whatever order, no two live blocks
 * ever overlap; at worst a step is less tight. Steps that do not repeat are not planned, nor those
 * under a limit on live bytes: of a region above, or `limit_used_bytes` of the pool. Nor are those
 * whose plan would be larger than all that they have alive, take too many pages, or not fit in a
 * limit on pages, nor those whose blocks, one after the other or at once, have more than 64 GiB.
 *
 * What a site has learnt to survive its steps, blocks and objects, is born in the parent
 * ("pre-tenured"): promoting it there costs nothing, and its address stays, but for what is copied
 * all the same (ebb/promote.h). Until it is promoted it is the step's like all else: found,
 * released and promoted through the step's region only, and ended with it. (Its blocks count among
 * the parent's meanwhile, ebb_region_of() names the parent.) A wrong guess costs these bytes for a
 * step, or for as long as an export holds them, and counts as tenured_wrong. Where survivors of
 * the step before are gone and those of this one are not there yet, large blocks that do not
 * survive may lie in the parent for a while, in the same way ("guests"): so a step need not hold
 * the survivors' bytes twice.
 *
 * Threads: a site is used by any number of threads at once; each step belongs to one, as its
 * region does. Plans are shared. Source of the semantics: docs/planning.md.
 */
#ifndef EBB_STEP_H
#define EBB_STEP_H

#include <ebb/promote.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_site ebb_site;

/* The most that one step should cost; 0: no bound. Exceeding one is reported, never an error. They
 * apply to the step's own region: regions and steps below it count for themselves, except that
 * blocks that these have in it (tenured ones and guests) count in both. There is no bound on
 * chunks: a region takes runs of pages of any length, and reserved_bytes bounds them all
 * together. */
struct ebb_churn_budget {
    uint64_t bytes;          /* requested by all allocations of a step */
    uint64_t allocations;    /* count */
    uint64_t promoted_bytes; /* of blocks and objects, copied or relinked to regions above */
    uint64_t reserved_bytes; /* most bytes of pages at once */
};

/* What a step cost, and the budget of its site. Valid during the call that gets it. */
struct ebb_churn_excess {
    const char *site;
    uint64_t step;                  /* number of the step, from 0 */
    struct ebb_churn_budget spent;
    struct ebb_churn_budget budget;
    const char *text;               /* one sentence with the numbers that are too high; a "?" for
                                     * what a line cannot show of the site's name */
};

struct ebb_site_options {
    size_t size;       /* sizeof(struct ebb_site_options); set by EBB_SITE_OPTIONS */
    const char *name;  /* copied, at most 31 bytes; NULL: "site" */
    ebb_pool *pool;    /* of steps without a parent. Begin none of these once it is destroyed:
                        * another pool may have its place. NULL: the default pool */
    unsigned ring;     /* how many ended steps of a thread stay readable, at most 64; 0: none. In a
                        * shared pool a thread has up to two slots more than that */
    bool unplanned;    /* do not learn: ordinary regions */
    bool tenure_none;  /* nothing is born in the parent, or lies there as a guest */
    uint64_t search_ns; /* time that a helper thread may spend on a better plan, or as long as one
                         * try at it takes: some 0.3 us a block, 3 at worst; 0: no thread. If it is
                         * a process's last thread, exit() is called with all signals blocked */
    struct ebb_churn_budget budget;
    void (*on_excess)(void *context, const struct ebb_churn_excess *excess); /* or NULL */
    void *context;
    bool scope;        /* what the thread mallocs during a step goes to it, see ebb/scope.h */
};

/* Options with every field at its default: EBB_SITE_OPTIONS(.name = "train"). C, not C++. */
#define EBB_SITE_OPTIONS(...) \
    (&(struct ebb_site_options){.size = sizeof(struct ebb_site_options), __VA_ARGS__})

/*
 * A new site; NULL options: all defaults. Owned by the caller until ebb_site_destroy(). Any thread.
 * NULL on failure: EBB_E_ARGUMENT (size field, ring above 64), EBB_E_MEMORY.
 */
EBB_API EBB_NODISCARD ebb_site *ebb_site_create(const struct ebb_site_options *options);

/*
 * Ends the site: closes the regions of its rings, forgets its plans. NULL: 0, nothing. No other
 * thread may use the site. EBB_E_BUSY, and nothing changes, while
 *
 *   - a step is open, or its region is because it was left to the program (see below);
 *   - a cleanup of a region in a ring runs;
 *   - a scope of a step has not ended, since the step's parent was closed by another thread than
 *     the scope's, or there was no memory to keep what survives it. Its thread ends it when it next
 *     begins or ends a scope, destroys a site, or ends. After that any thread ends it that destroys
 *     the site; but not while another thread is doing so, as one that trims may, also in idle time
 *     (try again), nor if memory was so short that a thread that began a scope since then had to
 *     take its place.
 */
EBB_API int ebb_site_destroy(ebb_site *site);

/* One step of a site. Copy it freely; all zero: none. */
typedef struct ebb_step {
    ebb_region region; /* where the step allocates: all functions on regions work on it */
    void *lane;
} ebb_step;

/*
 * Begins a step: opens its region as a child of `parent` (all zero: a root on the site's pool).
 * `tag` says what kind of step it is (training 1, evaluation 2; or a padded length): steps of one
 * tag are planned together, 0 is a tag like any other. The first 16 tags of a site are learnt,
 * steps of all others are ordinary regions. (Steps of one tag that come in rows of up to 16, such
 * as three that gather gradients and one that uses them, are told apart by themselves, by the
 * number of their allocations, unless they overlap in time.) The region closes at ebb_step_end(),
 * or, if the site has a ring of N, when the thread that began the step begins its N-th step after
 * the next one: what a step allocated can be read until then. (Steps that a thread has open at once
 * have a ring each: what is in the second one's stays until as many are open again. The ring of a
 * thread that has ended goes to the next one that begins a step, if what is in it has no parent, or
 * that step's. To destructors of thread-specific data it counts as ended: they may run after that.)
 * Closing its parent closes it, too. The step's region must not be closed by other means; but if
 * another thread is in a callback of it, or of something below it, just when a step that waited for
 * a slot of a shared pool would close it, it is left open, and the program closes it; until then
 * steps in its place in the ring follow no plan. Nothing else of another thread may be at work in
 * it then. One thread at a time for the parent.
 * On failure the region is not open: EBB_E_ARGUMENT (no site), EBB_E_MEMORY, EBB_E_STALE (also: the
 * parent closes as the oldest of the ring), EBB_E_BUSY (in a cleanup, while the site is destroyed),
 * and the errors of ebb_region_open().
 */
EBB_API EBB_NODISCARD ebb_step ebb_step_begin_under(ebb_site *site, ebb_region parent,
                                                    uint64_t tag);

/* The same without a parent. */
EBB_API EBB_NODISCARD ebb_step ebb_step_begin(ebb_site *site, uint64_t tag);

/*
 * Ends a step. What was not promoted ends with it (at once, or with its place in the ring). The
 * site learns. Steps of one thread may end in any order. The plan for coming steps is made here:
 * it costs some 0.5 us for each allocation of the step, in the few steps that are learnt from; up
 * to 7 us where no order of the blocks packs well, as with random sizes and lifetimes, or 3 us in
 * steps of 200,000 allocations.
 * Errors: EBB_E_STALE (it has ended before), EBB_E_ARGUMENT (its parts are of two steps),
 * EBB_E_THREAD (another thread's scope, ebb/scope.h), EBB_E_BUSY and EBB_E_CLEANUP as
 * ebb_region_close().
 */
EBB_API int ebb_step_end(ebb_step step);

/*
 * Promotes the list to `target`, an ancestor of the step's region, and ends the step, as
 * ebb_close_keeping() does with a region. However, EBB_PROMOTE_AUTO copies if all that it could
 * relink is at most a quarter of the step's pages and at most 4 MiB: so the next steps find the
 * pages in one piece. Neither the list nor `cost` may lie in what ends. Errors: those of
 * ebb_close_keeping() and ebb_step_end().
 */
EBB_API int ebb_step_end_keeping(ebb_step step, ebb_region target, struct ebb_survivor *survivors,
                                 size_t count, struct ebb_promoted *cost, uint64_t *lost_blocks);

/*
 * ebb_region_alloc() with a key of the place in the program that allocates (any number but 0,
 * which is EBB_E_ARGUMENT; the number of an operation, a hash of file and line). Keys let a plan
 * follow steps that leave out or repeat parts, such as loops of varying length. Same contract, same
 * errors.
 */
EBB_API EBB_NODISCARD void *ebb_step_alloc(ebb_step step, size_t bytes, size_t align, uint32_t key);

/* Counters of one site, all threads together. Counts and bytes of steps that were ended by
 * ebb_step_end() or the like: a step that ended because its parent was closed is not counted. */
struct ebb_site_stats {
    size_t size;              /* sizeof(struct ebb_site_stats), set by the caller */
    uint64_t steps;           /* ended */
    uint64_t planned_steps;   /* of these: with a plan */
    uint64_t recorded_steps;  /* of these: recorded */
    uint64_t allocations, allocated_bytes; /* by all steps, as requested, including growth in place
                                            * of blocks that were not born in the parent */
    uint64_t hits, hit_bytes;              /* of these: served from the plan */
    /* In steps with a plan, but not served from it. What plans leave out (survivors that are not
     * born in the parent, small blocks where only these vary) and all that comes after a mark or a
     * reset is neither a hit nor missed. */
    uint64_t missed, missed_bytes;
    uint64_t tenured_right, tenured_right_bytes; /* born in the parent, and promoted */
    uint64_t tenured_wrong, tenured_wrong_bytes; /* born in the parent for nothing */
    uint64_t guests, guest_bytes; /* lay in the parent for a while, and were not promoted */
    uint64_t strays;          /* remote releases of what was no live block */
    uint64_t plans;           /* made so far, or taken back */
    uint64_t takeovers;       /* steps that outgrew the plan, or got no pages beside it: the rest of
                                 them was served without it */
    uint64_t excesses;        /* steps that passed the budget */
    uint64_t plan_slots;      /* of the newest plan: count */
    uint64_t plan_height;     /* bytes that it needs */
    uint64_t plan_max_live;   /* bytes alive at once in it: no plan can need less */
    uint64_t planning_ns;     /* time spent on all plans */
    uint64_t used_peak;       /* most bytes used at once in any step */
    uint64_t reserved_peak;   /* most bytes of pages at once in any step */
    uint64_t given_back;      /* bytes that the pool gave to the system at the ends of its steps */
    uint64_t row_steps;       /* length of the rows that steps come in (newest tag); 0: no rows */
    bool suspended;           /* unplanned for a while (newest tag): steps do not repeat, or plans
                               * cost more than they save, or get no pages */
};

/* Fills *stats (its `size` field must be set). Any thread. Errors: EBB_E_ARGUMENT. */
EBB_API int ebb_site_read_stats(ebb_site *site, struct ebb_site_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
