// SPDX-License-Identifier: Apache-2.0
/*
 * holding.c - see holding.h. Sums are relaxed: who reads them wants to know how much, not what for.
 */
#include "malloc/holding.h"
#include "malloc/general.h"

struct holding *holding_create(void) {
    struct holding *holding = je_calloc(1, sizeof *holding);
    if (holding)
        atomic_store_explicit(&holding->shares, 1, memory_order_relaxed);
    return holding;
}

void holding_drop(struct holding *holding) {
    /* acq_rel: what the others did with it comes before its end */
    if (holding && atomic_fetch_sub_explicit(&holding->shares, 1, memory_order_acq_rel) == 1)
        je_free(holding);
}

void holding_pin(struct holding *holding, size_t bytes) {
    if (!holding)
        return;
    atomic_fetch_add_explicit(&holding->shares, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&holding->pinned_bytes, bytes, memory_order_relaxed);
}

void holding_lessen(struct holding *holding, size_t bytes) {
    if (holding)
        atomic_fetch_sub_explicit(&holding->pinned_bytes, bytes, memory_order_relaxed);
}

void holding_unpin(struct holding *holding, size_t bytes) {
    holding_lessen(holding, bytes);
    holding_drop(holding);
}
