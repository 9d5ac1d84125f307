// SPDX-License-Identifier: Apache-2.0
/*
 * served.h - what is kept for each site whose steps are scopes.
 *
 * The large blocks of its scopes are those of steps of a second, hidden site, so that what the
 * program itself places in its steps and what it mallocs are learnt apart, and neither can end the
 * other's.
 */
#ifndef EBB_MALLOC_SERVED_H
#define EBB_MALLOC_SERVED_H

#include "malloc/holding.h"
#include "step/site.h"

#include <stdatomic.h>

#define SERVED_NAME_BYTES (REGION_NAME_BYTES + 12)

/* Counts and bytes of all scopes that have ended. */
struct served {
    ebb_site *site, *hidden;
    struct holding *holding;
    char name[SERVED_NAME_BYTES]; /* as it is told: no two have the same */
    _Atomic(uint64_t) scopes;
    _Atomic(uint64_t) blocks, bytes;             /* allocated in them */
    _Atomic(uint64_t) survived_trays;            /* pinned when a scope ended */
    _Atomic(uint64_t) survived_blocks, survived_bytes; /* large ones, relinked */
    _Atomic(uint64_t) open; /* scopes that name this, also those that wait for their end */
    struct served *next; /* all */
};

/* That of the site, made when it is first asked for; NULL: no memory. Any thread. */
struct served *served_of(ebb_site *site);

/* The site is going: EBB_E_BUSY while a scope of it is open or waits for memory. */
int served_forget(ebb_site *site);

/* Calls back for each one. Any thread. */
void served_each(void (*visit)(void *context, const struct served *served), void *context);

/* Takes the lock before a fork, outside of those of sites, and gives it back after. */
void served_fork(bool before);

#endif
