// SPDX-License-Identifier: Apache-2.0
/*
 * account.h - footprint: which pages hold the objects of each step, and how many bytes they need.
 *
 * An object belongs to the step in which it was born (the outermost region around it), for all
 * its life. For each step the account knows
 *
 *     max_live  most bytes alive at once of its objects, as requested, until it ends: what no
 *               placement can go below
 *     pages     distinct pages that held a byte of one of its objects while the step was open;
 *               where nested regions hand survivors up, old and new place both count
 */
#ifndef EBB_BENCH_ACCOUNT_H
#define EBB_BENCH_ACCOUNT_H

#include "heap.h"
#include "ledger.h"
#include "pages.h"

/* Live bytes and pages of one step after each birth and death of its objects. */
struct course {
    uint32_t stamp; /* of the step; 0: none */
    uint32_t count, room;
    double *live, *pages;
};

struct account {
    const struct script *script;
    struct pages pages;
    /* By region and by slot: 1 + entry of its step in the ledgers; 0: none. `open` is by entry:
     * 1 while the step is open. */
    uint32_t *region_step, *slot_step;
    struct ledger open, live, max_live, held, ratio;
    struct course course;
};

/* False: no memory. `passes` passes will follow, each up to event `until`. */
bool account_make(struct account *account, const struct script *script, uint32_t passes,
                  uint32_t until);

/* A block was born in `region`, or dies (also: a realloc is about to replace it). */
HEAP_SHARED void account_birth(struct account *account, uint32_t number, uint16_t region,
                               const struct slot *slot);
HEAP_SHARED void account_death(struct account *account, uint32_t number,
                               const struct slot *slot);

/* A region opens (`step`: number + 1, or 0 if nested), or is about to close. */
HEAP_SHARED void account_open(struct account *account, uint16_t region, uint16_t parent,
                              uint32_t step, uint32_t pass);
HEAP_SHARED void account_close(struct account *account, uint16_t region, uint32_t step);

/* A nested region has closed; its survivors may lie elsewhere now. */
HEAP_SHARED void account_moved(struct account *account, const struct slot *slots,
                               const struct script_survivor *survivors, uint32_t count);

/* Prints metrics and the course. `limit_percent`: of max-live, what a step may hold at most. */
void account_report(struct account *account, uint32_t limit_percent);

#endif
