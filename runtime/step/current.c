// SPDX-License-Identifier: Apache-2.0
/*
 * current.c - the current region of each thread (see ebb/current.h).
 *
 * A serial is the number of a scope, and in its last bits how often it was saved as the innermost:
 *
 *     enter 7.0   save 7.1   restore 7.1   save 7.2   restore 7.2   a copy of 7.1 comes too late
 *
 * Invariants: `now` is of the innermost scope that was entered and not left, or all zero. Numbers
 * are not used again in the whole process, so a scope that moved to another thread is not taken for
 * one of that thread. What `restored` has of a scope is what was restored of it last; what it has
 * not, since others have the place, passes. Refuses scopes that are left out of order, and copies
 * of what was restored (EBB_E_ORDER).
 */
#include <ebb/current.h>

#include "base/error.h"

#include <stdatomic.h>

/* That are told apart, of one scope. Leaves numbers for nine years of a million scopes a second. */
#define MOVES 65536u
#define REMEMBERED 4096u

static _Thread_local ebb_current_scopes now;
static _Atomic uint64_t numbers;              /* of scopes, given so far */
static _Atomic uint64_t restored[REMEMBERED]; /* serials, each at its number modulo that; or 0 */

static uint64_t number_of(uint64_t serial) {
    return serial / MOVES;
}

static unsigned long long printed(uint64_t serial) {
    return number_of(serial);
}

static uint64_t next_move(uint64_t serial) {
    return number_of(serial) * MOVES + (serial + 1) % MOVES;
}

/* Only one of all that have copies of it may, and only before the scope moves again. */
static bool may_restore(uint64_t serial) {
    _Atomic uint64_t *place = &restored[number_of(serial) % REMEMBERED];
    /* relaxed: only the number matters; whoever hands scopes over orders what they hold */
    uint64_t last = atomic_load_explicit(place, memory_order_relaxed);
    do
        if (number_of(last) == number_of(serial) && next_move(last) != serial)
            return false;
    while (!atomic_compare_exchange_weak_explicit(place, &last, serial, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

ebb_region ebb_current(void) {
    return now.region;
}

ebb_current_token ebb_current_enter(ebb_region region) {
    ebb_current_token token = {now.region, now.serial, 0};
    if (!ebb_region_is_open(region)) {
        error_set(EBB_E_STALE, "handle (%p, generation %llu) is of no open region: not entered",
                  (void *)region.lane, (unsigned long long)region.generation);
        return token;
    }
    /* relaxed: only that no two are the same matters */
    token.serial = (atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1) * MOVES;
    now = (ebb_current_scopes){region, token.serial};
    return token;
}

int ebb_current_leave(ebb_current_token token) {
    if (!token.serial)
        return error_set(EBB_E_ORDER, "the token is of no scope: nothing was entered");
    if (!now.serial)
        return error_set(EBB_E_ORDER, "scope %llu is left, but the thread is in none",
                         printed(token.serial));
    if (number_of(token.serial) != number_of(now.serial))
        return error_set(EBB_E_ORDER, "scope %llu is left, but the innermost of the thread is %llu",
                         printed(token.serial), printed(now.serial));
    now = (ebb_current_scopes){token.before, token.serial_before};
    return 0;
}

ebb_current_scopes ebb_current_save(void) {
    ebb_current_scopes saved = now;
    now = (ebb_current_scopes){{NULL, 0}, 0};
    if (saved.serial)
        saved.serial = next_move(saved.serial);
    return saved;
}

int ebb_current_restore(ebb_current_scopes scopes) {
    if (now.serial)
        return error_set(EBB_E_ORDER, "scopes up to %llu are restored, but this thread is in %llu",
                         printed(scopes.serial), printed(now.serial));
    if (scopes.serial && !may_restore(scopes.serial))
        return error_set(EBB_E_ORDER, "scopes up to %llu have been restored before: this is a copy",
                         printed(scopes.serial));
    now = scopes;
    return 0;
}
