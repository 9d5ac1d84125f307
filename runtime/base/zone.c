// SPDX-License-Identifier: Apache-2.0
/* zone.c - the hooks that keep an arena of jemalloc in its zone (see zone.h). */
#include "base/zone.h"

#include "base/os.h"
#include "base/size.h"

/* The next unused addresses, aligned and opened, as are those skipped for the alignment; NULL when
 * the zone is used up, or a certain address is wanted. */
static void *carve(extent_hooks_t *hooks, void *at, size_t bytes, size_t align, bool *zero,
                   bool *commit, unsigned arena) {
    struct zone *zone = (struct zone *)(void *)hooks;
    (void)arena;
    if (at)
        return NULL;
    /* relaxed: only distinct addresses matter; contents are zero pages of the system */
    size_t old = atomic_load_explicit(&zone->carved, memory_order_relaxed), start, end;
    do {
        if (!size_round_up(zone->base + old, align, &start))
            return NULL;
        start -= zone->base; /* the base itself is aligned to a page only */
        if (!size_add(start, bytes, &end) || end > zone->bytes)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&zone->carved, &old, end, memory_order_relaxed,
                                                    memory_order_relaxed));
    *zero = true;
    *commit = true;
    void *carved = (void *)(zone->base + start);
    if (os.open((void *)(zone->base + old), end - old) == 0)
        return carved;
    /* relaxed, as above; if another extent was carved meanwhile, these addresses are lost */
    (void)atomic_compare_exchange_strong_explicit(&zone->carved, &end, old, memory_order_relaxed,
                                                  memory_order_relaxed);
    return NULL;
}

/* true: refused; jemalloc then keeps the addresses for reuse. */
static bool keep(extent_hooks_t *hooks, void *addr, size_t bytes, bool committed, unsigned arena) {
    (void)hooks, (void)addr, (void)bytes, (void)committed, (void)arena;
    return true;
}

static bool purge(extent_hooks_t *hooks, void *addr, size_t bytes, size_t offset, size_t length,
                  unsigned arena) {
    (void)hooks, (void)bytes, (void)arena;
    return os.give_back((char *)addr + offset, length) != 0;
}

static bool split(extent_hooks_t *hooks, void *addr, size_t bytes, size_t left, size_t right,
                  bool committed, unsigned arena) {
    (void)hooks, (void)addr, (void)bytes, (void)left, (void)right, (void)committed, (void)arena;
    return false;
}

static bool merge(extent_hooks_t *hooks, void *left, size_t left_bytes, void *right,
                  size_t right_bytes, bool committed, unsigned arena) {
    (void)hooks, (void)left, (void)left_bytes, (void)right, (void)right_bytes;
    (void)committed, (void)arena;
    return false;
}

bool zone_open(struct zone *zone) {
    extent_hooks_t *hooks = &zone->hooks;
    size_t length = sizeof zone->arena;
    *hooks = (extent_hooks_t){
        .alloc = carve, .dalloc = keep, .purge_forced = purge, .split = split, .merge = merge};
    return je_mallctl("arenas.create", &zone->arena, &length, &hooks, sizeof hooks) == 0;
}
