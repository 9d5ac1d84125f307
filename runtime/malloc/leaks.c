// SPDX-License-Identifier: Apache-2.0
/* leaks.c - counts of keys (see leaks.h). Nothing here can fail. */
#include "malloc/leaks.h"

struct leaks leaks;

static _Atomic(unsigned) turns;

void leaks_note(uint32_t key) {
    uint8_t count = atomic_load_explicit(&leaks.count[key], memory_order_relaxed);
    count = count + 1u < LEAKS_SURE ? (uint8_t)(count + 1) : (uint8_t)LEAKS_MOST;
    atomic_store_explicit(&leaks.count[key], count, memory_order_relaxed);
}

void leaks_turn(void) {
    if (atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed) % LEAKS_HALVING !=
        LEAKS_HALVING - 1)
        return;
    for (unsigned key = 0; key < LEAKS_KEYS; key++) {
        uint8_t count = atomic_load_explicit(&leaks.count[key], memory_order_relaxed);
        atomic_store_explicit(&leaks.count[key], count / 2, memory_order_relaxed);
    }
}

size_t leaks_count(void) {
    size_t sure = 0;
    for (unsigned key = 0; key < LEAKS_KEYS; key++)
        sure += leaks_is_sure(key);
    return sure;
}
