// SPDX-License-Identifier: Apache-2.0
/*
 * scope.c - scopes are left and entered (see ebb/scope.h).
 *
 * Refuses what is no open step (EBB_E_STALE) or one without a scope (EBB_E_ARGUMENT). Where nobody
 * serves malloc() there is nothing to leave or enter, and both succeed.
 */
#include "step/scope.h"

#include "base/error.h"
#include "step/site.h"

const struct scope_server *scope_server;

bool ebb_scope_is_served(void) {
    return scope_server != NULL;
}

/* Who began the step asks without a lock: nobody else ends its scope. */
bool scope_is_own(const struct lane *lane) {
    if (!scope_server || !lane->site->options.scope || lane->owner.thread == seat_number() ||
        scope_server->is_own(&lane->scope))
        return true;
    error_set(EBB_E_THREAD, "the scope of a step of site '%s' belongs to another thread",
              lane->site->name);
    return false;
}

/* Leaves or enters the scope of an open step. */
static int change(ebb_step step, bool enter) {
    const struct lane *lane = step_find_open(step);
    if (!lane)
        return error_latest();
    if (!lane->site->options.scope)
        return error_set(EBB_E_ARGUMENT, "a step of site '%s', which has no scopes",
                         lane->site->name);
    if (!scope_is_own(lane))
        return error_latest();
    if (lane->scope)
        (enter ? scope_server->enter : scope_server->leave)(lane->scope);
    return 0;
}

int ebb_scope_leave(ebb_step step) {
    return change(step, false);
}

int ebb_scope_enter(ebb_step step) {
    return change(step, true);
}
