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

/* What is counted of a site's scopes. */
enum served_count {
    SERVED_OPEN,            /* that name the site, also those that wait for their end */
    SERVED_OPEN_BYTES,      /* their pages, touched or not */
    SERVED_SCOPES,          /* that have ended */
    SERVED_BLOCKS,          /* allocated in these */
    SERVED_BYTES,           /* the same */
    SERVED_SURVIVED_TRAYS,  /* pinned when one ended */
    SERVED_SURVIVED_BLOCKS, /* large ones, relinked */
    SERVED_SURVIVED_BYTES,  /* theirs */
    SERVED_COUNTS
};

/* A heap has its share by its number: processors do not take a line from each other. */
#define SERVED_SHARES 32u

struct served_share {
    _Alignas(64) _Atomic(uint64_t) counts[SERVED_COUNTS];
};

/* Numbers behind a name that are known to be free. */
#define SERVED_ENDED 16u

struct served {
    struct served_share shares[SERVED_SHARES];
    ebb_site *site, *hidden;
    struct holding *holding;
    _Atomic(unsigned) modest; /* scopes in a row with few bytes of large blocks; up to so many */
    char name[SERVED_NAME_BYTES]; /* as it is told: no two have the same */
    unsigned free_from;    /* name#2 up to below this number are taken or ended, if it is name */
    unsigned ended[SERVED_ENDED], ends; /* the last numbers to be free; how many */
    struct served *next;   /* all */
    struct served **place; /* that points to this one there */
    struct served *beside; /* with a name of the same hash */
};

/* That of all heaps, as it is just now. Any thread. */
uint64_t served_sum(const struct served *served, enum served_count count);

/* That of the site, made when it is first asked for; NULL: no memory. Any thread. */
struct served *served_of(ebb_site *site);

/*
 * A site is modest if so many scopes in a row asked for no more bytes of large blocks than these.
 * The general heap has them hot as well, and a step, whose pages come from a pool that all threads
 * share, costs more than it saves. What larger scopes have left in that pool goes at ends of such
 * scopes as well (trim.h).
 */
#define SERVED_MODEST_BYTES ((size_t)1 << 20)
#define SERVED_MODEST_SCOPES 256u

bool served_is_modest(const struct served *served);

/* A scope has ended that asked for so many bytes of large blocks. Any thread. */
void served_note_large(struct served *served, uint64_t bytes);

/* The site is going: EBB_E_BUSY while a scope of it is open or waits for memory. */
int served_forget(ebb_site *site);

/* Calls back for each one until that says no. Nobody makes or ends one meanwhile. Any thread. */
void served_each(bool (*visit)(void *context, const struct served *served), void *context);

/* Takes the lock before a fork, outside of those of sites, and gives it back after. */
void served_fork(bool before);

#endif
