// SPDX-License-Identifier: Apache-2.0
/*
 * current.c - the current region of each thread (see ebb/current.h).
 *
 * Invariant: `serial` is that of the innermost scope that was entered and not left, or 0 with no
 * region. Serials are not used again in the whole process, so a scope that moved to another thread
 * is not taken for one of that thread. Refuses scopes that are left out of order (EBB_E_ORDER).
 */
#include <ebb/current.h>

#include "base/error.h"

#include <stdatomic.h>

static _Thread_local ebb_current_scopes now;
static _Atomic uint64_t serials;

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
    token.serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    now = (ebb_current_scopes){region, token.serial};
    return token;
}

int ebb_current_leave(ebb_current_token token) {
    if (!token.serial || token.serial != now.serial)
        return error_set(EBB_E_ORDER, "scope %llu is left, but the innermost of the thread is %llu",
                         (unsigned long long)token.serial, (unsigned long long)now.serial);
    now = (ebb_current_scopes){token.before, token.serial_before};
    return 0;
}

ebb_current_scopes ebb_current_save(void) {
    ebb_current_scopes saved = now;
    now = (ebb_current_scopes){{NULL, 0}, 0};
    return saved;
}

int ebb_current_restore(ebb_current_scopes scopes) {
    if (now.serial)
        return error_set(EBB_E_ORDER, "scopes up to %llu are restored, but this thread is in %llu",
                         (unsigned long long)scopes.serial, (unsigned long long)now.serial);
    now = scopes;
    return 0;
}
