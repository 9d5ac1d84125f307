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

/* Leaves or enters the scope of an open step. */
static int change(ebb_step step, bool enter) {
    const struct lane *lane = step_find_open(step);
    if (!lane)
        return error_latest();
    if (!lane->site->options.scope)
        return error_set(EBB_E_ARGUMENT, "a step of site '%s', which has no scopes",
                         lane->site->name);
    if (!lane->scope)
        return 0;
    if (!scope_server->is_own(lane->scope))
        return error_latest();
    (enter ? scope_server->enter : scope_server->leave)(lane->scope);
    return 0;
}

int ebb_scope_leave(ebb_step step) {
    return change(step, false);
}

int ebb_scope_enter(ebb_step step) {
    return change(step, true);
}
