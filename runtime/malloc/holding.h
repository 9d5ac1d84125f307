// SPDX-License-Identifier: Apache-2.0
/*
 * holding.h - what has outlived the scopes of a site.
 *
 * Pinned trays and large blocks may outlive the site, so whoever counts here has a share of the
 * record: the site, each tray, each block. Any thread. NULL: a site for which there was no memory;
 * nothing is counted.
 */
#ifndef EBB_MALLOC_HOLDING_H
#define EBB_MALLOC_HOLDING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct holding {
    _Atomic(uint64_t) shares;
    _Atomic(uint64_t) pinned_bytes; /* of these shares: trays, and large blocks as asked */
};

/* With one share; NULL: no memory. */
struct holding *holding_create(void);
void holding_drop(struct holding *holding);

/* Something outlives its scope, with a share; or does not any more. */
void holding_pin(struct holding *holding, size_t bytes);
void holding_unpin(struct holding *holding, size_t bytes);

/* It is so much less of what has a share already. */
void holding_lessen(struct holding *holding, size_t bytes);

#endif
