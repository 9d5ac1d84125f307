// SPDX-License-Identifier: Apache-2.0
/*
 * scope.h - who serves malloc() during the steps of sites with `scope`.
 *
 * libebb knows nothing of malloc(). libebb-malloc, which has all of libebb inside, fills the table
 * when it is loaded; without it the pointer is NULL and such steps are like all others.
 *
 * Invariant: a lane's `scope` is what `begin` gave for its open step, or NULL.
 */
#ifndef EBB_STEP_SCOPE_H
#define EBB_STEP_SCOPE_H

#include "base/hidden.h"

#include <ebb/scope.h>

struct scope_server {
    /* A step begins on this thread. NULL: no memory; the step is then without a scope. `place` is
     * where the result goes, to be cleared should the scope end by itself, with its thread. */
    void *(*begin)(ebb_site *site, uint64_t tag, void **place);
    /* Is what is noted there of this thread, if anything is? Its own thread may be ending, and it
     * with that: so what is noted is looked at under a lock. */
    bool (*is_own)(void *const *place);
    /* It ends, on its thread. */
    void (*end)(void *scope);
    /* What is noted there, if anything is, ends because its region does, on whichever thread that
     * happens. */
    void (*abandon)(void **place);
    /* ebb_scope_leave() and ebb_scope_enter(), on its thread. */
    void (*leave)(void *scope);
    void (*enter)(void *scope);
    /* The site is going; EBB_E_BUSY: not yet. */
    int (*forget)(ebb_site *site);
};

extern HIDDEN const struct scope_server *scope_server;

struct lane;

/* This thread may end the scope of an open step, leave it and enter it; or there is none, any more.
 * Else EBB_E_THREAD. */
bool scope_is_own(const struct lane *lane);

#endif
